"""``python -m sonic_eks.mirror``: copy a list, as the build of a deployment does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.artifact import read_list
from sonic_eks.mirror.aws import connect
from sonic_eks.mirror.copier import Copier, Outcome, Status
from sonic_eks.mirror.progress import in_bytes


def main(arguments: list[str] | None = None) -> int:
    """Copy every artifact of a list; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m sonic_eks.mirror", description=main.__doc__)
    parser.add_argument("list", type=Path, help="file that `write_list` wrote")
    parser.add_argument("--registry", required=True, help="host of the private registry")
    parser.add_argument("--parallel", type=int, default=4, help="most transfers at a time")
    options = parser.parse_args(arguments)
    try:
        artifacts = read_list(options.list)
        connections = connect(options.registry, parallel=options.parallel)
    except SonicEksError as error:
        _say(f"sonic-eks: {error}", sys.stderr)
        return error.exit_status
    try:
        outcomes = Copier(connections, finished=_print_outcome).run(artifacts)
    except KeyboardInterrupt:
        _say("sonic-eks: interrupted; run it again to go on", sys.stderr)
        return 130
    failures = [outcome for outcome in outcomes if outcome.status is Status.FAILED]
    for outcome in failures:
        _say(f"sonic-eks: {outcome.message}", sys.stderr)
    return 1 if failures else 0


def _print_outcome(outcome: Outcome) -> None:
    if outcome.status is Status.FAILED:
        _say(f"failed   {outcome.artifact.key}")
        return
    _say(
        f"{outcome.status.value:<8} {outcome.artifact.key} {outcome.artifact.tag}"
        f" {outcome.digest} {in_bytes(outcome.sent_bytes)} sent"
    )


def _say(line: str, stream: TextIO | None = None) -> None:
    # A build's log shows a line when it is flushed.
    print(line, file=stream or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
