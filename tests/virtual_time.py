"""An event loop whose clock jumps to the next timer, so that time in a test is exact and free."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Does not wait for timers, but moves the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("nothing left to wait for: the scenario would wait for ever")
        self.now += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs timers at once, in order, at exactly their moments."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def stand_still(self, seconds: float) -> None:
        """Let time go by in which nothing runs."""
        self._virtual.now += seconds


def stand_still(seconds: float) -> None:
    """Have the running loop, which is a virtual one, stand still."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.stand_still(seconds)


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, which begins at 0."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(scenario)
