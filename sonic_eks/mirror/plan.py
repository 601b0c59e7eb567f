"""What a run would do: states, and the bytes to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.examine import State, blobs_of, examine, manifests_below, resolve

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """What a run would do about one artifact.

    Attributes
    ----------
    artifact : Artifact
        The artifact.
    state : State or None
        What is there; None when that could not be found out.
    digest : str or None
        What belongs under the tag.
    total_bytes : int
        Size of all its blobs; 0 when it is present.
    missing_bytes : int
        Size of those that are to be sent.
    problem : str
        One line on what a run would fail with.
    """

    artifact: Artifact
    state: State | None
    digest: str | None = None
    total_bytes: int = 0
    missing_bytes: int = 0
    problem: str = ""


def plan(connections: Connections, artifacts: Sequence[Artifact]) -> list[Step]:
    """Find out what a run would do, without writing anything.

    Returns
    -------
    list of Step
        In the order of `artifacts`.
    """
    return in_parallel(lambda artifact: _step(connections, artifact), artifacts)


def in_parallel(action: Callable[[Artifact], T], artifacts: Iterable[Artifact]) -> list[T]:
    """Do something for every artifact, several at a time, and keep the order."""
    with ThreadPoolExecutor(8, "artifact") as pool:
        return list(pool.map(action, artifacts))


def _step(connections: Connections, artifact: Artifact) -> Step:
    try:
        finding = examine(connections, artifact)
        if finding.state is not State.MISSING:
            return Step(
                artifact,
                finding.state,
                finding.expected or finding.found,
                problem=finding.problem or "",
            )
        source = connections.source(artifact)
        destination = connections.destination(artifact)
        manifest = resolve(source, artifact).manifest
        blobs = blobs_of(list(manifests_below(source, manifest)))
        missing = [blob for blob in blobs if not destination.has_blob(blob.digest)]
    except SonicEksError as error:
        return Step(artifact, None, problem=f"{artifact.key}: {error}")
    return Step(
        artifact,
        State.MISSING,
        finding.expected,
        total_bytes=sum(blob.size for blob in blobs),
        missing_bytes=sum(blob.size for blob in missing),
    )
