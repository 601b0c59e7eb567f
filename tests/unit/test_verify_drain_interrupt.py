"""Ctrl-C at every moment of an experiment: it ends at once, and nothing is ended after it."""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from sonic_eks.bench.plan import Target
from sonic_eks.bench.record import Generation
from sonic_eks.verify_drain.attempt import Attempt, all_ended, go_on
from sonic_eks.verify_drain.experiment import Settings
from sonic_eks.verify_drain.subject import Subject
from tests import virtual_time
from tests.unit.test_verify_drain_world import OfWorld, World

SETTINGS = Settings(max_concurrency=4, watch_seconds=2.0, offer_seconds=1.0, pre_stop_seconds=1.0)

AT_ONCE_SECONDS = 0.1
NEVER = 10**9


class Interrupted:
    """A coroutine whose task is cancelled, as by Ctrl-C, at one of its awaits.

    Attributes
    ----------
    awaits : int
        How often it has waited.
    when : float or None
        When it was cancelled.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self.awaits = 0
        self.when: float | None = None

    @types.coroutine
    def run(self, inner: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Drive the coroutine, a step for each await."""
        error: BaseException | None = None
        while True:
            try:
                waited_for = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as end:
                return end.value
            self.awaits += 1
            if self.awaits == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                self.when = asyncio.get_running_loop().time()
            error = None
            try:
                yield waited_for
            except BaseException as raised:
                error = raised


class Acting(World):
    """A world that remembers when it was acted upon."""

    acts: list[float]

    async def announce_end(self, seconds: float) -> None:
        self.acts.append(self.now)
        await asyncio.sleep(0.05)
        await super().announce_end(seconds)

    async def terminate(self) -> None:
        self.acts.append(self.now)
        await super().terminate()

    async def leave(self) -> None:
        await asyncio.sleep(0.01)
        await super().leave()


def interrupted(way: str, at: int, *, pre_stop: bool) -> tuple[Acting, Interrupted, Any, float]:
    """Run an experiment; return also what it ended with, and when."""
    world = Acting(way, slots=3, long_seconds=3.0, exec_seconds=0.1, pre_stop=pre_stop)
    world.acts = []
    made = OfWorld(Target(url="http://h", key="k"), world, SETTINGS, lambda text: None)
    made.world = world
    driver = Interrupted(at)

    async def scenario() -> tuple[Any, float]:
        async def driven() -> Any:
            return await driver.run(made.run())

        task = asyncio.ensure_future(driven())
        await asyncio.wait({task})
        end = asyncio.get_running_loop().time()
        assert len(asyncio.all_tasks()) == 1, "nothing goes on behind it"
        return None if task.cancelled() else task.result(), end

    return world, driver, *virtual_time.run(scenario())


@pytest.mark.parametrize("pre_stop", [False, True])
@pytest.mark.parametrize("way", ["drain", "exit", "ignore"])
def test_a_cancellation_at_any_await_ends_it(way: str, pre_stop: bool) -> None:
    _, whole, found, _ = interrupted(way, NEVER, pre_stop=pre_stop)
    assert found is not None
    assert whole.awaits > 40
    for at in range(1, whole.awaits + 1):
        world, driver, found, end = interrupted(way, at, pre_stop=pre_stop)
        assert found is None, f"it went on after await {at} of {whole.awaits}"
        assert driver.when is not None
        assert end - driver.when <= AT_ONCE_SECONDS, at
        assert not any(act > driver.when for act in world.acts), at
        assert world.left or not world.acts, "what was marked is unmarked"


async def sleeping(seconds: float, error: Exception | None = None) -> None:
    await asyncio.sleep(seconds)
    if error is not None:
        raise error


def attempts(*works: Coroutine[Any, Any, None]) -> list[Attempt]:
    made = [Attempt(Generation(0, "c", "t", True, 0.0)) for _ in works]
    for one, work in zip(made, works, strict=True):
        one.task = asyncio.create_task(work)
    return made


def test_generations_that_were_cancelled_have_ended() -> None:
    async def scenario() -> None:
        await all_ended([])
        first, second = attempts(sleeping(1.0), sleeping(2.0))
        assert first.task is not None
        first.task.cancel()
        await all_ended([first, second])
        assert (first.ended, second.ended) == (True, True)

    virtual_time.run(scenario())


def test_what_a_generation_may_not_raise_is_raised() -> None:
    async def scenario() -> None:
        await all_ended(attempts(sleeping(2.0), sleeping(1.0, KeyError("a fault"))))

    with pytest.raises(KeyError, match="a fault"):
        virtual_time.run(scenario())


def test_a_cancellation_that_something_took_is_not_forgotten() -> None:
    """A library may take the caller's for its own; what cannot be taken back asks before."""

    async def scenario() -> None:
        await go_on()
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1.0)
        await go_on()

    with pytest.raises(asyncio.CancelledError):
        virtual_time.run(scenario())


class Eating(OfWorld):
    """Takes the cancellation of its caller for one of its own."""

    async def _others(self, subject: Subject) -> list[str]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(5.0)
        return []


@pytest.mark.parametrize("pre_stop", [False, True])
def test_nothing_is_ended_after_a_cancellation_that_was_taken(pre_stop: bool) -> None:
    world = World("exit", slots=3, long_seconds=3.0, pre_stop=pre_stop)
    made = Eating(Target(url="http://h", key="k"), world, SETTINGS, lambda text: None)
    made.world = world

    async def scenario() -> None:
        task = asyncio.ensure_future(made.run())
        # The burst of 2 takes 2 s, that of 4 another 2: then it looks for others.
        await asyncio.sleep(6.0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    virtual_time.run(scenario())
    assert (world.signalled, world.announced) == (None, False)
