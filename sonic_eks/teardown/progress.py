"""Progress of a teardown: one line that is redrawn on a terminal, nothing in a pipe."""

from __future__ import annotations

from types import TracebackType
from typing import IO, Protocol, Self


class Reporter(Protocol):
    """Hears how far a teardown is."""

    def show(self, text: str) -> None:
        """Replace what was said before."""


class TerminalLine:
    """A spinner, what is waited for, and the time since the start.

    Parameters
    ----------
    stream : file
        Where it is drawn; nothing is unless it is a terminal.
    """

    def __init__(self, stream: IO[str]) -> None:
        # Imported late: rich takes 0.1 s and a build has no use for it.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._progress = Progress(
            SpinnerColumn(),
            # What AWS says is text, not markup.
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
            disable=not stream.isatty(),
        )
        self._task = self._progress.add_task("looking", total=None)

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
        """Replace the line."""
        self._progress.update(self._task, description=text)
