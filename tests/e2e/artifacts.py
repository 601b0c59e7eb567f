"""What the mirror's tests do with artifacts again and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.copier import Outcome
from sonic_eks.mirror.locking import resolve_lock

MakeArtifact = Callable[..., Artifact]
Connect = Callable[..., Connections]


def only(outcomes: list[Outcome]) -> Outcome:
    """Return the one outcome of a run."""
    assert len(outcomes) == 1
    return outcomes[0]


def locked(connections: Connections, artifact: Artifact) -> Artifact:
    """Return an artifact with the digests that its tag stands for now."""
    entry = resolve_lock(connections, [artifact])[artifact.key]
    return dataclasses.replace(artifact, digest=entry.digest, source_digest=entry.source_digest)
