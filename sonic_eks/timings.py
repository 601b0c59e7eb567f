"""Seconds that a synthesis spends in each phase, written where a benchmark asks for them.

Importing this module starts the clock, so import it before the libraries whose import counts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "SONIC_EKS_TIMINGS"
"""Environment variable that names the file to write; unset: nothing is written."""

_STARTED = time.perf_counter()


class Timings:
    """Collects wall-clock seconds by phase; what came before it is the phase ``import``."""

    def __init__(self) -> None:
        self.seconds = {"import": time.perf_counter() - _STARTED}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of a block under `name`."""
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started

    def write(self) -> None:
        """Write the seconds as JSON to the file that the environment names, if it does."""
        if target := os.environ.get(VARIABLE):
            Path(target).write_text(json.dumps(self.seconds), encoding="utf-8")
