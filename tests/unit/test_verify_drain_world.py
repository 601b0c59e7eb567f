"""The experiments on an exact clock: services that are functions, pods that are slow to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import yaml

from sonic_eks.bench.plan import Target
from sonic_eks.bench.protocol import Transport
from sonic_eks.bench.record import Outcome
from sonic_eks.bench.texts import TEXTS
from sonic_eks.errors import SonicEksError
from sonic_eks.verify_drain.attempt import Attempt
from sonic_eks.verify_drain.experiment import Experiment, Settings
from sonic_eks.verify_drain.findings import Findings, OnSigterm, OverCapacity
from tests import virtual_time

STEP = 0.1
"""Time between two parts of audio."""


@dataclass
class World:
    """A worker, and how what happens to it is seen.

    Attributes
    ----------
    on_sigterm : str
        ``drain``, ``exit``, ``limit`` (drains, and exits after 5 s), ``keep-taking``, ``ignore``;
        ``queue``: drains, and new work waits in front of it for a successor; ``deaf``: takes new
        work and answers nobody, and ends when it has no other.
    slots : int
        Generations at a time; more are refused.
    long_seconds : float
        How long the long generations take; the short ones take 2 s.
    shutdown_seconds : float
        From its last generation to its end.
    restart_seconds : float or None
        From its end to a new one in its place, as a kubelet starts a container anew.
    exec_seconds : float
        How long the order to end it takes, SIGTERM being its first act.
    late_seconds : float
        How late its end is seen.
    cuts_after : float or None
        After so many seconds it cuts a generation, SIGTERM or not.
    first_seconds : float
        Time to first audio.
    alone : bool
        Whether it refuses the shortest text while it makes anything.
    patience_seconds : float
        How late whoever is in between tells the caller of a generation that is cut.
    """

    on_sigterm: str = "ignore"
    slots: int = 100
    long_seconds: float = 8.0
    shutdown_seconds: float = 0.0
    restart_seconds: float | None = None
    exec_seconds: float = 0.0
    late_seconds: float = 0.0
    patience_seconds: float = 0.0
    pre_stop: bool = False
    first_seconds: float = STEP
    alone: bool = False
    ready_others: list[str] = field(default_factory=list)
    cuts_after: float | None = None
    broken: Callable[[], None] = lambda: None

    busy = most = 0
    signalled: float | None = None
    dead: float | None = None
    announced = left = False

    # ---- the subject

    name = "process 1"

    @property
    def has_pre_stop(self) -> bool:
        return self.pre_stop

    async def check(self) -> None: ...

    async def announce_end(self, seconds: float) -> None:
        self.announced = True

    async def terminate(self) -> None:
        self.broken()
        self.signalled = self.now
        if self.on_sigterm == "exit":
            self.dead = self.now
        elif self.on_sigterm == "limit":
            asyncio.get_running_loop().call_later(5.0, self._die)
        await asyncio.sleep(self.exec_seconds)

    async def running(self) -> bool:
        return self.dead is None or self.now < self.dead + self.late_seconds

    async def others(self) -> list[str]:
        return self.ready_others

    async def leave(self) -> None:
        self.left = True

    # ---- the service

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def _die(self) -> None:
        self.dead = self.now if self.dead is None else self.dead

    @property
    def refuses(self) -> str:
        """Why it takes nothing new; empty: it does."""
        if self.dead is not None:
            anew = self.restart_seconds
            return "" if anew is not None and self.now >= self.dead + anew else "no connection"
        if self.signalled is not None and self.on_sigterm in ("drain", "limit"):
            return "going away"
        return "busy" if self.busy >= self.slots else ""

    def ended(self) -> None:
        """Whether to end is looked at when a generation does."""
        self.busy -= 1
        if self.signalled is not None and not self.busy and self.on_sigterm != "ignore":
            asyncio.get_running_loop().call_later(self.shutdown_seconds, self._die)


class OfWorld(Experiment):
    """Asks the world instead of a service."""

    world: World

    async def _say(self, one: Attempt, transport: Transport) -> None:
        world = self.world
        one.began = world.now
        crowded = world.alone and world.busy and one.generation.text == TEXTS[0]
        if world.refuses or crowded:
            one.outcome, one.detail, one.end = Outcome.REJECTED, world.refuses, world.now
            return
        if world.signalled is not None and world.on_sigterm in ("deaf", "queue"):
            try:
                if await self._failed_waiting(one):
                    return
            finally:
                one.end = world.now
        seconds = world.long_seconds if len(one.generation.text) > 500 else 2.0
        successor = world.dead is not None
        world.busy += 1
        world.most = max(world.most, world.busy) if world.signalled is not None else 0
        try:
            for step in range(round(seconds / STEP)):
                await asyncio.sleep(STEP if step else world.first_seconds)
                if world.cuts_after is not None and step * STEP >= world.cuts_after:
                    one.outcome, one.detail = Outcome.CLOSED, "too long"
                    return
                if world.dead is not None and not successor:
                    one.outcome, one.detail = Outcome.CLOSED, "the connection broke"
                    await asyncio.sleep(world.patience_seconds)
                    return
                one.generation.heard(world.now, 10)
            one.outcome = Outcome.COMPLETED
        finally:
            one.end = world.now
            world.ended()

    async def _failed_waiting(self, one: Attempt) -> bool:
        """Wait for an answer: a successor's, or that there is none."""
        world, until = self.world, self.world.now + 10.0
        one.outcome, one.detail = Outcome.TIMEOUT, "no audio"
        while world.now < until:
            await asyncio.sleep(STEP)
            if world.dead is not None and world.on_sigterm == "deaf":
                one.outcome, one.detail = Outcome.CLOSED, "the connection broke"
                return True
            if world.dead is not None and not world.refuses:
                return False
        return True


def learn(world: World, watch_seconds: float = 30.0) -> Findings:
    target = Target(url="http://h", key="k")
    settings = Settings(watch_seconds=watch_seconds)
    experiment = OfWorld(target, world, settings, lambda text: None)
    experiment.world = world
    return virtual_time.run(experiment.run())


def behaviour(found: Findings) -> OnSigterm | None:
    assert found.failed == ""
    return found.sigterm.behaviour if found.sigterm else None


WAYS = {
    "drain": OnSigterm.DRAINS,
    "exit": OnSigterm.EXITS,
    "limit": OnSigterm.LIMITED,
    "keep-taking": OnSigterm.KEEPS_TAKING,
    "ignore": OnSigterm.IGNORES,
}


# How late the end is seen, how long the order takes, when a new container runs in its place. Who
# sees the end at once asks nobody who comes after it.
VIEWS = [
    (late, order, anew)
    for late, anews in ((0.0, [None]), (1.0, [None, 0.3]), (4.0, [None, 0.3, 2.0]))
    for order in (0.0, 1.5)
    for anew in anews
]
# `make test-fast` is content with two of them.
SOME = [(0.0, 0.0, None), (4.0, 1.5, 0.3)]
EVERY_VIEW = [pytest.param(*view, marks=() if view in SOME else pytest.mark.slow) for view in VIEWS]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pre_stop", [False, True])
@pytest.mark.parametrize(("late", "order", "anew"), EVERY_VIEW)
def test_every_way_is_named_however_slowly_it_is_seen(
    way: str, pre_stop: bool, late: float, order: float, anew: float | None
) -> None:
    """As that of a process is, that of a pod, and of one whose container starts anew at once."""
    world = World(
        way, pre_stop=pre_stop, late_seconds=late, exec_seconds=order, restart_seconds=anew
    )
    found = learn(world)
    assert behaviour(found) is WAYS[way], found.evidence()
    assert world.announced == pre_stop
    assert world.left
    assert (found.pre_stop_served is None) != pre_stop


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.6, 2.0])
def test_what_ends_by_itself_is_not_taken_for_a_drain(way: str, seconds: float) -> None:
    """Old ones that are over by the time at which SIGTERM has surely arrived prove nothing."""
    found = learn(World(way, long_seconds=seconds, exec_seconds=1.5, late_seconds=4.0))
    if seconds > 1.6 and way == "exit":
        assert behaviour(found) is OnSigterm.EXITS
    elif way in ("drain", "exit", "limit"):
        assert behaviour(found) in (OnSigterm.UNCLEAR, OnSigterm.EXITS)
        assert way == "exit" or behaviour(found) is OnSigterm.UNCLEAR
    else:
        assert behaviour(found) in (WAYS[way], OnSigterm.UNCLEAR)


@pytest.mark.parametrize("late", [0.0, 4.0])
@pytest.mark.parametrize("way", ["exit", "limit"])
def test_an_api_server_that_is_patient_with_its_worker(way: str, late: float) -> None:
    found = learn(World(way, late_seconds=late, patience_seconds=9.0))
    assert behaviour(found) is WAYS[way], found.evidence()


@pytest.mark.parametrize(
    ("shutdown", "expected"), [(20.0, OnSigterm.DRAINS), (40.0, OnSigterm.UNCLEAR)]
)
def test_a_slow_end_is_waited_for(shutdown: float, expected: OnSigterm) -> None:
    found = learn(World("drain", shutdown_seconds=shutdown))
    assert behaviour(found) is expected
    assert ("--watch-seconds" in found.unclear) == (expected is OnSigterm.UNCLEAR)
    longer = learn(World("drain", shutdown_seconds=shutdown), watch_seconds=60)
    assert behaviour(longer) is OnSigterm.DRAINS


@pytest.mark.parametrize("way", ["queue", "deaf"])
@pytest.mark.parametrize(("late", "order", "anew"), EVERY_VIEW)
def test_work_that_waits_was_not_taken(
    way: str, late: float, order: float, anew: float | None
) -> None:
    """A queue in front of a draining worker refuses nobody; what nobody hears of is not cut."""
    world = World(way, late_seconds=late, exec_seconds=order, restart_seconds=anew)
    found = learn(world)
    assert behaviour(found) is OnSigterm.DRAINS, found.evidence()
    assert found.sigterm is not None
    assert found.sigterm.new_waiting >= 1
    assert "waited in vain" in found.to_yaml()


@pytest.mark.parametrize("way", ["queue", "deaf"])
@pytest.mark.parametrize("late", [0.0, 4.0])
def test_a_short_wait_says_nothing(way: str, late: float) -> None:
    """Nor does what breaks off at the end: it had 1.7 s of the 2 s that are the least."""
    found = learn(World(way, long_seconds=2.2, late_seconds=late))
    assert behaviour(found) is OnSigterm.UNCLEAR
    assert "refused nothing while it had work" in found.unclear


@pytest.mark.parametrize("slow", [1.0, 3.0])
def test_who_is_slow_to_begin_is_given_time(slow: float) -> None:
    """What takes 3 s to begin before may take 9 s after; it is taken all the same."""
    found = learn(World("keep-taking", long_seconds=20.0, first_seconds=slow))
    assert behaviour(found) is OnSigterm.KEEPS_TAKING
    found = learn(World("queue", long_seconds=20.0, first_seconds=slow))
    assert behaviour(found) is (OnSigterm.DRAINS)
    assert found.sigterm is not None
    found = learn(World("queue", long_seconds=3 * slow, first_seconds=slow))
    assert behaviour(found) is OnSigterm.UNCLEAR


def test_what_served_nobody_before_does_not_drain_for_serving_nobody_after() -> None:
    """A worker that hears of nothing new beside long generations, SIGTERM or not."""
    found = learn(World("drain", alone=True))
    assert found.before_served is not None
    assert found.before_served[0] == 0
    assert found.before_served[1] > 0
    assert behaviour(found) is OnSigterm.UNCLEAR
    assert "not served before SIGTERM either" in found.unclear


@pytest.mark.parametrize("way", ["keep-taking", "ignore"])
def test_who_else_is_ready_may_have_served(way: str) -> None:
    found = learn(World(way, ready_others=["w-2"]))
    assert behaviour(found) is OnSigterm.UNCLEAR
    assert "w-2 is ready too" in found.unclear


@pytest.mark.parametrize("slots", [2, 3, 5, 100])
def test_a_worker_that_keeps_taking_is_not_full_at_sigterm(slots: int) -> None:
    world = World("ignore", slots)
    found = learn(world)
    assert behaviour(found) is OnSigterm.IGNORES, found.evidence()
    assert found.sigterm is not None
    assert found.sigterm.new_refused == 0
    # as many old ones as leave a slot free, four at most, and a new one
    assert world.most == min(5, slots)


def test_what_was_learned_before_a_failure_is_told() -> None:
    def broken() -> None:
        raise SonicEksError("kubectl exec: no kill", exit_status=1)

    found = learn(World(slots=3, broken=broken))
    assert found.unclear == "kubectl exec: no kill"
    text = found.to_yaml()
    assert "4 at a time: refuses what is over its capacity" in text
    assert "# - SIGTERM: kubectl exec: no kill" in text
    expected = {"drain": {"idleSeconds": 2}, "scaling": {"overCapacity": "refuse"}}
    assert yaml.safe_load(text) == expected


@pytest.mark.parametrize("pre_stop", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_cut_without_sigterm_is_no_finding(way: str, pre_stop: bool) -> None:
    """A limit of the service's own, in reach of the long generations alone."""
    world = World(way, cuts_after=3.0, pre_stop=pre_stop)
    found = learn(world)
    assert "a generation failed before SIGTERM: closed: too long" in found.unclear
    assert world.signalled is None


def test_a_service_that_makes_nothing_is_told_of() -> None:
    world = World(slots=0)
    found = learn(world)
    assert "a generation failed before SIGTERM" in found.unclear
    assert found.capacity.kind is OverCapacity.REJECTS
    assert world.signalled is None
