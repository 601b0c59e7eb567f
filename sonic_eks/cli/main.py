"""Entry point of `sonic-eks`: sub-commands, and errors as one line with an exit status."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sonic_eks import __version__
from sonic_eks.cli import config as config_command
from sonic_eks.cli import mirror
from sonic_eks.cli.docs import docs
from sonic_eks.cli.options import help_without_command
from sonic_eks.cli.render import render
from sonic_eks.cli.summary import summary
from sonic_eks.errors import BAD_INPUT, SonicEksError, one_line

app = typer.Typer(
    name="sonic-eks",
    help="Operate a deployment of Cartesia Sonic on Amazon EKS.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(config_command.app, name="config")
app.add_typer(mirror.app, name="mirror")
app.command()(docs)
app.command()(render)
app.command()(summary)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version or, without a command, the help."""
    if version:
        print(__version__)
        raise typer.Exit
    help_without_command(context)


def main() -> None:
    """Run the command line; the process exits 0, 1 (problem found) or 2 (bad input)."""
    try:
        # With standalone_mode off Typer hands errors over, so that each can be one line.
        status = app(standalone_mode=False)
    except SonicEksError as error:
        print(*error.lines, sep="\n", file=sys.stderr)
        sys.exit(error.exit_status)
    except typer.TyperException as error:
        print(f"sonic-eks: {one_line(error.format_message())}; see --help", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        print("sonic-eks: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away, as `| head` does: nothing to report, nothing left to flush.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
