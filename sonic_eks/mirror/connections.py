"""Where artifacts come from and go to: one connection pool and token for each registry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.auth import Anonymous, Credentials
from sonic_eks.mirror.helm import HelmChart
from sonic_eks.mirror.manifest import Descriptor, Manifest
from sonic_eks.mirror.reference import check_tag, parse_repository
from sonic_eks.mirror.registry import OciRepository, Registry
from sonic_eks.mirror.retry import RetryPolicy
from sonic_eks.upstream import Kind


class Source(Protocol):
    """What an artifact is read from."""

    def head(self, reference: str) -> str | None:
        """Return the digest under a tag or digest, None when there is none."""
        ...

    def manifest(self, reference: str) -> Manifest:
        """Return the manifest under a tag or digest."""
        ...

    def open_blob(self, blob: Descriptor) -> Iterator[bytes]:
        """Yield a blob's content, checked against its digest."""
        ...


class Connections:
    """The registries of a run.

    Parameters
    ----------
    host : str
        The private registry.
    credentials : Credentials
        Who we are there.
    secrets : callable, optional
        Gives the credentials in a Secrets Manager secret, by its ARN.
    retry : RetryPolicy
        How often to try again.
    parallel : int
        Most transfers at a time.
    timeouts_seconds : tuple of float, optional
        See `Registry`.
    """

    def __init__(
        self,
        host: str,
        *,
        credentials: Credentials,
        secrets: Callable[[str], Credentials] | None = None,
        retry: RetryPolicy | None = None,
        parallel: int = 4,
        timeouts_seconds: tuple[float, float] | None = None,
    ) -> None:
        self.host = host
        self.parallel = parallel
        self._secrets = secrets
        self._retry = retry or RetryPolicy()
        self._timeouts = {"timeouts_seconds": timeouts_seconds} if timeouts_seconds else {}
        self._lock = threading.Lock()
        self._upstreams: dict[tuple[str, str | None], Registry] = {}
        self._private = self._registry(host, credentials)

    def destination(self, artifact: Artifact) -> OciRepository:
        """Return the artifact's repository in the private registry."""
        return self._private.repository(artifact.repository)

    def source(self, artifact: Artifact) -> Source:
        """Return what an artifact is copied from.

        Raises
        ------
        SonicEksError
            When its source is unset or malformed (exit status 2).
        """
        check_tag(artifact.tag)
        if artifact.source is None:
            raise SonicEksError(f"{artifact.key}: no source; set registry.vendorRegistry")
        is_address = artifact.source.startswith(("https://", "http://"))
        if artifact.kind is Kind.CHART and is_address:
            return HelmChart(artifact.source, artifact.name, artifact.tag, retry=self._retry)
        name = parse_repository(artifact.source)
        key = (name.api_host, artifact.secret_arn)
        with self._lock:
            registry = self._upstreams.get(key)
            if registry is None:
                credentials = self._credentials(artifact)
                registry = self._upstreams[key] = self._registry(name.api_host, credentials)
        return registry.repository(name.path)

    def _credentials(self, artifact: Artifact) -> Credentials:
        if artifact.secret_arn is None:
            return Anonymous()
        if self._secrets is None:
            raise SonicEksError(f"{artifact.key}: its secret {artifact.secret_arn} is out of reach")
        return self._secrets(artifact.secret_arn)

    def _registry(self, host: str, credentials: Credentials) -> Registry:
        return Registry(
            host,
            credentials=credentials,
            retry=self._retry,
            connections=self.parallel * 2,
            **self._timeouts,
        )
