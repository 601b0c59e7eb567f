"""Making a lock: what every tag stands for upstream, now."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.examine import blobs_of, manifests_below, resolve
from sonic_eks.mirror.lock import Lock, LockEntry
from sonic_eks.mirror.plan import in_parallel


def resolve_lock(connections: Connections, artifacts: Sequence[Artifact]) -> Lock:
    """Resolve every tag upstream.

    Raises
    ------
    MirrorError
        When one cannot be resolved.
    """

    def entry(artifact: Artifact) -> tuple[str, LockEntry]:
        unlocked = dataclasses.replace(artifact, digest=None, source_digest=None)
        source = connections.source(unlocked)
        resolved = resolve(source, unlocked)
        blobs = blobs_of(list(manifests_below(source, resolved.manifest)))
        return artifact.key, LockEntry(
            source=str(artifact.source),
            tag=artifact.tag,
            platforms=artifact.platforms,
            digest=resolved.manifest.digest,
            source_digest=resolved.source_digest,
            size_bytes=sum(blob.size for blob in blobs),
        )

    return dict(in_parallel(entry, [a for a in artifacts if a.source is not None]))
