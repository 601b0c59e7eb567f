"""Whether the private registry holds what the lock says, and all that is in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.examine import State, examine
from sonic_eks.mirror.plan import in_parallel
from sonic_eks.upstream import Kind

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True)
class Check:
    """One artifact in the private registry.

    Attributes
    ----------
    artifact : Artifact
        The artifact.
    digest : str or None
        What lies under its tag.
    problem : str
        One line on what is wrong; empty when nothing is.
    """

    artifact: Artifact
    digest: str | None = None
    problem: str = ""


def verify(connections: Connections, artifacts: Sequence[Artifact]) -> list[Check]:
    """Compare the private registry with the lock, or with the upstream where nothing is locked.

    Of an index every manifest is looked up too: clean-up rules may remove untagged ones.

    Returns
    -------
    list of Check
        In the order of `artifacts`.
    """
    return in_parallel(lambda artifact: _check(connections, artifact), artifacts)


def missing_references(
    references: Iterable[str], hosts: Iterable[str], artifacts: Iterable[Artifact]
) -> list[str]:
    """Return the image references that the private registry does not have by the list.

    Parameters
    ----------
    references : iterable of str
        As manifests give them.
    hosts : iterable of str
        Host names of the private registry.
    artifacts : iterable of Artifact
        The list.

    Returns
    -------
    list of str
        Sorted, each once: of another registry, or in no repository, tag or digest of the list.
    """
    known = {
        (f"{host}/{artifact.repository}", artifact.tag, artifact.digest)
        for artifact in artifacts
        for host in hosts
        if artifact.kind is Kind.IMAGE
    }

    def is_known(reference: str) -> bool:
        named, _, digest = reference.partition("@")
        repository, tag = _split_tag(named)
        return any(
            repository == at and (tag in ("", its_tag)) and (digest in ("", its_digest))
            for at, its_tag, its_digest in known
        )

    return sorted({r for r in references if not is_known(r)})


def image_references(document: Any) -> set[str]:
    """Return every image that a manifest's containers name, however deep they lie."""
    found: set[str] = set()
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key in _CONTAINERS and isinstance(value, list | tuple):
                found |= {str(c["image"]) for c in value if isinstance(c, Mapping) and "image" in c}
            found |= image_references(value)
    elif isinstance(document, list | tuple):
        for value in document:
            found |= image_references(value)
    return found


def _check(connections: Connections, artifact: Artifact) -> Check:
    try:
        finding = examine(connections, artifact)
        if finding.problem is not None:
            return Check(artifact, finding.found, finding.problem)
        if finding.state is State.MISSING:
            return Check(
                artifact,
                problem=f"{artifact.key}: missing in {connections.destination(artifact)};"
                " run sonic-eks mirror run",
            )
        destination = connections.destination(artifact)
        for child in destination.manifest(finding.found or artifact.tag).children:
            if destination.head(child.digest) is None:
                return Check(
                    artifact,
                    finding.found,
                    f"{artifact.key}: the index is there but not its {child.platform or 'part'}"
                    f" {child.digest}; delete the tag and run sonic-eks mirror run",
                )
    except SonicEksError as error:
        return Check(artifact, problem=f"{artifact.key}: {error}")
    return Check(artifact, finding.found)


def _split_tag(reference: str) -> tuple[str, str]:
    repository, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:  # that colon begins a port
        return reference, ""
    return repository, tag
