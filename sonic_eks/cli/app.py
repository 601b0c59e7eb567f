"""The commands of `sonic-eks`, and errors as one line with an exit status."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sonic_eks import __version__
from sonic_eks.cli import config as config_command
from sonic_eks.cli import mirror
from sonic_eks.cli.bench import bench
from sonic_eks.cli.docs import docs
from sonic_eks.cli.options import help_without_command
from sonic_eks.cli.output import output_failed
from sonic_eks.cli.plan import plan
from sonic_eks.cli.render import render
from sonic_eks.cli.simulate import simulate
from sonic_eks.cli.summary import summary
from sonic_eks.cli.teardown import teardown
from sonic_eks.cli.verify_drain import verify_drain
from sonic_eks.errors import BAD_INPUT, INTERRUPTED, SonicEksError, one_line

app = typer.Typer(
    name="sonic-eks",
    help="Operate a deployment of Cartesia Sonic on Amazon EKS.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(config_command.app, name="config")
app.add_typer(mirror.app, name="mirror")
app.command()(bench)
app.command()(docs)
app.command()(plan)
app.command()(render)
app.command()(simulate)
app.command()(summary)
app.command()(teardown)
app.command()(verify_drain)


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


def run() -> int:
    """Run the command line and return its status; each error is a line."""
    try:
        # With standalone_mode off Typer hands errors over, so that each can be one line.
        status = app(standalone_mode=False)
    except SonicEksError as error:
        print(*error.lines, sep="\n", file=sys.stderr)
        return error.exit_status
    except typer.TyperException as error:
        print(f"sonic-eks: {one_line(error.format_message())}; see --help", file=sys.stderr)
        return BAD_INPUT
    except (typer.Abort, KeyboardInterrupt):
        print("sonic-eks: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        return output_failed(error)
    except SystemExit:
        # Typer exits so, with status 1, when a reader of the output went away; nothing else does.
        return output_failed(BrokenPipeError())
    if status == INTERRUPTED:
        # Typer makes Ctrl-C into this status before anybody else hears of it.
        print("sonic-eks: interrupted", file=sys.stderr)
    return status if isinstance(status, int) else 0
