"""What an artifact is upstream, and what of it is in the private registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sonic_eks.errors import shown
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections, Source
from sonic_eks.mirror.errors import MirrorError, NotFoundError
from sonic_eks.mirror.manifest import Descriptor, Manifest, is_platform, matching_platforms
from sonic_eks.upstream import Kind

# Amazon ECR user guide, "Amazon ECR service quotas": maximum layer size 52,000 MiB.
LARGEST_LAYER_BYTES = 52_000 * 1024 * 1024

_LARGEST_CONFIG_BYTES = 8 * 1024 * 1024
_DEEPEST_INDEX = 3


class State(StrEnum):
    """What the private registry has of an artifact."""

    PRESENT = "present"
    MISSING = "missing"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Finding:
    """An artifact in the private registry against what it should be.

    Attributes
    ----------
    artifact : Artifact
        The artifact.
    state : State
        ``unavailable`` when it is missing and no source is configured.
    expected : str or None
        Digest that belongs under the tag; None without a source.
    found : str or None
        Digest under the tag.
    """

    artifact: Artifact
    state: State
    expected: str | None
    found: str | None

    @property
    def problem(self) -> str | None:
        """One line on what a copy cannot mend; None when there is nothing."""
        if self.state is State.CONFLICT:
            return (
                f"{self.artifact.key}: tag {self.artifact.tag} holds {self.found} instead of"
                f" {self.expected}, and tags are immutable; give it another version in"
                " registry.versions, or delete the image"
            )
        if self.state is State.UNAVAILABLE:
            return (
                f"{self.artifact.key}: missing, and no source is known; set"
                " registry.vendorRegistry, or push it yourself"
            )
        return None


@dataclass(frozen=True)
class Resolved:
    """An artifact as it is to be copied.

    Attributes
    ----------
    source_digest : str
        Digest under the tag upstream.
    manifest : Manifest
        What belongs under the tag in the private registry.
    """

    source_digest: str
    manifest: Manifest


def examine(connections: Connections, artifact: Artifact) -> Finding:
    """Compare one artifact: one request to the private registry, and one upstream without a lock.

    Raises
    ------
    MirrorError
        When a registry does not answer, or the source has no such tag.
    """
    found = connections.destination(artifact).head(artifact.tag)
    expected: str | None
    if artifact.source is not None:
        expected = artifact.digest or _digest_upstream(connections.source(artifact), artifact)
    else:
        expected = artifact.digest or found  # pushed by hand: any will do without a lock
    if found is None:
        state = State.MISSING if artifact.source is not None else State.UNAVAILABLE
        return Finding(artifact, state, expected, None)
    state = State.PRESENT if found == expected else State.CONFLICT
    return Finding(artifact, state, expected, found)


def resolve(source: Source, artifact: Artifact) -> Resolved:
    """Fetch what belongs under the artifact's tag: its manifest, or the chosen platforms' part.

    One chosen platform gives that platform's manifest, several a reduced index.

    Raises
    ------
    MirrorError
        When the source lacks it, or it is not what the lock says.
    """
    reference = artifact.source_digest or artifact.tag
    try:
        root = source.manifest(reference)
    except NotFoundError as error:
        raise NotFoundError(_not_found(artifact, error), error.code) from None
    manifest = root
    if artifact.platforms and artifact.kind is Kind.IMAGE:
        manifest = _chosen(source, root, artifact)
    if artifact.digest is not None and manifest.digest != artifact.digest:
        raise MirrorError(
            f"{artifact.key}: digest mismatch: the lock says {artifact.digest}, {source} has"
            f" {manifest.digest}; run sonic-eks mirror lock and review the change"
        )
    return Resolved(root.digest, manifest)


def manifests_below(source: Source, manifest: Manifest, depth: int = 0) -> Iterator[Manifest]:
    """Yield the manifests of an index, then itself: each after all that it points at.

    Raises
    ------
    MirrorError
        When an index holds itself or lacks a manifest, or a layer is too large for ECR.
    """
    if depth > _DEEPEST_INDEX:
        raise MirrorError(f"{source}: indexes lie more than {_DEEPEST_INDEX} deep in each other")
    for child in manifest.children:
        yield from manifests_below(source, source.manifest(child.digest), depth + 1)
    for blob in manifest.blobs:
        if blob.size > LARGEST_LAYER_BYTES:
            raise MirrorError(
                f"{source}: layer {blob.digest} has {blob.size} bytes; Amazon ECR takes"
                f" {LARGEST_LAYER_BYTES} at most"
            )
    yield manifest


def blobs_of(manifests: list[Manifest]) -> tuple[Descriptor, ...]:
    """Return the blobs of several manifests, each once."""
    return tuple({blob.digest: blob for m in manifests for blob in m.blobs}.values())


def _digest_upstream(source: Source, artifact: Artifact) -> str:
    if artifact.platforms and artifact.kind is Kind.IMAGE:
        return resolve(source, artifact).manifest.digest
    digest = source.head(artifact.tag)
    if digest is None:
        raise NotFoundError(f"{artifact.key}: {source} has no tag {artifact.tag}")
    return digest


def _chosen(source: Source, root: Manifest, artifact: Artifact) -> Manifest:
    if root.is_index:
        reduced = matching_platforms(root, artifact.platforms, artifact.key)
        if len(reduced.children) == 1:
            return source.manifest(reduced.children[0].digest)
        return reduced
    platform = platform_of(source, root)
    if not all(is_platform(platform, wanted) for wanted in artifact.platforms):
        raise MirrorError(
            f"{artifact.key}: has only the platform {shown(platform)}, not"
            f" {', '.join(artifact.platforms)}"
        )
    return root


def platform_of(source: Source, manifest: Manifest) -> str:
    """Return the platform in the configuration of an image of one platform."""
    config = manifest.blobs[0]
    if config.size > _LARGEST_CONFIG_BYTES:
        raise MirrorError(f"{source}: configuration {config.digest} has {config.size} bytes")
    try:
        document = json.loads(b"".join(source.open_blob(config)))
        parts = [document["os"], document["architecture"], document.get("variant")]
    except (ValueError, KeyError, TypeError):
        return ""
    return "/".join(part for part in parts if part)


def _not_found(artifact: Artifact, error: NotFoundError) -> str:
    if artifact.source_digest:
        return (
            f"{artifact.key}: {artifact.source_digest} of the lock is gone upstream ({error});"
            " run sonic-eks mirror lock"
        )
    return f"{artifact.key}: no tag {artifact.tag} upstream ({error})"
