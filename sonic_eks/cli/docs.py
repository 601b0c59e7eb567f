"""`sonic-eks docs`: the references under docs/ that are made from the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonic_eks.errors import SonicEksError
from sonic_eks.reference import configuration_reference

_PAGES = {"configuration.md": configuration_reference}


def docs(
    out: Annotated[Path, typer.Option(help="Folder to write the pages to.")] = Path("docs"),
) -> None:
    """Write the generated pages of the documentation."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, page in _PAGES.items():
            (out / name).write_text(page(), encoding="utf-8")
    except OSError as error:
        raise SonicEksError(f"{out}: cannot be written: {error.strerror or error}") from None
