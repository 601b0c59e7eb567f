"""`sonic-eks docs`: the references under docs/ that are made from the code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sonic_eks.errors import SonicEksError
from sonic_eks.reference import configuration_reference


def _lifecycle() -> str:
    # The notice of jsii about old releases of Node.js is not what this command is asked for.
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    # Not at the top: cdk8s takes a second to import, which other commands need not wait for.
    from sonic_eks.catalogue import Catalogue
    from sonic_eks.config import Configuration
    from sonic_eks.k8s.render import render_charts
    from sonic_eks.lifecycle.page import lifecycle_page

    values = {
        "deployment": {"name": "sonic", "region": "us-east-1"},
        "network": {"zones": ["us-east-1a", "us-east-1b"]},
    }
    defaults = Configuration.model_validate(values)
    return lifecycle_page(render_charts(defaults, Catalogue(defaults)))


_PAGES = {"configuration.md": configuration_reference, "lifecycle.md": _lifecycle}


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
