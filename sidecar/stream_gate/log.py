"""The gate's log: JSON lines that nothing waits for."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time

_STDOUT = 1


def wait_for_no_reader() -> None:
    """Have lines dropped when nobody reads them, as on a node whose disk is full.

    A gate that waited would answer no probe, and its pod would get no callers.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(_STDOUT).st_mode):
            os.set_blocking(_STDOUT, False)


def log(event: str, **fields: object) -> None:
    """Write one JSON line; only what the gate itself knows, never what a client sent."""
    line = json.dumps({"time": round(time.time(), 3), "event": event, **fields}) + "\n"
    # Written at once and unbuffered: a pipe takes a line of up to 4,096 bytes whole or not at all.
    # A log that is closed or full must not end a drain.
    with contextlib.suppress(OSError):
        os.write(_STDOUT, line.encode())
