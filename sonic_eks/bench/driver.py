"""Load on an event loop: generations begin when they are due, and each leaves a record.

Time is that of the running event loop, which a test may replace by one that is exact.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sonic_eks.bench.plan import Target
from sonic_eks.bench.protocol import Transport
from sonic_eks.bench.record import Failure, Generation, Outcome, Record

LEAD_SECONDS = 0.5
"""Time before a generation is due at which its connection is made ready."""

_STAGGER_SECONDS = 0.005
_MOST_STAGGER_SECONDS = 5.0
"""Time between the first connections of a closed loop, and between the first and the last."""

PAUSE_SECONDS = 0.1
"""Pause of a closed loop after a failure, so that a service that refuses is not flooded."""


@dataclass
class Driver:
    """Runs generations and keeps their records.

    Attributes
    ----------
    records : list of Record
        Of every generation that ended, in the order of their ends.
    late_seconds : list of float
        How late the client itself was, for each generation of an open loop whose connection was
        ready in time.
    ended, failed : int
        Counted generations that ended, and those of them that did not complete.
    on_steady : callable
        Called when the first counted generation of a closed loop begins.
    on_over : callable
        Called when the last counted one has ended, before those are stopped that kept up the load.
    """

    target: Target
    transport: Transport
    texts: Iterator[str]
    start: float
    records: list[Record] = field(default_factory=list)
    late_seconds: list[float] = field(default_factory=list)
    ended: int = 0
    failed: int = 0
    on_steady: Callable[[], None] = lambda: None
    on_over: Callable[[], None] = lambda: None

    async def open_loop(self, offsets: Sequence[tuple[int, float]]) -> None:
        """Begin each generation at its moment, whatever became of those before.

        Parameters
        ----------
        offsets : sequence of (int, float)
            Number and moment of each, in seconds since the start, in order.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            for number, offset in offsets:
                scheduled = self.start + offset
                await asyncio.sleep(scheduled - LEAD_SECONDS - loop.time())
                generation = self._generation(number, scheduled, counted=True)
                tasks.create_task(self._run(generation, wait=True))

    async def closed_loop(self, concurrency: int, count: int) -> None:
        """Keep `concurrency` generations in progress until `count` have been counted.

        Counted is what begins after every slot has had a generation, so that connections are open
        and the load is steady; not counted is also what only keeps up the load while the last
        of the counted ones run.
        """
        loop = asyncio.get_running_loop()
        warming, begun, left = concurrency, 0, count

        async def slot(index: int) -> None:
            nonlocal warming, begun, left
            warm = False
            try:
                await asyncio.sleep(index * stagger)
                while left:
                    counted = not warming and begun < count
                    if counted and not begun:
                        self.on_steady()
                    number = begun if counted else -1
                    begun += counted
                    generation = self._generation(number, loop.time(), counted=counted)
                    completed = await self._run(generation, wait=False)
                    left -= counted
                    warming -= not warm
                    warm = True
                    if not completed:
                        await asyncio.sleep(PAUSE_SECONDS)
            finally:
                done.set()

        done = asyncio.Event()
        stagger = min(_STAGGER_SECONDS, _MOST_STAGGER_SECONDS / concurrency)
        await asyncio.sleep(self.start - loop.time())
        slots = [asyncio.create_task(slot(index)) for index in range(concurrency)]
        try:
            if count:
                await done.wait()
                self.on_over()
        finally:
            for task in slots:
                task.cancel()
            ends = await asyncio.gather(*slots, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def _generation(self, number: int, scheduled: float, *, counted: bool) -> Generation:
        return Generation(number, uuid.uuid4().hex, next(self.texts), counted, scheduled)

    async def _run(self, generation: Generation, *, wait: bool) -> bool:
        """Run one generation; return whether it completed."""
        outcome, detail = Outcome.STOPPED, ""
        try:
            await self._say(generation, wait=wait)
            outcome = Outcome.COMPLETED
        except Failure as failure:
            outcome, detail = failure.outcome, failure.said(self.target.key)
        finally:
            self.records.append(
                Record.of(
                    generation,
                    outcome=outcome,
                    detail=detail,
                    start=self.start,
                    end=asyncio.get_running_loop().time(),
                    bytes_per_second=self.target.bytes_per_second,
                    buffer_seconds=self.target.playback_buffer_seconds,
                )
            )
            self.ended += generation.counted
            self.failed += generation.counted and outcome is not Outcome.COMPLETED
        return outcome is Outcome.COMPLETED

    async def _say(self, generation: Generation, *, wait: bool) -> None:
        loop = asyncio.get_running_loop()
        reservation = await self.transport.reserve()
        generation.connect_seconds = reservation.connect_seconds
        try:
            if not wait:
                # A closed loop has no schedule: it is due once its connection is there.
                generation.scheduled = loop.time()
            elif generation.scheduled > loop.time():
                await asyncio.sleep(generation.scheduled - loop.time())
                self.late_seconds.append(loop.time() - generation.scheduled)
            await reservation.generate(generation)
        finally:
            reservation.release()
