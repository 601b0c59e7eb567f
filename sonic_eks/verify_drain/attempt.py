"""One generation of an experiment, and what many of them at the same time say."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from sonic_eks.bench.record import Generation, Outcome
from sonic_eks.verify_drain.findings import CapacitySeen, OverCapacity

# Neither what was cancelled nor what this client no longer waited for.
_REFUSALS = (Outcome.REJECTED, Outcome.ERROR, Outcome.CLOSED, Outcome.UNREACHABLE)


@dataclass
class Attempt:
    """One generation and what became of it.

    Attributes
    ----------
    began, end : float
        When its connection was begun, and when it was over.
    """

    generation: Generation
    outcome: Outcome = Outcome.STOPPED
    detail: str = ""
    began: float = 0.0
    end: float = 0.0
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.task is not None and self.task.done()

    @property
    def completed(self) -> bool:
        """Whether all of it arrived."""
        return self.outcome is Outcome.COMPLETED

    @property
    def delivered(self) -> bool:
        """Whether audio has arrived."""
        return bool(self.generation.parts)

    @property
    def refused(self) -> bool:
        """Whether it was not begun."""
        return not self.delivered and self.outcome in _REFUSALS

    @property
    def cut(self) -> bool:
        """Whether it failed once it had begun."""
        return self.delivered and self.outcome not in (Outcome.COMPLETED, Outcome.STOPPED)

    @property
    def failure(self) -> str:
        """What its failure said."""
        return f"{self.outcome}: {self.detail}"

    @property
    def span(self) -> tuple[float, float]:
        """Moments of its first and its last audio."""
        parts = self.generation.parts or [(0.0, 0)]
        return parts[0][0], parts[-1][0]


async def all_ended(attempts: Sequence[Attempt]) -> None:
    """Wait for the end of all of them, by themselves or cancelled."""
    tasks = [one.task for one in attempts if one.task is not None]
    if tasks:
        # To await a task and forgive its cancellation would forgive Ctrl-C as well.
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def go_on() -> None:
    """Raise the cancellation of the caller, also one that something took for its own.

    For the moment before what cannot be taken back: after Ctrl-C nothing is ended.
    """
    await asyncio.sleep(0)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await what has to be done, also when the caller is cancelled meanwhile, once."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def classify_capacity(attempts: Sequence[Attempt]) -> CapacitySeen:
    """Return what a burst of generations at the same moment says."""
    count = len(attempts)
    together = most_together([one.span for one in attempts if one.delivered])
    failed = [one for one in attempts if not one.completed]
    if failed and all(one.outcome is Outcome.TIMEOUT and not one.delivered for one in failed):
        said = f"{len(failed)} of {count} got no audio within --timeout"
        if len(failed) < count:
            return CapacitySeen(OverCapacity.QUEUES, count, together, said)
    if failed:
        rejected = [one for one in failed if one.outcome is Outcome.REJECTED]
        kind = OverCapacity.REJECTS if len(rejected) == len(failed) else OverCapacity.FAILS
        one = (rejected or failed)[0]
        return CapacitySeen(kind, count, together, one.failure)
    # Some began only when others had ended, as a queue does: sharing makes all of them slower.
    first_end = min(one.span[1] for one in attempts)
    waited = sum(one.span[0] >= first_end for one in attempts)
    if waited and together < count:
        return CapacitySeen(OverCapacity.QUEUES, count, together)
    return CapacitySeen(OverCapacity.TAKES_ALL, count, together)


def most_together(spans: Sequence[tuple[float, float]]) -> int:
    """Return the most spans that hold a common moment."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most
