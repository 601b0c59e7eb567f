"""Charts of Helm repositories over HTTP, as the OCI artifact that `helm push` makes of them.

A chart's package is not changed. The manifest around it depends on the package alone, so that
every run gives the same digest; `helm push` would add the time of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import urllib.parse
from collections.abc import Iterator
from typing import Any

import yaml

from sonic_eks.errors import SonicEksError, shown
from sonic_eks.mirror.errors import MirrorError, NotFoundError
from sonic_eks.mirror.http import CHUNK_BYTES, explained, new_session
from sonic_eks.mirror.manifest import OCI_MANIFEST, Descriptor, Manifest, digest_of, parse_manifest
from sonic_eks.mirror.reference import is_loopback
from sonic_eks.mirror.retry import RetryPolicy

# Helm Improvement Proposal 6, "OCI Support".
CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
CONTENT_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

# Far above what charts need: the largest index read here has a few megabytes.
_LARGEST_INDEX_BYTES = 64 * 1024 * 1024
_LARGEST_CHART_BYTES = 16 * 1024 * 1024
_LARGEST_METADATA_BYTES = 1024 * 1024
_TIMEOUTS_SECONDS = (30.0, 60.0)


class HelmChart:
    """A version of a chart in a Helm repository, to be read like an image.

    Parameters
    ----------
    repository : str
        Address of the repository, where ``index.yaml`` lies.
    name : str
        Name of the chart.
    tag : str
        Its version, with ``_`` in the place of ``+``, which no tag may hold.
    retry : RetryPolicy
        How often to try again.
    """

    def __init__(self, repository: str, name: str, tag: str, *, retry: RetryPolicy) -> None:
        self._url = repository.rstrip("/") + "/"
        self._name = name
        self._tag = tag
        self._retry = retry
        self._session = new_session(connections=2)
        self._packaged: tuple[Manifest, dict[str, bytes]] | None = None
        _check_address(self._url)

    def __str__(self) -> str:
        return f"chart {self._name} {self._tag} of {self._url}"

    def head(self, reference: str) -> str | None:
        """Return the digest of the packaged chart; see `manifest` for errors."""
        return self.manifest(reference).digest

    def manifest(self, reference: str) -> Manifest:
        """Return the manifest under the chart's version, or under a digest that must match.

        Raises
        ------
        NotFoundError
            When the repository has no such version, or gives another package for it now.
        MirrorError
            When the package is not what the index says.
        """
        if self._packaged is None:
            self._packaged = self._package()
        manifest = self._packaged[0]
        if reference not in (self._tag, manifest.digest):
            raise NotFoundError(f"{self}: packaged it has {manifest.digest}, not {reference}")
        return manifest

    def open_blob(self, blob: Descriptor) -> Iterator[bytes]:
        """Yield the configuration or the package."""
        contents = self._packaged[1] if self._packaged else {}
        return iter([contents[blob.digest]])

    def _package(self) -> tuple[Manifest, dict[str, bytes]]:
        address, expected = self._look_up()
        package = self._fetch(address, _LARGEST_CHART_BYTES)
        found = hashlib.sha256(package).hexdigest()
        if found != expected:
            raise MirrorError(
                f"{self}: digest mismatch: the index says sha256:{expected}, the package has"
                f" sha256:{found}"
            )
        metadata = read_metadata(package, self._name, str(self))
        version = str(metadata.get("version"))
        if metadata.get("name") != self._name or _tag_of(version) != self._tag:
            raise MirrorError(f"{self}: the package is {metadata.get('name')} {version}")
        return package_chart(package, metadata)

    def _look_up(self) -> tuple[str, str]:
        """Return address and SHA-256 of the version's package."""
        raw = self._fetch(urllib.parse.urljoin(self._url, "index.yaml"), _LARGEST_INDEX_BYTES)
        try:
            entries = yaml.load(raw, Loader=_IndexLoader)["entries"][self._name]
            entry = next(e for e in entries if _tag_of(e["version"]) == self._tag)
        except yaml.YAMLError:
            raise MirrorError(f"{self._url}index.yaml: no YAML") from None
        except (KeyError, TypeError, StopIteration):
            raise NotFoundError(f"{self}: not in the repository's index") from None
        digest = str(entry.get("digest", "")).removeprefix("sha256:")
        urls = entry.get("urls")
        if len(digest) != 64 or not isinstance(urls, list) or not urls:
            raise MirrorError(f"{self}: the index gives no SHA-256 or no address")
        address = urllib.parse.urljoin(self._url, str(urls[0]))
        _check_address(address)
        return address, digest

    def _fetch(self, address: str, limit: int) -> bytes:
        def request() -> bytes:
            with explained(address):
                response = self._session.get(address, stream=True, timeout=_TIMEOUTS_SECONDS)
                with response:
                    response.raise_for_status()
                    body = bytearray()
                    for chunk in response.iter_content(CHUNK_BYTES):
                        body += chunk
                        if len(body) > limit:
                            raise MirrorError(f"{address}: larger than {limit} bytes")
                    return bytes(body)

        return self._retry.call(address, request)


def package_chart(package: bytes, metadata: dict[str, Any]) -> tuple[Manifest, dict[str, bytes]]:
    """Wrap a chart's package as an OCI artifact.

    Parameters
    ----------
    package : bytes
        The ``.tgz``.
    metadata : dict
        Its ``Chart.yaml``.

    Returns
    -------
    tuple of Manifest and dict
        The manifest, and the contents of its two blobs by digest.
    """
    config = _json(metadata)
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _descriptor(CONFIG_TYPE, config),
        "layers": [_descriptor(CONTENT_TYPE, package)],
        "annotations": {
            "org.opencontainers.image.title": metadata["name"],
            "org.opencontainers.image.version": metadata["version"],
        },
    }
    manifest = parse_manifest(_json(document), OCI_MANIFEST, metadata["name"])
    return manifest, {digest_of(config): config, digest_of(package): package}


def read_metadata(package: bytes, name: str, where: str) -> dict[str, Any]:
    """Return the ``Chart.yaml`` of a package, scalars typed as Helm types them.

    Raises
    ------
    MirrorError
        When the package holds none.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
            member = archive.getmember(f"{name}/Chart.yaml")
            file = archive.extractfile(member)
            if file is None or member.size > _LARGEST_METADATA_BYTES:
                raise MirrorError(f"{where}: its Chart.yaml is no file of at most 1 MiB")
            # All scalars are text in Chart.yaml but a few: an appVersion of 1.10 stays so.
            metadata = yaml.load(file.read(), Loader=yaml.BaseLoader)
    except (tarfile.TarError, OSError, KeyError, EOFError):
        raise MirrorError(f"{where}: the package is no chart: no {name}/Chart.yaml") from None
    except yaml.YAMLError:
        raise MirrorError(f"{where}: its Chart.yaml is no YAML") from None
    if not isinstance(metadata, dict):
        raise MirrorError(f"{where}: its Chart.yaml is no mapping")
    _booleans(metadata, "deprecated")
    for dependency in metadata.get("dependencies") or []:
        _booleans(dependency, "enabled")
    return metadata


class _IndexLoader(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
    """The C parser where PyYAML has it: an index of megabytes takes it a second, not twenty."""


def _tag_of(version: str) -> str:
    return version.replace("+", "_")


def _booleans(mapping: Any, key: str) -> None:
    if isinstance(mapping, dict) and key in mapping:
        mapping[key] = str(mapping[key]).lower() in ("true", "yes", "on", "y")


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def _json(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def _check_address(address: str) -> None:
    parts = urllib.parse.urlsplit(address)
    plain_is_fine = parts.scheme == "http" and is_loopback(parts.netloc)
    if not parts.netloc or not (parts.scheme == "https" or plain_is_fine):
        raise SonicEksError(f"malformed Helm repository {shown(address)}: give https://host/path")
