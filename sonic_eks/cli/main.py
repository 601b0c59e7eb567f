"""Entry point of `sonic-eks`: sub-commands, and errors as one line with an exit status."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from sonic_eks import __version__
from sonic_eks.cli import config as config_command
from sonic_eks.cli import mirror
from sonic_eks.cli.bench import bench
from sonic_eks.cli.docs import docs
from sonic_eks.cli.options import help_without_command
from sonic_eks.cli.output import give_up
from sonic_eks.cli.plan import plan
from sonic_eks.cli.render import render
from sonic_eks.cli.simulate import simulate
from sonic_eks.cli.summary import summary
from sonic_eks.cli.teardown import teardown
from sonic_eks.cli.verify_drain import verify_drain
from sonic_eks.errors import BAD_INPUT, INTERRUPTED, PROBLEM_FOUND, SonicEksError, one_line

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


def main() -> None:
    """Run the command line; the process exits 0, 1 (problem found), 2 (bad input), 130 (Ctrl-C)."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        # What a configuration holds is UTF-8, whatever the locale says.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    status = _run()
    try:
        sys.stdout.flush()
    except OSError as error:
        status = max(status, _output_failed(error))
    sys.exit(status)


def _open_closed() -> None:
    """Send what a shell closed (``>&-``) nowhere: Python has no stream for it."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # In this order each takes its own number, which no file that opens later may have.
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _run() -> int:
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
        return _output_failed(error)
    except SystemExit:
        # Typer exits so, with status 1, when a reader of the output went away; nothing else does.
        return _output_failed(BrokenPipeError())
    if status == INTERRUPTED:
        # Typer makes Ctrl-C into this status before anybody else hears of it.
        print("sonic-eks: interrupted", file=sys.stderr)
    return status if isinstance(status, int) else 0


def _output_failed(error: OSError) -> int:
    line = give_up(error)
    if line is None:
        return 0
    print(line, file=sys.stderr)
    return PROBLEM_FOUND


if __name__ == "__main__":
    main()
