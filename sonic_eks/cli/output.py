"""Standard output that takes no more."""

from __future__ import annotations

import os
import sys

from sonic_eks.errors import PROBLEM_FOUND


def give_up(error: OSError) -> str | None:
    """Send what is still to be printed nowhere; return what to say, if it is a problem.

    A reader that left is none.
    """
    # Python would try to write the rest once more while it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return None
    return f"sonic-eks: the output cannot be written: {error.strerror}"


def output_failed(error: OSError) -> int:
    """Give up standard output; return the status of a command that has no other."""
    line = give_up(error)
    if line is None:
        return 0
    print(line, file=sys.stderr)
    return PROBLEM_FOUND
