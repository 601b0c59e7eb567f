"""The artifacts of one deployment: what is mirrored, and how charts and manifests refer to it."""

from __future__ import annotations

from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.config.aws import dns_suffix_of
from sonic_eks.config.vendor_images import (
    API_IMAGE,
    LICENSE_PROXY_IMAGE,
    vendor_images,
    worker_image,
)
from sonic_eks.late import Late
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.lock import Lock, locked
from sonic_eks.upstream import NATS_IMAGE, PAUSE_IMAGE, PYTHON_IMAGE, UPSTREAMS, Kind

__all__ = [
    "API_IMAGE",
    "LICENSE_PROXY_IMAGE",
    "PAUSE_IMAGE",
    "PYTHON_IMAGE",
    "Artifact",
    "Catalogue",
    "worker_image",
]


class Catalogue:
    """Every artifact of a deployment, and the references to it.

    Parameters
    ----------
    config : Configuration
        The deployment.
    lock : mapping of str to LockEntry, optional
        Digests of the artifacts; with them references are exact, without they are tags.

    Raises
    ------
    SonicEksError
        When the lock is of another list (exit status 2).
    """

    def __init__(self, config: Configuration, lock: Lock | None = None) -> None:
        deployment = config.deployment
        account = deployment.account or Late.ACCOUNT.marker
        suffix = dns_suffix_of(deployment.region)
        self.host = f"{account}.dkr.ecr.{deployment.region}.{suffix}"
        self.artifacts = locked(_artifacts(config), lock)
        self._by_name = {(a.kind, a.name): a for a in self.artifacts}

    def image(self, name: str) -> str:
        """Return the full reference of an image in the private registry, exact when locked."""
        artifact = self._by_name[Kind.IMAGE, name]
        exact = f"@{artifact.digest}" if artifact.digest else ""
        return f"{self.host}/{artifact.repository}:{artifact.tag}{exact}"

    def image_repository(self, name: str) -> str:
        """Return an image's reference without the tag, as most charts want it."""
        return f"{self.host}/{self._by_name[Kind.IMAGE, name].repository}"

    def tag(self, kind: Kind, name: str) -> str:
        """Return an artifact's version."""
        return self._by_name[kind, name].tag

    def digest(self, kind: Kind, name: str) -> str | None:
        """Return an artifact's digest, None without a lock."""
        return self._by_name[kind, name].digest

    def chart(self, name: str) -> str:
        """Return the OCI address of a chart in the private registry."""
        return f"oci://{self.host}/{self._by_name[Kind.CHART, name].repository}"


def _artifacts(config: Configuration) -> list[Artifact]:
    prefix = config.deployment.name
    versions = config.registry.versions
    found = [
        Artifact(
            name=upstream.name,
            kind=upstream.kind,
            source=upstream.source,
            tag=versions.get(upstream.name, upstream.tag),
            component=upstream.component,
            repository=f"{prefix}/{upstream.repository}",
            **_from(config, None if upstream.is_http else upstream.source, upstream.kind),
        )
        for upstream in UPSTREAMS
        if _needs(config, upstream.name)
    ]
    registry = config.registry.vendor_registry
    found += [
        Artifact(
            name=name,
            kind=Kind.IMAGE,
            source=f"{registry}/{image}" if registry else None,
            tag=versions.get(name, config.registry.sonic_release),
            component="sonic",
            repository=f"{prefix}/images/{name}",
            **_from(config, registry, Kind.IMAGE),
        )
        for name, image in vendor_images(config).items()
    ]
    return found


def _needs(config: Configuration, name: str) -> bool:
    """Return whether a deployment reads a public artifact: most are for all."""
    if name == NATS_IMAGE:
        return config.topology == "distributed"
    if name == PAUSE_IMAGE:
        return config.scaling.headroom_gpus > 0
    return True


def _from(config: Configuration, source: str | None, kind: Kind) -> dict[str, Any]:
    """Return what the configuration says about an upstream: credentials and platforms."""
    host = (source or "").removeprefix("oci://").split("/")[0]
    return {
        "secret_arn": config.registry.credential_secret_arns.get(host),
        "platforms": config.registry.platforms if kind is Kind.IMAGE else (),
    }
