"""What is mirrored: one image or chart of the list, as data that a build can read too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sonic_eks.errors import SonicEksError
from sonic_eks.upstream import Kind


@dataclass(frozen=True)
class Artifact:
    """An image or chart in the deployment's private registry.

    Attributes
    ----------
    name : str
        Name in this project.
    kind : Kind
        Image or chart.
    source : str or None
        Upstream reference without the tag; None while the vendor's registry is not configured.
    tag : str
        The pinned version, the same upstream and here.
    component : str
        What needs it.
    repository : str
        Name of the ECR repository.
    digest : str or None
        Digest of what lies under the tag here, from the lock file.
    source_digest : str or None
        Digest upstream, from the lock file: it differs from `digest` when platforms are chosen,
        and is that of the packaged chart for a Helm repository.
    platforms : tuple of str
        Platforms to copy, such as ``linux/amd64``; empty: all.
    secret_arn : str or None
        Secrets Manager secret with the upstream's credentials.
    needed : str
        Which configurations need it, for people.
    """

    name: str
    kind: Kind
    source: str | None
    tag: str
    component: str
    repository: str
    digest: str | None = None
    source_digest: str | None = None
    platforms: tuple[str, ...] = ()
    secret_arn: str | None = None
    needed: str = "always"

    @property
    def key(self) -> str:
        """Unique name over images and charts, as in the lock file."""
        return f"{self.kind.value}/{self.name}"


def write_list(artifacts: Iterable[Artifact]) -> str:
    """Return the list as JSON that `read_list` reads; the same list gives the same text."""
    return json.dumps([asdict(artifact) for artifact in artifacts], indent=2, sort_keys=True) + "\n"


def read_list(path: Path) -> tuple[Artifact, ...]:
    """Read a list that `write_list` wrote.

    Raises
    ------
    SonicEksError
        When the file cannot be read or is no such list (exit status 2).
    """
    try:
        rows = json.loads(path.read_text("utf-8"))
        if not isinstance(rows, list):
            raise TypeError("a list is expected at the top")
        return tuple(_artifact(row) for row in rows)
    except OSError as error:
        raise SonicEksError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise SonicEksError(f"{path}: not a list of artifacts: {error}") from None


def _artifact(row: dict[str, Any]) -> Artifact:
    return Artifact(
        **{**row, "kind": Kind(row["kind"]), "platforms": tuple(row.get("platforms", ()))}
    )
