"""First audio against concurrency, as measured: a line between points, and nothing beyond them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

NOISE = 0.05
"""Share by which a measured percentile may fall without being called a fall."""


class NoCurve(ValueError):  # noqa: N818 (says what the points lack)
    """Points that make no curve; the text says what a curve needs, and what was given."""


@dataclass(frozen=True)
class Curve:
    """A figure that never falls as concurrency rises.

    Attributes
    ----------
    points : tuple of (float, float)
        Concurrency and figure, such as first audio in milliseconds, by rising concurrency. Where
        GPUs share what is in progress, a GPU's share need not be whole.

    Examples
    --------
    >>> curve = Curve.of([(1, 55.0), (2, 55.0), (4, 115.0)], "p95")
    >>> curve.at(3), curve.at(5), curve.within(80)
    (85.0, None, 2)
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, float | None]], name: str) -> Self:
        """Return the curve through points; one without a figure ends it.

        Two measurements of one figure differ: one that is a little below an earlier one counts as
        that one.

        Parameters
        ----------
        points : iterable of (float, float or None)
            By rising concurrency. Those without a figure before the first one that has it are
            passed over. Behind it, a gap may hide anything: what follows is left out.
        name : str
            What the figure is called in a message.

        Raises
        ------
        NoCurve
            With fewer than two points, or where the figure falls by more than `NOISE`.
        """
        known: list[tuple[float, float]] = []
        for concurrency, figure in points:
            if figure is not None:
                known.append((concurrency, figure))
            elif known:
                break
        if len(known) < 2:
            places = f", at {known[0][0]:g}" if known else ""
            raise NoCurve(f"two concurrencies or more with {name}; it has {len(known)}{places}")
        return cls(tuple(_rising(known, name)))

    @property
    def first(self) -> tuple[float, float]:
        """The lowest concurrency, and the figure there: the floor."""
        return self.points[0]

    @property
    def last(self) -> tuple[float, float]:
        """The highest concurrency, and the figure there."""
        return self.points[-1]

    def at(self, concurrency: float) -> float | None:
        """Return the figure at a concurrency; None outside of what was measured."""
        if not self.first[0] <= concurrency <= self.last[0]:
            return None
        index = min(bisect_right(self.points, (concurrency, math.inf)), len(self.points) - 1)
        (before, low), (after, high) = self.points[index - 1], self.points[index]
        return low + (high - low) * (concurrency - before) / (after - before)

    def within(self, budget: float) -> int:
        """Return the highest whole concurrency whose figure is within a budget; 0 for none."""
        if self.first[1] > budget:
            return 0
        if self.last[1] <= budget:
            return math.floor(self.last[0])
        index = next(i for i, (_, figure) in enumerate(self.points) if figure > budget)
        (before, low), (after, high) = self.points[index - 1], self.points[index]
        share = (budget - low) / (high - low)
        # A figure that meets the budget exactly is within it, whatever the division rounds to.
        return math.floor(before + (after - before) * share + 1e-9)


def _rising(known: list[tuple[float, float]], name: str) -> Iterator[tuple[float, float]]:
    """Give points whose figures rise: each is at least the highest before it."""
    at, highest = known[0]
    for concurrency, figure in known:
        if figure < highest * (1 - NOISE):
            raise NoCurve(
                f"{name} that does not fall as concurrency rises; it is {highest:g} at {at:g} and"
                f" {figure:g} at {concurrency:g}: measure these again, with more generations"
            )
        if figure > highest:
            at, highest = concurrency, figure
        yield concurrency, highest
