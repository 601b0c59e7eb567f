"""The simulation as a whole, on traces small enough to work by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sonic_eks.capacity.policy import Direction, Limit, ScalingPolicy
from sonic_eks.simulation.metrics import Scrapes, Signal, even_loads
from sonic_eks.simulation.nodes import ColdStart
from sonic_eks.simulation.run import Result, Scaler, Watcher, World, simulate
from sonic_eks.simulation.serving import Floats

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
    slots=2,
    margin_sigmas=0,
    reserve_generations=0,
    look_ahead_seconds=0,
    look_ahead_window_seconds=20,
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
        self.leaving: list[tuple[float, dict[int, int]]] = []
        self.missed: list[float] = []

    def scraped(
        self, now: float, loads: Mapping[int, int], leaving: Mapping[int, int], waiting: int
    ) -> None:
        self.scrapes.append((now, dict(loads), waiting))
        self.leaving.append((now, dict(leaving)))

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        self.decisions.append((now, signal, ready, replicas))

    def judged(self, times: Floats, missed: NDArray[np.bool_]) -> None:
        self.missed = times[missed].tolist()


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
    record = Record()
    result = play(times, durations, policy=fixed, watcher=record)
    assert (result.generations, result.violating, result.refused) == (6, 2, 1)
    assert record.missed == [11.0, 11.5]
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
    # Six at 20 s: at 30 s two are in progress, and of four that wait two count, a filling of the
    # worker. So there are two workers 100 s after the decision at 32.5 s; then the other two count.
    record = Record()
    times, durations = [20.0] * 6, [250.0] * 6
    world = replace(WORLD, patience_seconds=250)
    result = play(times, durations, world=world, watcher=record)
    assert record.decisions[1:4] == [(17.5, 0, 1, 1), (32.5, 4, 1, 2), (47.5, 4, 1, 2)]
    assert [one for one in record.decisions if 120 < one[0] < 140] == [
        (122.5, 4, 1, 2),
        (137.5, 6, 2, 3),
    ]
    assert (result.violating, result.refused) == (4, 0)
    assert result.gpu_hours == pytest.approx((300 + (300 - 32.5) + (300 - 137.5)) / 3600)
    seen = {now: (list(loads.values()), waiting) for now, loads, waiting in record.scrapes}
    assert [seen[now] for now in (130, 135, 240)] == [([2], 4), ([2, 2], 2), ([2, 2, 2], 0)]


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
    record = Record()
    result = play(times, durations, world=warm, policy=quick, replicas=2, watcher=record)
    assert (result.violating, result.scale_ins) == (0, 1)
    assert [now for now, left in record.leaving if left == {2: 2}] == [65, 70, 75, 80, 85, 90]
    # Kept for 100 s more.
    assert result.gpu_hours == pytest.approx((900 + 192) / 3600)


def test_cpu_is_a_signal_too() -> None:
    # 0.3 of load / capacity: 30 % where the target is 70 %. Of four workers ceil(30 / 70 * 4) stay.
    at_once = replace(POLICY.down, window_seconds=0, limits=(Limit("Pods", 9, 15),))
    cpu = replace(POLICY, threshold=0.7, down=at_once)
    record = Record()
    play([0.0] * 8, [200.0] * 8, policy=cpu, replicas=4, watcher=record, cpu_per_load=0.3)
    assert record.decisions[0] == pytest.approx((2.5, 30, 2, 2))


def test_an_outage_keeps_workers_waiting() -> None:
    world = replace(WORLD, patience_seconds=200, outages=((0.0, 100.0),))
    record = Record()
    play([20.0] * 6, [250.0] * 6, world=world, watcher=record)
    # Wanted from 32.5 s on, to be had at the decision of 107.5 s, ready 100 s later.
    assert next(now for now, _, ready, _ in record.decisions if ready == 2) == 212.5


@pytest.mark.parametrize(
    ("demands", "changed", "signal"),
    [
        # The look-ahead's window of 20 s has four steps: 1 a second, 100 s ahead.
        ([100, 105, 110, 115], {"look_ahead_seconds": 100}, 215),
        ([0, 100, 105, 110, 115], {"look_ahead_seconds": 100}, 215),
        # Least squares: sum(x y) = 7.5 * 30 and sum(x x) = 2 (7.5^2 + 2.5^2), a slope of 1.8.
        ([0, 0, 0, 30], {"look_ahead_seconds": 100}, 210),
        # Never less than there is, nothing from fewer values, and nothing if it is not wanted.
        ([115, 110, 105, 100], {"look_ahead_seconds": 100}, 100),
        ([100, 105, 110], {"look_ahead_seconds": 100}, 110),
        ([100, 105, 110, 115], {}, 115),
        # Margins of what lies ahead: 196 + 2.5 * 14.
        ([151, 156, 161, 166], {"look_ahead_seconds": 30, "margin_sigmas": 2.5}, 196 + 35),
        ([144], {"margin_sigmas": 2.5, "reserve_generations": 8}, 144 + 30 + 8),
        ([0], {"margin_sigmas": 2.5}, 0),
    ],
)
def test_the_signal_is_the_policys(
    demands: list[float], changed: dict[str, Any], signal: float
) -> None:
    one = Signal(replace(POLICY, **changed))
    for demand in demands:
        one.note(demand)
    assert one.of(demands[-1]) == pytest.approx(signal)


@pytest.mark.parametrize(("scrapes", "signal"), [(178, 885), (179, 890 + 100)])
def test_a_long_window_has_longer_steps(scrapes: int, signal: float) -> None:
    # 1 a second; 90 points, one of every second scrape: the 90th is the 179th.
    one = Signal(replace(POLICY, look_ahead_seconds=100, look_ahead_window_seconds=900))
    for scrape in range(scrapes):
        one.note(5 * scrape)
    assert one.of(5 * (scrapes - 1)) == pytest.approx(signal)


def test_what_waits_counts_for_one_filling_of_the_workers() -> None:
    one = Signal(replace(POLICY, slots=8))
    assert [one.demand(40, waiting, 5) for waiting in (0, 7, 40, 400)] == [40, 47, 80, 80]
    # Workers that have nothing yet are to be filled, too.
    assert one.demand(0, 30, 2) == 16


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
    assert scrapes.seen({1: 5, 2: 7}) == {1: 5}  # the second was never seen
    assert scrapes.seen({1: 6, 2: 8}) == {1: 5, 2: 8}
    assert scrapes.seen({1: 7, 2: 9}) == {1: 5, 2: 8}
    assert scrapes.seen({2: 4, 3: 1}) == {2: 4}  # the first has left


def test_lost_scrapes_leave_out_two_percent_of_the_changes() -> None:
    scrapes = Scrapes(0.02, np.random.default_rng(1))
    held = 0
    for turn in range(2000):
        held += scrapes.seen(dict.fromkeys(range(10), turn)) != dict.fromkeys(range(10), turn)
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
