"""The highest concurrency that keeps an objective: doubling, bisection, confirmation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

VERDICT = 2
"""Runs of one outcome that decide: the best of three."""


@dataclass
class Search:
    """Search by runs that pass or fail, each of which noise may turn around.

    Parameters
    ----------
    passes : callable
        Runs once at a concurrency and tells whether the objective was kept.
    maximum : int
        Highest concurrency to try.
    """

    passes: Callable[[int], Awaitable[bool]]
    maximum: int
    _seen: dict[int, list[bool]] = field(default_factory=lambda: defaultdict(list))

    async def highest(self) -> int:
        """Return the highest concurrency that keeps it; 0 when one generation does not.

        A concurrency is confirmed when two of at most three runs agree; the answer is confirmed,
        and so is that the next one fails.
        """
        best = await self._bracket()
        while True:
            while best and not await self._confirmed(best):
                best -= 1
            if best >= self.maximum or not await self._confirmed(best + 1):
                return best
            best += 1

    async def _bracket(self) -> int:
        """Return the highest concurrency that passed a single run, by bisection."""
        best, worst = 0, min(1, self.maximum)
        while worst <= self.maximum and await self._run(worst):
            best = worst
            if worst == self.maximum:
                return best
            worst = min(worst * 2, self.maximum)
        while worst - best > 1:
            middle = (best + worst) // 2
            if await self._run(middle):
                best = middle
            else:
                worst = middle
        return best

    async def _run(self, concurrency: int) -> bool:
        passed = await self.passes(concurrency)
        self._seen[concurrency].append(passed)
        return passed

    async def _confirmed(self, concurrency: int) -> bool:
        """Whether most runs pass; adds runs until one side has enough."""
        seen = self._seen[concurrency]
        while max(seen.count(True), seen.count(False)) < VERDICT:
            await self._run(concurrency)
        return seen.count(True) >= VERDICT
