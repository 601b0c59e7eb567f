"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonic_eks.errors import BAD_INPUT

ConfigArgument = Annotated[
    Path, typer.Argument(help="The deployment's configuration file.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

DEFAULT_CONFIG = Path("config/default.yaml")


def help_without_command(context: typer.Context) -> None:
    """Print a group's help and exit 2 when no command of it was given."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(BAD_INPUT)
