"""Entry point of `sonic-eks`.

It imports little, so that Ctrl-C in the second in which the commands load is one line too.
"""

from __future__ import annotations

import io
import os
import sys

from sonic_eks.cli.output import output_failed
from sonic_eks.errors import INTERRUPTED


def main() -> None:
    """Run the command line; the process exits 0, 1 (problem found), 2 (bad input), 130 (Ctrl-C)."""
    try:
        status = _run()
    except KeyboardInterrupt:
        print("sonic-eks: interrupted", file=sys.stderr)
        status = INTERRUPTED
    sys.exit(status)


def _run() -> int:
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        # What a configuration holds is UTF-8, whatever the locale says.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    from sonic_eks.cli.app import run

    status = run()
    try:
        sys.stdout.flush()
    except OSError as error:
        status = max(status, output_failed(error))
    return status


def _open_closed() -> None:
    """Send what a shell closed (``>&-``) nowhere: Python has no stream for it."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # In this order each takes its own number, which no file that opens later may have.
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
