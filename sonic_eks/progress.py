"""Progress of what a person waits for: drawn on a terminal, nothing in a pipe."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import IO, Any, Protocol, Self


class LineReporter(Protocol):
    """Hears how far something is."""

    def show(self, text: str) -> None:
        """Replace what was said before."""


class _Drawn:
    """Something that rich draws between the beginning and the end of a ``with``."""

    def __init__(self, stream: IO[str], text: str, *columns: Any, total: int | None) -> None:
        # Imported late: rich takes 0.1 s, which a command that draws nothing need not wait for.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress  # noqa: PLC0415

        self._progress = Progress(
            *columns, console=Console(file=stream), transient=True, disable=not stream.isatty()
        )
        self._task = self._progress.add_task(text, total=total)

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

    def show(self, text: str) -> None:
        """Replace the text."""
        self._progress.update(self._task, description=text)


class TerminalLine(_Drawn):
    """A spinner, what is waited for, and the time since the start.

    Parameters
    ----------
    stream : file
        Where it is drawn; nothing is unless it is a terminal.
    text : str
        What is waited for at first.
    """

    def __init__(self, stream: IO[str], text: str = "looking") -> None:
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        # What a server says is text, not markup.
        words = TextColumn("{task.description}", markup=False)
        super().__init__(stream, text, SpinnerColumn(), words, TimeElapsedColumn(), total=None)


class TerminalBar(_Drawn):
    """A bar with bytes, rate and time left; called from several threads.

    Parameters
    ----------
    stream : file
        Where it is drawn; nothing is unless it is a terminal.
    text : str
        What is done to the bytes.
    """

    def __init__(self, stream: IO[str], text: str = "copying") -> None:
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        super().__init__(
            stream,
            text,
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            total=0,
        )
        self._text = text
        self._lock = threading.Lock()
        self._expected = 0

    def expect(self, size: int) -> None:
        """Lengthen the bar."""
        with self._lock:
            self._expected += size
            self._progress.update(self._task, total=self._expected)

    def advance(self, size: int) -> None:
        """Fill the bar; what `show` said is over then."""
        self._progress.update(self._task, advance=size, description=self._text)
