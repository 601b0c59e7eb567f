"""The list as a table for the documentation."""

from __future__ import annotations

from collections.abc import Iterable

from sonic_eks.mirror.artifact import Artifact

_COLUMNS = ("artifact", "kind", "version", "upstream", "needed by", "needed when")


def markdown_table(artifacts: Iterable[Artifact]) -> str:
    """Return a Markdown table, a row for each artifact in the list's order.

    Parameters
    ----------
    artifacts : iterable of Artifact
        The list.
    """
    rows = [_COLUMNS, ("---",) * len(_COLUMNS)]
    rows += [
        (
            artifact.name,
            artifact.kind.value,
            artifact.tag,
            f"`{artifact.source.removeprefix('oci://')}`" if artifact.source else "the vendor's",
            artifact.component,
            artifact.needed,
        )
        for artifact in artifacts
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
