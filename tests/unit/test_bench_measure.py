"""What a measurement makes of its runs: repeats, verdicts, capacity, problems."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sonic_eks.bench import measure as module
from sonic_eks.bench.measure import Plan, Result, measure
from sonic_eks.bench.plan import Arrivals, Load, Slo, Target
from sonic_eks.bench.record import Outcome, Record
from sonic_eks.bench.run import Run
from sonic_eks.bench.statistics import summarize
from tests.synth import ROOT
from tests.unit.test_bench_numbers import record

KEY = "sk-very-secret"
Service = Callable[[Load, int], tuple[list[Record], float]]


class Listener:
    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, what: str, total: int) -> None:
        self.begun.append(what)

    def advance(self, ended: int, failed: int) -> None: ...


def run(monkeypatch: pytest.MonkeyPatch, service: Service, **plan: Any) -> tuple[Result, Listener]:
    """Measure a service that is a function of load and processes: records and lag of a run."""

    async def once(target: Target, load: Load, *, processes: int, reporter: Any) -> Run:
        records, lag = service(load, processes)
        return Run(load, tuple(records), summarize(records, lag), processes)

    async def fine(target: Target) -> None: ...

    monkeypatch.setattr(module, "run", once)
    monkeypatch.setattr(module, "check_service", fine)
    settings = {"load": Load(), "max_processes": 8, **plan}
    listener = Listener()
    target = Target(url="http://h", key=KEY)
    return asyncio.run(measure(Plan(target=target, **settings), listener)), listener


def answers(first_audio: float, **more: Any) -> list[Record]:
    return [record(n, first_audio=first_audio, **more) for n in range(20)]


def capacity_of(limit: int) -> Service:
    """Keeps 100 ms up to `limit` generations in progress."""
    return lambda load, processes: (answers(0.09 if load.concurrency <= limit else 0.11), 0.0)


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_a_search_finds_and_states_the_capacity(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    result, listener = run(monkeypatch, capacity_of(limit), max_concurrency=16)
    assert result.problems == []
    capacity = result.to_dict()["capacity"]
    # a generation takes 1 s for 4 s of audio and speaks 40 % of the time: a tenth of a slot
    assert capacity["generations"] == limit
    assert capacity["conversationsOnAverage"] == 10.0 * limit
    assert limit <= capacity["conversationsAlone"] < 10 * limit
    assert capacity["atLeast"] is False
    assert listener.begun[:2] == ["1 in progress", "2 in progress"]
    seeds = [(r.load.concurrency, r.load.seed) for r in result.runs]
    assert len(set(seeds)) == len(seeds), "no run says what an earlier one said"


def test_a_capacity_at_the_bound_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, capacity_of(99), max_concurrency=16)
    assert result.to_dict()["capacity"]["atLeast"] is True


def test_an_objective_that_one_generation_misses_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = run(monkeypatch, capacity_of(0), max_concurrency=16)
    assert result.problems == [
        "objective not kept at one generation in progress: TTFB p95 is 110.0 ms, over 100 ms"
    ]
    assert result.to_dict()["capacity"] is None


def test_a_single_run_says_what_it_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    def service(load: Load, processes: int) -> tuple[list[Record], float]:
        failed = [record(n, outcome=Outcome.CLOSED, detail=f"no. {n}") for n in range(20, 22)]
        return [*answers(0.05, underruns=1), *failed], 0.0

    result, listener = run(monkeypatch, service, load=Load(arrivals=Arrivals.POISSON, rate=2.5))
    assert result.problems == [
        "objective not kept: TTFB p95 is never, over 100 ms",
        "objective not kept: 2 of 22 generations failed, over 1 %",
        "objective not kept: 20 of 22 generations stood still, over 1 %",
    ]
    assert listener.begun == ["2.5 a second, poisson"]
    [one] = result.to_dict()["runs"]
    assert (one["sloKept"], one["valid"], one["ttfbAtPercentile"]) == (False, True, None)
    assert one["failures"] == {"closed": 2}
    assert one["examples"] == {"closed": "no. 20"}
    loose = Slo(percentile=90, underrun_percent=100)
    result, _ = run(monkeypatch, service, slo=loose)
    assert result.problems == ["objective not kept: 2 of 22 generations failed, over 1 %"]


def test_a_lagging_client_gets_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def service(load: Load, processes: int) -> tuple[list[Record], float]:
        return answers(0.05), 0.02 / processes

    result, _ = run(monkeypatch, service)
    assert [r.processes for r in result.runs] == [1, 2, 4]
    assert [r.summary.valid for r in result.runs] == [False, False, True]
    assert result.problems == []
    # the next runs of a search, 2 and 2 again, begin with as many as the last one needed
    result, _ = run(monkeypatch, service, max_concurrency=2)
    assert [r.processes for r in result.runs] == [1, 2, 4, 4, 4]


@pytest.mark.parametrize("more", [{}, {"max_concurrency": 16}])
def test_a_client_that_stays_late_ends_the_measurement(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    result, _ = run(monkeypatch, lambda load, n: (answers(0.05), 0.02), max_processes=2, **more)
    assert [r.processes for r in result.runs] == [1, 2, 2]
    [problem] = result.problems
    assert problem == (
        "not valid: the client was the bottleneck, its own lag is 20.0 ms at p99 in 2 processes;"
        " use a larger or a quieter machine"
    )
    assert result.to_dict()["capacity"] is None
    assert not any(one["sloKept"] for one in result.to_dict()["runs"])


def test_processes_that_do_not_keep_the_concurrency_make_a_run_not_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of four slots end after 1 s of 2 s: 3 in progress in the mean."""

    def service(load: Load, processes: int) -> tuple[list[Record], float]:
        return [record(n, end=1.0 if n < 2 else 2.0) for n in range(4)], 0.0

    load = Load(concurrency=4)
    result, _ = run(monkeypatch, service, load=load, processes=2)
    assert [r.processes for r in result.runs] == [2, 2, 2], "more of them would not help"
    [problem] = result.problems
    assert problem == (
        "not valid: 3.0 of 4 generations were in progress in the mean, in 2 processes that ended at"
        " different times; give more --generations or fewer --processes"
    )
    assert [(r["valid"], r["sloKept"]) for r in result.to_dict()["runs"]] == [(False, False)] * 3
    alone, _ = run(monkeypatch, service, load=load, processes=1)
    assert alone.problems == [
        "not valid: 3.0 of 4 generations were in progress in the mean; give more --generations"
    ]


@pytest.mark.parametrize(
    ("concurrency", "arrivals", "changes", "valid"),
    [
        (1, Arrivals.CLOSED, {}, True),
        (4, Arrivals.CLOSED, {}, False),
        # an open loop claims no concurrency
        (4, Arrivals.POISSON, {}, True),
        # what slots did meanwhile: connections of 0.05 s, pauses of 0.1 s after failures
        (3, Arrivals.CLOSED, {"connect_seconds": 0.05}, False),
        (2, Arrivals.CLOSED, {"connect_seconds": 0.05}, True),
        (2, Arrivals.CLOSED, {"outcome": Outcome.CLOSED}, True),
        (2, Arrivals.CLOSED, {"connect_seconds": None}, False),
    ],
)
def test_what_a_slot_does_is_its_concurrency(
    concurrency: int, arrivals: Arrivals, changes: dict[str, Any], valid: bool
) -> None:
    """17 generations of 0.1 s, of which one after another fills a slot of a run of 1 s."""
    records = [record(n, scheduled=n / 10, end=(n + 1) / 10, **changes) for n in range(10)]
    records += [record(n, scheduled=0.0, end=0.1, **changes) for n in range(7)]
    load = Load(concurrency=concurrency, arrivals=arrivals)
    assert Run(load, tuple(records), summarize(records, 0.0), 2).valid is valid


def test_a_result_is_json_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, capacity_of(0), max_concurrency=2)
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert KEY not in text
    assert KEY not in repr(result)


@pytest.mark.slow
def test_the_command_line_does_not_wait_for_what_drives_load() -> None:
    code = (
        "import sys; import sonic_eks.cli.app;"
        "print([m for m in ('websockets', 'h11', 'matplotlib', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
