"""Whole services on loopback, driven by the official SDK: what a drain cuts and what it does not.

Every run is made of real processes: API pods with their gates, workers, NATS. Assertions are about
what became of the generations, not about how long something took, except for the budget itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.standin import scenarios
from tests.standin.process import require_linux
from tests.standin.report import API_RUNS, PAGE, read_cuts, worker_names
from tests.standin.scenarios import CALLERS, DEFAULT_NUMBERS, LIGHT, MODES, Rollout, WorkerRow
from tests.standin.worker import ON_SIGTERM
from tests.tools import require_tool

pytestmark = pytest.mark.slow

Result = TypeVar("Result")


def run(scenario: Coroutine[Any, Any, Result]) -> Result:
    async def limited() -> Result:
        async with asyncio.timeout(150):
            return await scenario

    return asyncio.run(limited())


@pytest.fixture(scope="module", autouse=True)
def _linux() -> None:
    require_linux()


@pytest.fixture(scope="module")
def nats_server() -> str:
    return require_tool("nats-server")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, nats_server: str) -> Path:
    return tmp_path_factory.mktemp("nats")


@pytest.fixture(scope="module")
def rollout(folder: Path) -> Rollout:
    return run(scenarios.replace_api_pods(folder, DEFAULT_NUMBERS, scenarios.callers_that_renew))


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[tuple[str, str], WorkerRow]:
    return {(row.on_sigterm, row.mode): row for row in run(scenarios.end_workers(folder))}


class TestApiPodsReplacedUnderCallersThatRenew:
    """200 callers: half connect for each generation, half renew within half the stream limit."""

    def test_no_generation_is_cut(self, rollout: Rollout) -> None:
        assert rollout.tally.completed > 2 * CALLERS
        assert rollout.tally.cut == 0, rollout.tally

    def test_pods_end_before_the_budget_and_by_themselves(self, rollout: Rollout) -> None:
        for end in rollout.ends:
            assert end.drain["reason"] in ("drained", "idle")
            assert DEFAULT_NUMBERS.propagation <= end.drain["seconds"] < DEFAULT_NUMBERS.budget
            assert not end.hook_failed
            assert not end.killed

    def test_connections_that_arrive_during_the_propagation_time_are_served(
        self, rollout: Rollout
    ) -> None:
        assert rollout.arrived_while_draining > 0
        assert rollout.served_while_draining > rollout.arrived_while_draining / 2

    def test_few_requests_have_to_be_retried(self, rollout: Rollout) -> None:
        """Only those that meet the socket of a pod that has just ended."""
        assert rollout.tally.retryable < CALLERS / 10, rollout.tally


def test_callers_that_never_renew_are_cut_at_the_budget_and_counted(folder: Path) -> None:
    rollout = run(
        scenarios.replace_api_pods(
            folder, scenarios.NEVER_NUMBERS, scenarios.callers_that_never_renew
        )
    )
    assert [end.drain["reason"] for end in rollout.ends] == ["budget"] * 2
    assert rollout.tally.cut > 0, rollout.tally
    assert rollout.reported_cut > 0
    assert all(end.drain["seconds"] >= scenarios.NEVER_NUMBERS.budget for end in rollout.ends)


def test_without_the_gate_streams_are_cut(folder: Path) -> None:
    rollout = run(
        scenarios.replace_api_pods(
            folder, DEFAULT_NUMBERS, scenarios.callers_that_renew, gate=False
        )
    )
    assert rollout.tally.cut > 0, rollout.tally
    # The load balancer goes on sending to the ended pods.
    assert rollout.tally.retryable > 0, rollout.tally


def test_stream_longer_than_the_budget_is_cut_at_the_budget_and_counted(tmp_path: Path) -> None:
    single = run(scenarios.outlive_the_budget(tmp_path))
    assert single.tally.cut == 1
    assert (single.end.drain["reason"], single.end.drain["cut"]) == ("budget", 1)
    assert single.end.sigterm >= single.numbers.budget


class TestGateThatIsKilled:
    def test_in_a_drain_costs_the_protection_of_that_drain(self, tmp_path: Path) -> None:
        """The hook fails, so SIGTERM comes at once."""
        single = run(scenarios.kill_the_gate(tmp_path, while_draining=True))
        assert single.end.hook_failed
        assert single.end.sigterm < single.numbers.budget
        assert single.tally.cut > 0

    def test_before_a_drain_does_not_touch_the_server(self, tmp_path: Path) -> None:
        """It is started again, and the drain that comes later cuts nothing."""
        single = run(scenarios.kill_the_gate(tmp_path, while_draining=False))
        assert single.tally.cut == 0
        assert single.end.drain["reason"] in ("drained", "idle")


def test_server_that_hangs_is_killed_at_the_end_of_the_grace_period(tmp_path: Path) -> None:
    """Its streams stand still, so they do not hold the drain to the budget."""
    single = run(scenarios.hang(tmp_path))
    assert single.end.drain["reason"] == "idle"
    assert single.end.killed
    assert single.end.exit >= single.numbers.grace - 0.1


class TestWorkers:
    @pytest.mark.parametrize("mode", MODES)
    def test_one_that_finishes_its_work_cuts_nothing(self, rows, mode: str) -> None:
        row = rows["drain", mode]
        assert (row.tally.cut, row.end.killed) == (0, False), row

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("way", sorted(set(ON_SIGTERM) - {"drain"}))
    def test_any_other_cuts_under_load(self, rows, way: str, mode: str) -> None:
        """Kubernetes cannot stop new work from reaching a worker that ends."""
        assert rows[way, mode].tally.cut > 0, rows[way, mode]

    @pytest.mark.parametrize("way", sorted(ON_SIGTERM))
    def test_waiting_for_an_idle_moment_lasts_to_the_budget_under_load(self, rows, way) -> None:
        assert rows[way, "wait-idle"].end.drain["reason"] == "budget"

    def test_waiting_for_an_idle_moment_saves_a_lightly_loaded_worker(self, rows) -> None:
        row = rows["exit", LIGHT]
        assert row.end.drain["reason"] == "idle"
        assert (row.tally.cut, row.tally.completed > 0) == (0, True), row

    def test_the_other_worker_goes_on(self, rows) -> None:
        for (_, mode), row in rows.items():
            assert row.tally.completed > (1 if mode == LIGHT else scenarios.BUSY_CALLERS)

    def test_the_page_says_what_was_seen(self, rows) -> None:
        told = read_cuts(PAGE.read_text(), "workers")
        seen = {key: row.tally.cut for key, row in rows.items()}
        assert {key: cut > 0 for key, cut in told.items()} == {
            worker_names(way, mode): cut > 0 for (way, mode), cut in seen.items()
        }


@pytest.mark.parametrize("lame_duck", [True, False], ids=["lame duck", "killed"])
def test_service_survives_the_restart_of_each_nats_server(folder: Path, lame_duck: bool) -> None:
    row = run(scenarios.restart_brokers(folder, lame_duck))
    assert row.tally.completed > row.tally.cut + row.tally.retryable
    assert row.after.completed > 0
    assert (row.after.cut, row.after.retryable) == (0, 0), row


def test_the_page_has_every_run_with_the_zeros_that_the_tests_hold() -> None:
    told = read_cuts(PAGE.read_text(), "api")
    assert list(told) == [(name,) for name in API_RUNS]
    without_cuts = [name for (name,), cut in told.items() if cut == 0]
    assert without_cuts == ["callers renew, gate"]
