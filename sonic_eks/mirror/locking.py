"""Making a lock: what every tag stands for upstream, now."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.examine import blobs_of, manifests_below, resolve
from sonic_eks.mirror.lock import Lock, LockEntry
from sonic_eks.mirror.plan import in_parallel


def resolve_lock(
    connections: Connections,
    artifacts: Sequence[Artifact],
    heard: Callable[[str], None] = lambda _: None,
) -> Lock:
    """Resolve every tag upstream.

    Parameters
    ----------
    connections : Connections
        The registries.
    artifacts : sequence of Artifact
        What to lock; those without a source are left out.
    heard : callable
        Told how many are resolved.

    Raises
    ------
    MirrorError
        When one cannot be resolved.
    """
    wanted = [artifact for artifact in artifacts if artifact.source is not None]
    done = itertools.count(1)  # counted from several threads, which it takes

    def entry(artifact: Artifact) -> tuple[str, LockEntry]:
        unlocked = dataclasses.replace(artifact, digest=None, source_digest=None)
        source = connections.source(unlocked)
        resolved = resolve(source, unlocked)
        blobs = blobs_of(list(manifests_below(source, resolved.manifest)))
        heard(f"{next(done)} of {len(wanted)} tags resolved, {artifact.key} last")
        return artifact.key, LockEntry(
            source=str(artifact.source),
            tag=artifact.tag,
            platforms=artifact.platforms,
            digest=resolved.manifest.digest,
            source_digest=resolved.source_digest,
            size_bytes=sum(blob.size for blob in blobs),
        )

    return dict(in_parallel(entry, wanted))
