"""Progress of a copy, in bytes; `sonic_eks.progress` draws it."""

from __future__ import annotations

from typing import Protocol


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
