"""The experiments: more generations than it can make, and SIGTERM with some in progress."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sonic_eks.bench.plan import Target
from sonic_eks.bench.process import transport_of
from sonic_eks.bench.protocol import Transport, longest_seconds
from sonic_eks.bench.record import Failure, Generation, Outcome
from sonic_eks.bench.texts import TEXTS
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.verify_drain.attempt import Attempt, all_ended, classify_capacity, go_on, to_its_end
from sonic_eks.verify_drain.doubts import doubt
from sonic_eks.verify_drain.findings import CapacitySeen, Findings, OverCapacity
from sonic_eks.verify_drain.subject import Subject
from sonic_eks.verify_drain.summary import Times, patience_of, sum_up
from sonic_eks.verify_drain.way import Address, Road, Way

_NEW_EVERY_SECONDS = 0.25
_SETTLE_SECONDS = 0.5
"""What is sent in this time after SIGTERM is a race and counts for nothing."""

_LOOK_SECONDS = 0.1

_MOST_GRACE_SECONDS = 3600.0
"""Longest grace period that a pod is given, should nobody be there to take it back."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How hard to try.

    Attributes
    ----------
    streams : int
        Generations in progress at SIGTERM; fewer where the capacity seen leaves no room for
        another one beside them.
    stream_characters : int
        Length of their text: they have to last for seconds.
    max_concurrency : int
        Most generations at a time, 2 at least.
    watch_seconds : float
        How long an idle server may take to end after SIGTERM.
    offer_seconds : float
        How long new work is offered after the old generations have ended.
    pre_stop_seconds : float
        How long new work is offered, at least, while the preStop hook runs.
    """

    streams: int = 4
    stream_characters: int = 1500
    max_concurrency: int = 64
    watch_seconds: float = 30.0
    offer_seconds: float = 3.0
    pre_stop_seconds: float = 5.0


@dataclass
class Experiment:
    """Experiments on one service.

    Parameters
    ----------
    target : Target
        The service, of which nothing but the subject serves.
    subject : Subject or None
        What gets SIGTERM; None: only what needs none is learned.
    settings : Settings
        How hard to try.
    say : callable
        Hears what is being done.
    way : Way, optional
        The way to the service; by default the target's address.
    """

    target: Target
    subject: Subject | None
    settings: Settings
    say: Callable[[str], None]
    way: Way | None = None
    _attempts: list[Attempt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._way = Address(self.target.url) if self.way is None else self.way

    async def run(self) -> Findings:
        """Do all of it; raises SonicEksError."""
        if self.subject is not None:
            await self.subject.check()
        try:
            findings = Findings(
                service=self.target.url,
                subject=self.subject.name if self.subject else None,
                when=datetime.now(UTC).date().isoformat(),
                longest_gap_seconds=0.0,
                capacity=await self._over_capacity(),
                direct=self._way.straight,
            )
            if self.subject is None:
                findings.notes.append("SIGTERM was not tried: neither --pod nor --pid was given")
            else:
                try:
                    await self._end(self.subject, findings)
                except SonicEksError as error:
                    # What was learned before is worth having.
                    findings.failed = str(error)
            findings.longest_gap_seconds = self._longest_gap()
            await go_on()
            return findings
        finally:
            await self._stop()

    # ---- over capacity

    async def _over_capacity(self) -> CapacitySeen:
        """Ask for twice as many at a time until it does not simply make all of them."""
        count = 2
        while True:
            self.say(f"{count} generations at a time")
            async with self._way.road() as road:
                attempts = [self._start(TEXTS[-1], road.url) for _ in range(count)]
                await all_ended(attempts)
                failed = not all(one.completed for one in attempts)
                if failed and (broken := await road.broken()):
                    raise SonicEksError(
                        f"kubectl port-forward ended under {count} generations, so they say"
                        f" nothing: {broken}; give URL, by another way",
                        exit_status=PROBLEM_FOUND,
                    )
            seen = classify_capacity(attempts)
            if seen.kind is not OverCapacity.TAKES_ALL or count >= self.settings.max_concurrency:
                return seen
            count = min(count * 2, self.settings.max_concurrency)

    # ---- the end

    async def _end(self, subject: Subject, findings: Findings) -> None:
        text = (" ".join(TEXTS) * (self.settings.stream_characters // 1000 + 1))[
            : self.settings.stream_characters
        ]
        self.say("long generations begin")
        # One slot stays free: to refuse new work for want of one would look like draining.
        streams = max(1, min(self.settings.streams, findings.capacity.together - 1))
        others = await self._others(subject)
        async with contextlib.AsyncExitStack() as stack:
            # Both now: without work for the seconds that they take, a preStop hook may end.
            first, second = [await self._roads(stack, streams) for _ in range(2)]
            old = await self._begin(text, first)
            try:
                if subject.has_pre_stop:
                    self.say("it is marked as going")
                    await go_on()
                    await subject.announce_end(self._longest(text))
                beside = await self._beside(old)
                served = sum(one.completed for one in beside), len(beside)
                if subject.has_pre_stop:
                    findings.pre_stop_served = served
                else:
                    findings.before_served = served
                    findings.notes.append("it has no preStop hook that lasts, so none was tried")
                # What is cut without SIGTERM too, or ends just then, would be no finding.
                _all_completed(old)
                old = await self._begin(text, second)
                self.say("SIGTERM")
                await go_on()
                await subject.terminate()
                signalled = asyncio.get_running_loop().time()
                new, exited = await self._watch(subject, old, signalled)
                watched = asyncio.get_running_loop().time() - signalled
                await _all_over(old, new)
            finally:
                await to_its_end(subject.leave())
        times = Times(signalled, exited, watched, subject.late_seconds, patience_of(beside))
        seen, refusals = sum_up(old, new, times)
        findings.sigterm = seen
        seen.doubt = doubt(findings.capacity, served, refusals, seen.new_waiting)
        seen.others = others or await self._others(subject)

    def _longest(self, text: str) -> float:
        """Longest time from its announced end to the end of the experiment, in seconds."""
        settings = self.settings
        idle = settings.pre_stop_seconds + settings.offer_seconds + settings.watch_seconds
        return min(idle + 3 * longest_seconds(self.target, text), _MOST_GRACE_SECONDS)

    async def _others(self, subject: Subject) -> list[str]:
        """Return what may have served instead of the subject."""
        return [] if self._way.straight else await subject.others()

    async def _roads(self, stack: contextlib.AsyncExitStack, count: int) -> list[Road]:
        return [await stack.enter_async_context(self._way.road()) for _ in range(count)]

    async def _begin(self, text: str, roads: Sequence[Road]) -> list[Attempt]:
        """Begin generations, each on a road of its own; return once each has delivered audio.

        Raises
        ------
        SonicEksError
            When one fails or ends first: it cannot be built upon.
        """
        attempts = [self._start(text, road.url) for road in roads]
        while not all(one.delivered for one in attempts):
            for one in attempts:
                if one.ended:
                    _all_completed([one])
            await asyncio.sleep(_LOOK_SECONDS / 10)
        if any(one.ended for one in attempts):
            raise SonicEksError(
                "the generations ended before the experiment; give a longer --characters",
                exit_status=PROBLEM_FOUND,
            )
        return attempts

    async def _beside(self, old: Sequence[Attempt]) -> list[Attempt]:
        """Offer new work for a time, and until the old is over; return what says something."""
        attempts: list[Attempt] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self.settings.pre_stop_seconds
        while loop.time() < end or not all(one.ended for one in old):
            if all(one.ended for one in attempts):
                attempts.append(self._offer(TEXTS[0]))
            await asyncio.sleep(_NEW_EVERY_SECONDS)
        await all_ended(attempts)
        return [one for one in attempts if one.outcome is not Outcome.STOPPED]

    async def _watch(
        self, subject: Subject, old: list[Attempt], signalled: float
    ) -> tuple[list[Attempt], float | None]:
        """Offer new work until the old is over and some time more; then wait for the end.

        Returns the new work, and when the subject was seen to have ended.
        """
        loop = asyncio.get_running_loop()
        new: list[Attempt] = []
        stop_new = idle_since = None
        due = signalled + _SETTLE_SECONDS
        ending = asyncio.create_task(_end_of(subject))
        try:
            while not ending.done():
                now = loop.time()
                if stop_new is None and all(one.ended for one in old):
                    stop_new = now + self.settings.offer_seconds
                if stop_new is None or now < stop_new:
                    # One at a time, so that they are not over its capacity together.
                    if now >= due and all(one.ended for one in new):
                        new.append(self._offer(TEXTS[0]))
                        due = now + _NEW_EVERY_SECONDS
                elif idle_since is None:
                    if all(one.ended for one in new):
                        idle_since = now
                elif now - idle_since >= self.settings.watch_seconds:
                    break
                await asyncio.wait({ending}, timeout=_LOOK_SECONDS)
            return new, ending.result() if ending.done() else None
        finally:
            ending.cancel()
            # Nothing looks on, and what a last look failed with is no news.
            await asyncio.gather(ending, return_exceptions=True)

    # ---- one generation

    def _attempt(self, text: str) -> Attempt:
        loop = asyncio.get_running_loop()
        number = len(self._attempts)
        one = Attempt(Generation(0, f"verify-{number}", text, True, loop.time()))
        self._attempts.append(one)
        return one

    def _start(self, text: str, url: str) -> Attempt:
        """Begin a generation on a connection of its own."""
        one = self._attempt(text)
        transport = transport_of(replace(self.target, url=url, contexts_per_socket=1))
        one.task = asyncio.create_task(self._say(one, transport))
        return one

    def _offer(self, text: str) -> Attempt:
        """Begin a generation on a road of its own, once that is open."""
        one = self._attempt(text)
        one.task = asyncio.create_task(self._say_on_a_road(one))
        return one

    async def _say_on_a_road(self, one: Attempt) -> None:
        try:
            async with self._way.road() as road:
                target = replace(self.target, url=road.url, contexts_per_socket=1)
                await self._say(one, transport_of(target))
                # What the road's own end made of it says nothing of the service, unless the
                # service is why: it took no connection.
                broken = "" if one.completed else await road.broken()
                if broken and "refused" not in broken.lower():
                    one.outcome, one.detail = Outcome.STOPPED, broken
        except SonicEksError as error:
            one.detail = str(error)

    async def _say(self, one: Attempt, transport: Transport) -> None:
        loop = asyncio.get_running_loop()
        one.began = loop.time()
        try:
            reservation = await transport.reserve()
            try:
                await reservation.generate(one.generation)
            finally:
                reservation.release()
            one.outcome = Outcome.COMPLETED
        except Failure as failure:
            one.outcome, one.detail = failure.outcome, failure.said(self.target.key)
        finally:
            one.end = loop.time()
            await transport.close()

    async def _stop(self) -> None:
        for one in self._attempts:
            if one.task is not None:
                one.task.cancel()
        await all_ended(self._attempts)

    def _longest_gap(self) -> float:
        gaps = [0.0]
        for one in self._attempts:
            moments = [moment for moment, _ in one.generation.parts or ()]
            gaps += [b - a for a, b in itertools.pairwise(moments)]
        return max(gaps)


def _all_completed(attempts: Sequence[Attempt]) -> None:
    for one in attempts:
        if not one.completed:
            raise SonicEksError(
                f"a generation failed before SIGTERM: {one.failure}; is the service healthy and"
                " else idle, and does a preStop hook, where there is one, last until then?",
                exit_status=PROBLEM_FOUND,
            )


async def _end_of(subject: Subject) -> float:
    """Return the moment from which it was seen to have ended."""
    while await subject.running():
        await asyncio.sleep(_LOOK_SECONDS)
    return asyncio.get_running_loop().time()


async def _all_over(old: Sequence[Attempt], new: Sequence[Attempt]) -> None:
    """Wait for the old; what is left of the new is not waited for."""
    await all_ended(old)
    for one in new:
        if one.task is not None and not one.ended:
            one.task.cancel()
    await all_ended(new)
