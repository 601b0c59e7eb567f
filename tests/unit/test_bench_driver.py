"""The load loops on an exact clock, against a service whose behaviour is known to the moment."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from sidecar.stand_in import speech
from sonic_eks.bench.arrivals import constant
from sonic_eks.bench.driver import LEAD_SECONDS, Driver
from sonic_eks.bench.lag import LagProbe
from sonic_eks.bench.plan import Target
from sonic_eks.bench.record import Failure, Generation, Outcome
from sonic_eks.bench.run import START_SECONDS
from sonic_eks.bench.search import Search
from sonic_eks.bench.statistics import percentile, summarize, ttfb_percentile
from tests.virtual_time import run, stand_still

# 1000 bytes a second, so that a part of 500 bytes is half a second
TARGET = Target(url="http://service", key="secret", encoding="pcm_mulaw", sample_rate=1000)
FIRST = 0.05


@dataclass
class Service:
    """First audio after 50 ms, then a part of 0.5 s every 100 ms, four in all."""

    connect_seconds: float = 0.0
    stall: tuple[float, float] | None = None
    """From when to when nothing is sent; what was due is sent at its end."""
    fail: dict[int, Failure] = field(default_factory=dict)
    """By the number of the generation: instead of the third part."""
    late_part_seconds: float = 0.0
    """How much later the third part comes."""
    connected: int = 0
    in_progress: int = 0
    most: int = 0

    async def reserve(self) -> Turn:
        self.connected += 1
        if self.connect_seconds:
            await asyncio.sleep(self.connect_seconds)
        return Turn(self, self.connect_seconds)

    async def close(self) -> None:
        pass


@dataclass
class Turn:
    service: Service
    connect_seconds: float | None

    async def generate(self, generation: Generation) -> None:
        service, loop = self.service, asyncio.get_running_loop()
        generation.sent = loop.time()
        service.in_progress += 1
        service.most = max(service.most, service.in_progress)
        try:
            for index, wait in enumerate([FIRST, 0.1, 0.1 + service.late_part_seconds, 0.1]):
                await asyncio.sleep(wait)
                if service.stall and service.stall[0] <= loop.time() < service.stall[1]:
                    await asyncio.sleep(service.stall[1] - loop.time())
                if index == 2 and generation.number in service.fail:
                    raise service.fail[generation.number]
                generation.heard(loop.time(), 500)
        finally:
            service.in_progress -= 1

    def release(self) -> None:
        pass


def drive(service: Service, start: float = 1.0) -> Driver:
    return Driver(TARGET, service, itertools.repeat("Hello there."), start)


def open_loop(service: Service, moments: list[float]) -> Driver:
    driver = drive(service)
    run(driver.open_loop(list(enumerate(moments))))
    return driver


def closed_loop(service: Service, concurrency: int, count: int) -> Driver:
    driver = drive(service)
    run(driver.closed_loop(concurrency, count))
    return driver


def test_moments_of_a_generation_are_exact() -> None:
    [record] = open_loop(Service(connect_seconds=0.2), [3.0]).records
    assert record.scheduled == record.sent == 3.0
    assert record.ttfb_seconds == pytest.approx(FIRST)
    assert record.end == record.last_audio == pytest.approx(3.35)
    assert record.audio_seconds == 2.0
    assert record.rtf == pytest.approx(0.35 / 2)
    assert record.longest_gap_seconds == pytest.approx(0.1)
    assert record.connect_seconds == 0.2
    assert (record.underruns, record.stall_seconds) == (0, 0)
    assert record.outcome is Outcome.COMPLETED


def test_connections_are_made_before_a_generation_is_due() -> None:
    """Half a second is there for it; what takes longer is part of TTFB, but no client's lag."""
    driver = open_loop(Service(connect_seconds=0.5), [1.0])
    assert driver.records[0].ttfb_seconds == pytest.approx(FIRST)
    assert driver.late_seconds == []  # ready at the very moment
    driver = open_loop(Service(connect_seconds=0.7), [1.0])
    assert driver.records[0].ttfb_seconds == pytest.approx(FIRST + 0.2)
    assert driver.late_seconds == []


def test_the_first_generation_of_a_run_has_the_whole_lead() -> None:
    """A process hears of the start up to 0.1 s late and still begins to connect in time."""
    driver = drive(Service(connect_seconds=LEAD_SECONDS), start=START_SECONDS)

    async def late() -> None:
        await asyncio.sleep(0.1)
        await driver.open_loop([(0, 0.0)])

    run(late())
    assert driver.records[0].ttfb_seconds == pytest.approx(FIRST)


def test_open_loop_goes_on_whatever_becomes_of_those_before() -> None:
    service = Service(stall=(2.0, 60.0))
    driver = open_loop(service, constant(10, 100))
    assert service.most > 80
    assert [round(r.scheduled, 6) for r in sorted(driver.records, key=lambda r: r.number)] == [
        round(moment, 6) for moment in constant(10, 100)
    ]


@pytest.mark.slow
def test_a_stall_shows_under_open_loop_and_hides_under_closed_loop() -> None:
    """2,000 generations; for 2 s, in the middle of the run, nothing is sent.

    Open loop, 100 a second: whose first audio would come in the stall wait for its end. The
    longest waits are 2.05, 2.04, 2.03 s and so on, and p99 is the 21st of them: 1.85 s. Closed
    loop with 2 in progress: they alone wait.
    """
    stall = (10.995, 13.0)
    opened = open_loop(Service(stall=stall), constant(100, 2000))
    assert ttfb_percentile(opened.records, 99) == pytest.approx(1.85)
    closed = closed_loop(Service(stall=(11.001, 13.001)), 2, 2000)
    assert ttfb_percentile(closed.records, 99) == pytest.approx(FIRST)
    assert max(r.longest_gap_seconds for r in closed.records) > 1.9, "it was there all the same"


def test_closed_loop_keeps_its_number_in_progress_to_the_end() -> None:
    service = Service()
    driver = closed_loop(service, 7, 100)
    assert service.most == 7
    counted = [r for r in driver.records if r.counted]
    assert len(counted) == 100
    assert summarize(driver.records, 0.0).in_progress == pytest.approx(7)
    stopped = [r for r in driver.records if r.outcome is Outcome.STOPPED]
    assert all(not r.counted for r in stopped)
    assert service.in_progress == 0, "nothing goes on after the run"


def test_counting_begins_when_every_slot_has_had_a_generation() -> None:
    """Slots begin 5 ms apart: the first of 100 has its second while the last has its first."""
    driver = drive(Service())
    steady: list[float] = []
    driver.on_steady = lambda: steady.append(asyncio.get_running_loop().time())
    run(driver.closed_loop(100, 300))
    counted = [r for r in driver.records if r.counted]
    assert len(counted) == 300
    assert sorted(r.number for r in counted) == list(range(300))
    first = min(r.scheduled for r in counted)
    # the last slot begins after 99 x 5 ms, and a generation takes 350 ms
    assert first >= 0.495 + 0.35 - 1e-9
    assert steady == [pytest.approx(first + driver.start)]
    assert summarize(driver.records, 0.0).in_progress == pytest.approx(100)


@pytest.mark.parametrize(
    "outcome", [Outcome.ERROR, Outcome.REJECTED, Outcome.TIMEOUT, Outcome.CLOSED]
)
def test_failures_are_kept(outcome: Outcome) -> None:
    service = Service(fail={3: Failure(outcome, "key secret was seen"), 5: Failure(outcome, "")})
    for driver in (open_loop(service, constant(10, 20)), closed_loop(service, 2, 20)):
        failed = {r.number: r for r in driver.records if r.outcome is outcome}
        assert set(failed) == {3, 5}
        assert len([r for r in driver.records if r.counted]) == 20
        assert failed[3].audio_seconds == 1.0, "what had arrived"
        assert failed[3].ttfb_seconds == failed[3].rtf == float("inf")
        assert failed[3].detail == "key *** was seen"


def test_failures_outside_the_count_are_no_part_of_it() -> None:
    """Every generation that does not count fails: those that warm up, those that keep up load."""
    service = Service(fail={-1: Failure(Outcome.ERROR, "")})
    driver = closed_loop(service, 64, 300)
    found = summarize(driver.records, 0.0)
    assert (found.generations, found.failures) == (300, {})
    assert found.failures_outside["error"] >= 64
    assert ttfb_percentile(driver.records, 100) == pytest.approx(FIRST)
    assert (driver.ended, driver.failed) == (300, 0)


def test_progress_tells_of_failures() -> None:
    driver = closed_loop(Service(fail={3: Failure(Outcome.ERROR, "")}), 2, 20)
    assert (driver.ended, driver.failed) == (20, 1)


def test_a_send_that_the_client_was_late_with_is_its_lag() -> None:
    """It stands still from 1.95 to 2.05 s: two sends were due 90 and 10 ms before its end."""
    driver = drive(Service())

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.call_at(driver.start + 1.95, stand_still, 0.1)
        await driver.open_loop(list(enumerate([1.0, 1.96, 2.04, 3.0])))

    run(scenario())
    assert [round(late, 6) for late in driver.late_seconds] == [0, 0.09, 0.01, 0]
    assert [round(r.ttfb_seconds - FIRST, 6) for r in driver.records] == [0, 0.09, 0.01, 0]


def test_a_service_that_refuses_is_not_flooded() -> None:
    class Refuses(Service):
        async def reserve(self) -> Turn:
            self.connected += 1
            raise Failure(Outcome.UNREACHABLE, "refused")

    driver = closed_loop(Refuses(), 2, 20)
    assert [r.outcome for r in driver.records if r.counted] == [Outcome.UNREACHABLE] * 20
    assert driver.records[-1].end >= 0.8, "20 over 2 slots, 0.1 s after each"


@pytest.mark.parametrize(
    ("late", "underruns", "stall"), [(0.0, 0, 0.0), (0.79, 0, 0.0), (1.0, 1, 0.2), (3.0, 1, 2.2)]
)
def test_underruns_are_those_of_the_listener(late: float, underruns: int, stall: float) -> None:
    """After the second part at 0.15 s the sound lasts until 1.05 s; the third is due at 0.25 s."""
    [record] = open_loop(Service(late_part_seconds=late), [0.0]).records
    assert record.underruns == underruns
    assert record.stall_seconds == pytest.approx(stall)


def test_a_fault_of_the_program_is_no_failure_of_the_service() -> None:
    class Broken(Service):
        async def reserve(self) -> Turn:
            raise KeyError("a mistake")

    for scenario in (
        lambda: drive(Broken()).open_loop([(0, 0.0)]),
        lambda: drive(Broken()).closed_loop(1, 1),
    ):
        with pytest.raises((KeyError, ExceptionGroup)):
            run(_limited(scenario()))


async def _limited(scenario: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(100):
        await scenario


def test_lag_probe_counts_each_moment_that_it_missed() -> None:
    async def scenario() -> list[float]:
        probe = LagProbe()
        task = asyncio.create_task(probe.run())
        await asyncio.sleep(0.995)
        # The loop stands still for 100 ms: ten moments are missed, the first by almost all of it.
        stand_still(0.1)
        await asyncio.sleep(1.0)
        task.cancel()
        return probe.late_seconds

    late = run(scenario())
    missed = [round(seconds, 3) for seconds in late if seconds > 1e-6]
    assert missed == [0.095, 0.085, 0.075, 0.065, 0.055, 0.045, 0.035, 0.025, 0.015, 0.005]
    assert len(late) == pytest.approx(209, abs=1)


@dataclass
class TableService(Service):
    """Follows the table of the stand-in (tests/standin/README.md) and logs each delay."""

    truth: dict[str, float] = field(default_factory=dict)
    dice: random.Random = field(default_factory=lambda: random.Random(5))

    async def reserve(self) -> TableTurn:
        return TableTurn(self)


@dataclass
class TableTurn:
    service: TableService
    connect_seconds: float | None = None

    async def generate(self, generation: Generation) -> None:
        service, loop = self.service, asyncio.get_running_loop()
        generation.sent = loop.time()
        service.in_progress += 1
        try:
            delay = speech.first_audio_seconds(service.in_progress, service.dice)
            service.truth[generation.context_id] = delay
            await asyncio.sleep(delay)
            generation.heard(loop.time(), 500)
            await asyncio.sleep(0.3)
            generation.heard(loop.time(), 500)
        finally:
            service.in_progress -= 1

    def release(self) -> None:
        pass


@pytest.mark.slow
def test_percentiles_are_those_of_the_true_delays() -> None:
    service = TableService()
    records = [r for r in closed_loop(service, 8, 2000).records if r.counted]
    assert len(records) == 2000
    for percent in (50, 95, 99):
        true = percentile([service.truth[r.context_id] for r in records], percent)
        assert ttfb_percentile(records, percent) == pytest.approx(true)
    # the table's row for 8: 120 ms and 165 ms
    assert ttfb_percentile(records, 50) == pytest.approx(0.120, rel=0.03)
    assert ttfb_percentile(records, 95) == pytest.approx(0.165, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slo_ms", "capacity"),
    # p95 of the table: 55 ms up to 2, 115 at 4, 165 at 8, 225 at 12, 300 at 16; between rows it
    # is interpolated: 85 at 3, 127.5 at 5, 195 at 10, 210 at 11
    [(50, 0), (100, 3), (121, 4), (202, 10)],
)
def test_the_search_finds_the_capacity_of_the_table(slo_ms: float, capacity: int) -> None:
    async def passes(concurrency: int) -> bool:
        service = TableService(dice=random.Random(concurrency))
        driver = drive(service, asyncio.get_running_loop().time())
        await driver.closed_loop(concurrency, 1000)
        return ttfb_percentile(driver.records, 95) * 1000 <= slo_ms

    assert run(Search(passes, 16).highest()) == capacity
