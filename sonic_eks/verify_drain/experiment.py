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
from sonic_eks.bench.protocol import Transport
from sonic_eks.bench.record import Failure, Generation, Outcome
from sonic_eks.bench.texts import TEXTS
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.verify_drain.doubts import doubt
from sonic_eks.verify_drain.findings import CapacitySeen, Findings, OverCapacity, SigtermSeen
from sonic_eks.verify_drain.subject import Subject

_NEW_EVERY_SECONDS = 0.25
_SETTLE_SECONDS = 0.5
"""What is sent in this time after SIGTERM is a race and counts for nothing."""

_LOOK_SECONDS = 0.1


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
        Most generations at a time.
    watch_seconds : float
        How long an idle server may take to end after SIGTERM.
    offer_seconds : float
        How long new work is offered after the old generations have ended.
    pre_stop_seconds : float
        How long new work is offered while the preStop hook runs.
    """

    streams: int = 4
    stream_characters: int = 1500
    max_concurrency: int = 64
    watch_seconds: float = 30.0
    offer_seconds: float = 3.0
    pre_stop_seconds: float = 5.0


# Neither what was cancelled nor what this client no longer waited for.
REFUSALS = (Outcome.REJECTED, Outcome.ERROR, Outcome.CLOSED, Outcome.UNREACHABLE)


@dataclass
class _Try:
    """One generation and what became of it."""

    generation: Generation
    outcome: Outcome = Outcome.STOPPED
    detail: str = ""
    end: float = 0.0
    task: asyncio.Task[None] | None = None

    @property
    def delivered(self) -> bool:
        """Whether audio has arrived."""
        return bool(self.generation.parts)

    @property
    def refusal(self) -> str:
        """What its failure said."""
        return f"{self.outcome}: {self.detail}"

    @property
    def span(self) -> tuple[float, float]:
        """Moments of its first and its last audio."""
        parts = self.generation.parts or [(0.0, 0)]
        return parts[0][0], parts[-1][0]


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
    """

    target: Target
    subject: Subject | None
    settings: Settings
    say: Callable[[str], None]
    _tries: list[_Try] = field(default_factory=list)
    _transports: list[Transport] = field(default_factory=list)

    async def run(self) -> Findings:
        """Do all of it; raises SonicEksError."""
        if self.subject is not None:
            await self.subject.check()
        try:
            capacity = await self._over_capacity()
            findings = Findings(
                service=self.target.url,
                subject=self.subject.name if self.subject else None,
                when=datetime.now(UTC).date().isoformat(),
                longest_gap_seconds=self._longest_gap(),
                capacity=capacity,
            )
            if self.subject is not None:
                try:
                    await self._end(self.subject, findings)
                except SonicEksError as error:
                    # What was learned before is worth having.
                    findings.failed = str(error)
                findings.longest_gap_seconds = self._longest_gap()
            else:
                findings.notes.append("SIGTERM was not tried: neither --pod nor --pid was given")
            return findings
        finally:
            await self._stop()

    # ---- over capacity

    async def _over_capacity(self) -> CapacitySeen:
        """Ask for twice as many at a time until it does not simply make all of them."""
        count = min(2, self.settings.max_concurrency)
        while True:
            self.say(f"{count} generations at a time")
            tries = [self._start(TEXTS[-1]) for _ in range(count)]
            await _all(tries)
            seen = classify_capacity(tries)
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
        old = [self._start(text) for _ in range(streams)]
        await self._delivering(old)
        if subject.has_pre_stop:
            self.say("it is marked as going")
            await subject.announce_end()
            findings.pre_stop_served = await self._during_pre_stop()
            # Those from before may be over by now.
            old = [one for one in old if not _ended(one)]
            old += [self._start(text) for _ in range(streams - len(old))]
            await self._delivering(old)
        self.say("SIGTERM")
        loop = asyncio.get_running_loop()
        await subject.terminate()
        findings.sigterm, refusals = await self._watch(subject, old, loop.time())
        findings.sigterm.doubt = doubt(findings.capacity, findings.pre_stop_served, refusals)

    async def _delivering(self, tries: Sequence[_Try]) -> None:
        """Wait until each has delivered audio; one that failed first cannot be built upon."""
        while not all(one.delivered for one in tries):
            for one in tries:
                if _ended(one):
                    raise SonicEksError(
                        "a generation failed before the experiment:"
                        f" {one.outcome}: {one.detail}; is the service healthy and else idle?",
                        exit_status=PROBLEM_FOUND,
                    )
            await asyncio.sleep(_LOOK_SECONDS / 10)
        if any(_ended(one) for one in tries):
            raise SonicEksError(
                "the generations ended before the experiment; give a longer --characters",
                exit_status=PROBLEM_FOUND,
            )

    async def _during_pre_stop(self) -> tuple[int, int]:
        tries: list[_Try] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self.settings.pre_stop_seconds
        while loop.time() < end:
            if all(_ended(one) for one in tries):
                tries.append(self._start(TEXTS[0]))
            await asyncio.sleep(_NEW_EVERY_SECONDS)
        await _all(tries)
        return sum(one.outcome is Outcome.COMPLETED for one in tries), len(tries)

    async def _watch(
        self, subject: Subject, old: list[_Try], signalled: float
    ) -> tuple[SigtermSeen, list[str]]:
        """Offer new work until the old is over and some time more; then wait for the end.

        Returns what was seen, and what each refusal of new work said.
        """
        loop = asyncio.get_running_loop()
        new: list[_Try] = []
        exited: float | None = None
        stop_new = idle_since = None
        due = signalled + _SETTLE_SECONDS
        while exited is None:
            now = loop.time()
            if stop_new is None and all(_ended(one) for one in old):
                stop_new = now + self.settings.offer_seconds
            if stop_new is None or now < stop_new:
                # One at a time, so that they are not over its capacity together.
                if now >= due and all(_ended(one) for one in new):
                    new.append(self._start(TEXTS[0]))
                    due = now + _NEW_EVERY_SECONDS
            elif idle_since is None:
                if all(_ended(one) for one in new):
                    idle_since = now
            elif now - idle_since >= self.settings.watch_seconds:
                break
            if not await subject.running():
                exited = loop.time()
            else:
                await asyncio.sleep(_LOOK_SECONDS)
        watched = loop.time() - signalled
        await _all(old)
        for one in new:
            if one.task is not None and not one.task.done():
                one.task.cancel()
        await _all(new)
        served = sum(one.outcome is Outcome.COMPLETED for one in new)
        completed = sum(one.outcome is Outcome.COMPLETED for one in old)
        refusals = [one.refusal for one in new if one.outcome in REFUSALS]
        seen = SigtermSeen(
            old_completed=completed,
            old_cut=len(old) - completed,
            new_served=served,
            new_refused=len(refusals),
            exit_seconds=None if exited is None else exited - signalled,
            old_end_seconds=max(one.end for one in old) - signalled,
            watched_seconds=watched,
        )
        return seen, refusals

    # ---- one generation

    def _start(self, text: str) -> _Try:
        """Begin a generation on a connection of its own."""
        loop = asyncio.get_running_loop()
        one = _Try(Generation(0, f"verify-{len(self._tries)}", text, True, loop.time()))
        transport = transport_of(replace(self.target, contexts_per_socket=1))
        self._tries.append(one)
        self._transports.append(transport)
        one.task = asyncio.create_task(self._say(one, transport))
        return one

    async def _say(self, one: _Try, transport: Transport) -> None:
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
            one.end = asyncio.get_running_loop().time()
            await transport.close()

    async def _stop(self) -> None:
        for one in self._tries:
            if one.task is not None:
                one.task.cancel()
        await _all(self._tries)

    def _longest_gap(self) -> float:
        gaps = [0.0]
        for one in self._tries:
            moments = [moment for moment, _ in one.generation.parts or ()]
            gaps += [b - a for a, b in itertools.pairwise(moments)]
        return max(gaps)


def classify_capacity(tries: Sequence[_Try]) -> CapacitySeen:
    """Return what a burst of generations at the same moment says."""
    count, together = len(tries), most_together([one.span for one in tries if one.delivered])
    failed = [one for one in tries if one.outcome is not Outcome.COMPLETED]
    if failed and all(one.outcome is Outcome.TIMEOUT and not one.delivered for one in failed):
        said = f"{len(failed)} of {count} got no audio within --timeout"
        if len(failed) < count:
            return CapacitySeen(OverCapacity.QUEUES, count, together, said)
    if failed:
        rejected = [one for one in failed if one.outcome is Outcome.REJECTED]
        kind = OverCapacity.REJECTS if len(rejected) == len(failed) else OverCapacity.FAILS
        one = (rejected or failed)[0]
        return CapacitySeen(kind, count, together, one.refusal)
    # Some began only when others had ended, as a queue does: sharing makes all of them slower.
    first_end = min(one.span[1] for one in tries)
    waited = sum(one.span[0] >= first_end for one in tries)
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


def _ended(one: _Try) -> bool:
    return one.task is not None and one.task.done()


async def _all(tries: Sequence[_Try]) -> None:
    for one in tries:
        if one.task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await one.task
