"""Manifests and indexes: what they point at, and which of it is copied."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sonic_eks.errors import shown
from sonic_eks.mirror.errors import MirrorError
from sonic_eks.mirror.reference import is_digest

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"

ACCEPTED = (OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST)
_INDEXES = (OCI_INDEX, DOCKER_LIST)

# OCI distribution specification 1.1, "Pushing Manifests": a registry limits manifests, 4 MiB at
# the least; nothing larger can be expected to arrive.
LARGEST_MANIFEST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Descriptor:
    """A pointer to content.

    Attributes
    ----------
    digest : str
        SHA-256 of the content.
    size : int
        Its length in bytes.
    media_type : str
        What it is.
    platform : str
        ``os/architecture[/variant]`` of an entry in an index, else empty.
    """

    digest: str
    size: int
    media_type: str = ""
    platform: str = ""


@dataclass(frozen=True)
class Manifest:
    """A manifest or index, with the bytes that its digest is made of.

    Attributes
    ----------
    body : bytes
        Exactly what the registry holds.
    media_type : str
        One of `ACCEPTED`.
    digest : str
        SHA-256 of `body`.
    children : tuple of Descriptor
        Manifests of an index.
    blobs : tuple of Descriptor
        Configuration and layers of a manifest, each once; the configuration comes first.
    """

    body: bytes
    media_type: str
    digest: str
    children: tuple[Descriptor, ...] = ()
    blobs: tuple[Descriptor, ...] = ()

    @property
    def is_index(self) -> bool:
        """Whether it points at manifests rather than at blobs."""
        return self.media_type in _INDEXES

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platforms of an index's children; attestations have none."""
        return tuple(child.platform for child in self.children if child.platform)


def digest_of(body: bytes) -> str:
    """Return the SHA-256 digest of `body` as registries write it."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def parse_manifest(body: bytes, content_type: str, where: str) -> Manifest:
    """Read a manifest.

    Parameters
    ----------
    body : bytes
        The document.
    content_type : str
        The registry's Content-Type: manifests that Helm pushed carry no ``mediaType``.
    where : str
        Subject of an error.

    Raises
    ------
    MirrorError
        When it is not a manifest that can be copied: schema 1, digests other than SHA-256,
        layers that lie outside the registry.
    """
    try:
        document = json.loads(body)
    except ValueError:
        raise MirrorError(f"{where}: the registry answered no JSON manifest") from None
    if not isinstance(document, dict):
        raise MirrorError(f"{where}: the manifest is no JSON object")
    media_type = document.get("mediaType") or content_type.partition(";")[0].strip().lower()
    if document.get("schemaVersion") != 2 or media_type not in ACCEPTED:
        kind = media_type if media_type not in ACCEPTED else "schemaVersion is not 2"
        raise MirrorError(
            f"{where}: manifest type {shown(kind)} cannot be copied; allowed are OCI and"
            " Docker schema 2 manifests and indexes: ask the publisher for a current image"
        )
    is_index = media_type in _INDEXES
    # A document that reads as both could mean one thing here and another in the cluster.
    if ("layers" in document or "config" in document) == is_index or (
        "manifests" in document
    ) != is_index:
        raise MirrorError(f"{where}: the manifest's fields do not fit its type {media_type}")
    if is_index:
        children = tuple(_descriptor(entry, where) for entry in _list(document, "manifests", where))
        return Manifest(body, media_type, digest_of(body), children=children)
    entries = [document["config"], *_list(document, "layers", where)]
    for entry in entries:
        _refuse_foreign(entry, where)
    blobs = dict.fromkeys(_descriptor(entry, where) for entry in entries)
    return Manifest(body, media_type, digest_of(body), blobs=tuple(blobs))


def matching_platforms(index: Manifest, wanted: tuple[str, ...], where: str) -> Manifest:
    """Reduce an index to the wanted platforms.

    Returns the index itself when nothing is left out. Entries keep their bytes' digests; the
    reduced index has a digest of its own, the same on every run. Attestations are left out, as
    they speak of the whole.

    Parameters
    ----------
    index : Manifest
        An index.
    wanted : tuple of str
        ``os/architecture[/variant]``; without a variant every variant matches.
    where : str
        Subject of an error.

    Raises
    ------
    MirrorError
        When a wanted platform is not there.
    """
    for platform in wanted:
        if not any(is_platform(child.platform, platform) for child in index.children):
            raise MirrorError(
                f"{where}: has no platform {shown(platform)}; it has"
                f" {', '.join(index.platforms) or 'none named'}"
            )
    document = json.loads(index.body)
    kept = [
        entry
        for entry, child in zip(document["manifests"], index.children, strict=True)
        if any(is_platform(child.platform, platform) for platform in wanted)
    ]
    if len(kept) == len(index.children):
        return index
    document["manifests"] = kept
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return parse_manifest(body, index.media_type, where)


def is_platform(given: str, wanted: str) -> bool:
    """Tell whether a platform is the wanted one, or a variant of it."""
    return given == wanted or given.startswith(f"{wanted}/")


def _list(document: dict[str, Any], key: str, where: str) -> list[Any]:
    entries = document.get(key)
    if not isinstance(entries, list):
        raise MirrorError(f"{where}: the manifest's {key} is no list")
    return entries


def _descriptor(entry: Any, where: str) -> Descriptor:
    if not isinstance(entry, dict):
        raise MirrorError(f"{where}: a descriptor in the manifest is no JSON object")
    digest, size = entry.get("digest"), entry.get("size")
    if not is_digest(digest):
        raise MirrorError(f"{where}: digest {shown(digest)} cannot be copied; only SHA-256 can")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise MirrorError(f"{where}: size {shown(size)} of {digest} is no number of bytes")
    return Descriptor(str(digest), size, str(entry.get("mediaType", "")), _platform(entry))


def _platform(entry: dict[str, Any]) -> str:
    platform = entry.get("platform")
    if not isinstance(platform, dict):
        return ""
    parts = [platform.get("os"), platform.get("architecture"), platform.get("variant")]
    name = "/".join(part for part in parts if isinstance(part, str) and part)
    return "" if name == "unknown/unknown" else name


def _refuse_foreign(entry: Any, where: str) -> None:
    """Refuse layers that nodes would fetch from elsewhere: GPU nodes have no way there."""
    if not isinstance(entry, dict):
        return  # _descriptor says so
    media_type = str(entry.get("mediaType", ""))
    if entry.get("urls") or "foreign" in media_type or "nondistributable" in media_type:
        raise MirrorError(
            f"{where}: layer {shown(entry.get('digest'))} is kept outside the registry"
            f" ({media_type}); choose platforms without such layers"
        )
