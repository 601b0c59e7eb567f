"""Progress of a measurement: one line that is redrawn on a terminal, nothing in a pipe."""

from __future__ import annotations

from sonic_eks.progress import LineReporter


class RunProgress:
    """Says which run is on and how far it is."""

    def __init__(self, line: LineReporter) -> None:
        self._line = line
        self._what, self._total = "", 0

    def begin(self, what: str, total: int) -> None:
        """See `run.Reporter`."""
        self._what, self._total = what, total
        self.advance(0, 0)

    def advance(self, ended: int, failed: int) -> None:
        """See `run.Reporter`."""
        failures = f", {failed} failed" if failed else ""
        self._line.show(f"{self._what}: {ended} of {self._total}{failures}")
