"""Progress: bytes and time left on a terminal, nothing in a pipe."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import IO, Protocol, Self


class Reporter(Protocol):
    """Hears of a run; called from several threads."""

    def expect(self, size: int) -> None:
        """Count bytes that are to be had."""

    def advance(self, size: int) -> None:
        """Count bytes that are there now; negative when a transfer starts over."""


class Silent:
    """Says nothing."""

    def expect(self, size: int) -> None:
        """Count nothing."""

    def advance(self, size: int) -> None:
        """Count nothing."""


class TerminalBar:
    """A bar with bytes, rate and time left.

    Parameters
    ----------
    stream : file
        Where it is drawn; nothing is unless it is a terminal.
    """

    def __init__(self, stream: IO[str]) -> None:
        # Imported late: rich takes 0.1 s and a build has no use for it.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=stream),
            transient=True,
            disable=not stream.isatty(),
        )
        self._task = self._progress.add_task("copying", total=0)
        self._lock = threading.Lock()
        self._expected = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def expect(self, size: int) -> None:
        """Lengthen the bar."""
        with self._lock:
            self._expected += size
            self._progress.update(self._task, total=self._expected)

    def advance(self, size: int) -> None:
        """Fill the bar."""
        self._progress.update(self._task, advance=size)


def in_bytes(size: int) -> str:
    """Render a number of bytes for people.

    Examples
    --------
    >>> in_bytes(52_000 * 1024 * 1024)
    '50.8 GiB'
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
