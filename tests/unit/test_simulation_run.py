"""The simulation as a whole, on traces small enough to work by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sonic_eks.capacity.policy import Direction, Limit, ScalingPolicy
from sonic_eks.simulation.metrics import Scrapes, Signal, even_loads
from sonic_eks.simulation.nodes import ColdStart
from sonic_eks.simulation.run import Result, Scaler, Watcher, World, simulate

WORLD = World(
    slots=2,
    first_audio_ms=(50.0, 100.0),
    objective_ms=120.0,
    patience_seconds=10,
    cold_start=ColdStart(node=40, image=30, weights=30),
    warm_up_seconds=0,
    end_seconds=300,
)

POLICY = ScalingPolicy(
    threshold=2,
    margin_sigmas=0,
    reserve_generations=0,
    look_ahead_seconds=0,
    look_ahead_window_seconds=60,
    min_replicas=1,
    max_replicas=10,
    up=Direction(window_seconds=0, limits=(Limit("Pods", 4, 15),), tolerance=0),
    down=Direction(window_seconds=60, limits=(Limit("Pods", 1, 60),), tolerance=0),
    headroom_gpus=0,
    node_keep_seconds=600,
)


class Record(Watcher):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.decisions: list[tuple[float, float, int, int]] = []
        self.scrapes: list[tuple[float, dict[int, int], int]] = []

    def scraped(self, now: float, loads: Mapping[int, int], waiting: int) -> None:
        self.scrapes.append((now, dict(loads), waiting))

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        self.decisions.append((now, signal, ready, replicas))


def play(
    times: list[float],
    durations: list[float],
    *,
    world: World = WORLD,
    policy: ScalingPolicy = POLICY,
    replicas: int = 1,
    watcher: Watcher | None = None,
    **scaler: Any,
) -> Result:
    return simulate(
        np.array(times),
        np.array(durations),
        world=world,
        scaler=Scaler(policy=policy, **scaler),
        replicas=replicas,
        watcher=watcher,
    )


def test_what_waits_misses_the_objective_by_its_wait_and_its_load() -> None:
    fixed = replace(POLICY, max_replicas=1)
    # Two slots. The third waits for 15 ms, and 100 ms are its first audio: in time. The fourth
    # waits for 25 ms, the fifth is refused at 21.5, the sixth has a slot.
    times = [10, 10, 10.985, 11.0, 11.5, 60]
    durations = [1, 1.025, 20, 20, 1, 1]
    result = play(times, durations, policy=fixed)
    assert (result.generations, result.violating, result.refused) == (6, 2, 1)
    assert result.share == pytest.approx(1 / 3)
    assert result.gpu_hours == pytest.approx(300 / 3600)


def test_a_curve_beyond_the_objective_misses_it_without_any_wait() -> None:
    slow = replace(WORLD, first_audio_ms=(50.0, 130.0))
    assert play([10, 20, 60], [20, 20, 20], world=slow).violating == 1


def test_the_warm_up_is_not_counted() -> None:
    world = replace(WORLD, warm_up_seconds=60)
    result = play([-50, -50, -50, 10], [30, 30, 1, 1], world=world)
    assert (result.generations, result.violating) == (1, 0)
    assert result.gpu_hours == pytest.approx((300 + 300 - 0) / 3600)


def test_a_policy_adds_what_is_in_progress_and_what_waits() -> None:
    # Six at 20 s: at 30 s two are in progress and four wait, which are three workers; the two new
    # ones are ready 100 s after the decision at 32.5 s.
    record = Record()
    times, durations = [20.0] * 6, [250.0] * 6
    world = replace(WORLD, patience_seconds=200)
    result = play(times, durations, world=world, watcher=record)
    assert record.decisions[2:4] == [(32.5, 6, 1, 3), (47.5, 6, 1, 3)]
    assert [ready for now, _, ready, _ in record.decisions if 100 < now < 150] == [1, 1, 3]
    assert (result.violating, result.refused) == (4, 0)
    assert result.gpu_hours == pytest.approx((300 + 2 * (300 - 32.5)) / 3600)
    # From 132.5 on the third and fourth are alone on theirs, the others the second.
    loads = {now: loads for now, loads, _ in record.scrapes}
    assert list(loads[130].values()) == [2]
    assert list(loads[135].values()) == [2, 2, 2]


def test_a_policy_that_does_not_see_the_queue_adds_less() -> None:
    record = Record()
    world = replace(WORLD, patience_seconds=200)
    play([20.0] * 6, [250.0] * 6, world=world, watcher=record, queue=False)
    assert {replicas for _, _, _, replicas in record.decisions} == {1}


def test_a_worker_that_is_removed_finishes_what_it_has() -> None:
    # Demand is over at 1 s; the window of 60 s has the wish of 2.5 s until 62.5 s. Of the four
    # generations that begin at 62 s two go with the worker, and keep its node until 92 s.
    world = replace(WORLD, end_seconds=900)
    quick = replace(POLICY, node_keep_seconds=100)
    times, durations = [-15.0] * 4 + [62.0] * 4, [16.0] * 4 + [30.0] * 4
    warm = replace(world, warm_up_seconds=15)
    result = play(times, durations, world=warm, policy=quick, replicas=2)
    assert (result.violating, result.scale_ins) == (0, 1)
    # Kept for 100 s more.
    assert result.gpu_hours == pytest.approx((900 + 192) / 3600)


def test_cpu_is_a_signal_too() -> None:
    # 0.3 of load / capacity: 30 % where the target is 70 %. Of four workers ceil(30 / 70 * 4) stay.
    cpu = replace(POLICY, threshold=0.7, down=replace(POLICY.down, limits=(Limit("Pods", 9, 15),)))
    record = Record()
    play([0.0] * 8, [200.0] * 8, policy=cpu, replicas=4, watcher=record, cpu_per_load=0.3)
    assert record.decisions[0] == pytest.approx((2.5, 30, 2, 2))


def test_an_outage_keeps_workers_waiting() -> None:
    world = replace(WORLD, patience_seconds=200, outages=((0.0, 100.0),))
    record = Record()
    play([20.0] * 6, [250.0] * 6, world=world, watcher=record)
    # Wanted from 32.5 s on, to be had at the decision of 107.5 s, ready 100 s later.
    assert next(now for now, _, ready, _ in record.decisions if ready == 3) == 212.5


@pytest.mark.parametrize(
    ("demands", "changed", "signal"),
    [
        # The look-ahead's window of 60 s has four steps: 1 a second, 100 s ahead.
        ([100, 115, 130, 145], {"look_ahead_seconds": 100}, 245),
        ([0, 100, 115, 130, 145], {"look_ahead_seconds": 100}, 245),
        # Least squares: slope of 0, 0, 0, 30 is (1.5 * 30) / (15 * 5) = 0.6.
        ([0, 0, 0, 30], {"look_ahead_seconds": 100}, 90),
        # Never less than there is, nothing from fewer values, and nothing if it is not wanted.
        ([145, 130, 115, 100], {"look_ahead_seconds": 100}, 100),
        ([100, 115, 130], {"look_ahead_seconds": 100}, 130),
        ([100, 115, 130, 145], {}, 145),
        # Margins of what lies ahead: 196 + 2.5 * 14 + 8.
        ([121, 136, 151, 166], {"look_ahead_seconds": 30, "margin_sigmas": 2.5}, 196 + 35),
        ([144], {"margin_sigmas": 2.5, "reserve_generations": 8}, 144 + 30 + 8),
        ([0], {"margin_sigmas": 2.5}, 0),
    ],
)
def test_the_signal_is_the_policys(
    demands: list[float], changed: dict[str, Any], signal: float
) -> None:
    one = Signal(replace(POLICY, **changed), 15)
    values = [one.of(demand) for demand in demands]
    assert values[-1] == pytest.approx(signal)


def test_loads_are_even() -> None:
    assert even_loads(8, [3, 5, 9]) == {3: 3, 5: 3, 9: 2}
    assert even_loads(0, []) == {}


def test_a_value_that_is_missed_is_held_and_one_that_is_gone_is_not() -> None:
    class Missing:
        """Misses what is said."""

        def __init__(self, *missed: list[bool]) -> None:
            self.missed = iter(missed)

        def random(self, count: int) -> Any:
            # Below any chance, or above.
            return np.array([0.0 if one else 1.0 for one in next(self.missed)[:count]])

    random: Any = Missing([False, True], [True, False], [True, True], [False, True])
    scrapes = Scrapes(0.02, random)
    assert scrapes.seen({1: 5, 2: 7}) == 5  # the second was never seen
    assert scrapes.seen({1: 6, 2: 8}) == 5 + 8
    assert scrapes.seen({1: 7, 2: 9}) == 5 + 8
    assert scrapes.seen({2: 4, 3: 1}) == 4  # the first has left


def test_lost_scrapes_leave_out_two_percent_of_the_changes() -> None:
    scrapes = Scrapes(0.02, np.random.default_rng(1))
    held = 0
    for turn in range(2000):
        held += scrapes.seen(dict.fromkeys(range(10), turn)) != 10 * turn
    # 1 - 0.98^10 = 0.183 of the sums have a value of before in them.
    assert held / 2000 == pytest.approx(0.183, abs=0.03)


def test_a_run_is_the_same_every_time() -> None:
    random = np.random.default_rng(3)
    times = np.cumsum(random.exponential(0.5, 500)).tolist()
    durations = (4 * np.exp(0.5 * random.standard_normal(500))).tolist()
    lossy = replace(WORLD, scrape_loss=0.1)
    first, again = (play(times, durations, world=lossy) for _ in range(2))
    assert first == again
    assert 0 < first.violating < first.generations
    assert not math.isnan(first.gpu_hours)
