"""The queue of the simulation: cases by hand, and a simulator that knows every worker."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest

from sonic_eks.simulation.serving import REFUSED, Floats, Serving


def serving(
    times: list[float], durations: list[float], *, slots: int = 1, workers: int = 1
) -> Serving:
    return Serving(
        np.array(times), np.array(durations), slots=slots, workers=workers, patience_seconds=10
    )


def test_what_finds_a_slot_starts_at_once() -> None:
    one = serving([0, 1, 2], [5, 5, 5], slots=3)
    one.advance(3)
    assert (one.in_progress, one.waiting) == (3, 0)
    one.advance(5.5)
    assert one.in_progress == 2
    assert one.waits.tolist() == [0, 0, 0]
    assert one.loads.tolist() == [1, 2, 3]


def test_what_finds_none_waits_its_turn() -> None:
    # Two slots until 4 and 6: the third starts at 4, the fourth at 6, the fifth at 4 + 3.
    one = serving([0, 0, 1, 2, 3], [4, 6, 3, 9, 9], slots=2)
    one.advance(3)
    assert (one.in_progress, one.waiting) == (2, 3)
    one.advance(20)
    assert one.waits.tolist() == [0, 0, 3, 4, 4]
    assert one.loads.tolist() == [1, 2, 2, 2, 2]


def test_an_end_makes_room_for_an_arrival_of_the_same_instant() -> None:
    one = serving([0, 4], [4, 4])
    one.advance(10)
    assert one.waits.tolist() == [0, 0]


def test_patience_ends_at_its_last_instant() -> None:
    # The slot is free at 10.5 and 10.0 after the waiting ones came: one was refused by then, and
    # so was the one that had waited for ten seconds to the instant.
    one = serving([0, 0.5, 1.0, 1.5], [11, 1, 1, 1])
    one.advance(10.6)
    assert (one.waits.tolist()[1], one.waiting) == (REFUSED, 2)
    one.advance(30)
    assert one.waits.tolist() == [0, REFUSED, REFUSED, 9.5]
    assert one.loads.tolist() == [1, 0, 0, 1]


def test_new_workers_take_what_waits_in_turn() -> None:
    one = serving([0, 0, 1, 2, 3, 4], [90, 90, 5, 6, 7, 8], slots=2)
    one.advance(5)
    one.join(5, 2)
    assert (one.in_progress, one.waiting, one.workers) == (6, 0, 3)
    assert one.waits.tolist() == [0, 0, 4, 3, 2, 1]
    # Two new workers fill by turns.
    assert one.loads.tolist() == [1, 2, 1, 1, 2, 2]


def test_a_worker_that_leaves_keeps_an_even_share_and_takes_no_more() -> None:
    # Eight on two workers of four: every second leaves.
    full = serving([0.0] * 8, [1, 2, 3, 4, 5, 6, 7, 8], slots=4, workers=2)
    full.advance(0.5)
    assert full.leave(0.5).tolist() == [2, 4, 6, 8]
    assert (full.in_progress, full.workers) == (4, 1)
    # Seven: one of the two has three.
    busy = serving([0.0] * 7 + [0.75, 0.75], [1, 2, 3, 4, 5, 6, 7, 1, 1], slots=4, workers=2)
    busy.advance(0.5)
    assert busy.leave(0.5).tolist() == [2, 4, 6]
    busy.advance(3)
    # Four are left, as many as there are slots: the two wait for the ends at 1 and, of the first
    # of them, at 2.
    assert busy.waits.tolist()[7:] == [0.25, 1.25]


def test_the_last_worker_takes_all_with_it() -> None:
    one = serving([0, 2, 3], [5, 5, 5], slots=2)
    one.advance(1)
    assert one.leave(1).tolist() == [5]
    one.advance(9)
    assert (one.in_progress, one.waiting) == (0, 2)
    one.advance(30)
    assert one.waits.tolist() == [0, REFUSED, REFUSED]


@dataclass
class EveryWorker:
    """The same queue, an event at a time, with the generations of each worker."""

    slots: int
    patience: float
    workers: list[list[float]] = field(default_factory=list)
    queue: list[tuple[int, float, float]] = field(default_factory=list)
    waits: dict[int, float] = field(default_factory=dict)
    loads: dict[int, int] = field(default_factory=dict)

    def run(self, times: Floats, durations: Floats, joins: list[tuple[float, int]]) -> None:
        """Play arrivals, and workers that join."""
        events: list[tuple[float, int, int, float]] = [
            (float(time), 1, index, float(duration))
            for index, (time, duration) in enumerate(zip(times, durations, strict=True))
        ]
        events += [(time, 2, count, 0.0) for time, count in joins]
        events += [(float(times[-1]) + 100, 3, 0, 0.0)]
        for time, kind, value, duration in sorted(events):
            self.until(time)
            if kind == 1:
                self.queue.append((value, time, duration))
            elif kind == 2:
                self.workers += [[] for _ in range(value)]
            self.serve(time)

    def until(self, time: float) -> None:
        while (end := min((w[0] for w in self.workers if w), default=time + 1)) <= time:
            for worker in self.workers:
                if worker and worker[0] == end:
                    heapq.heappop(worker)
                    break
            self.serve(end)
        self.serve(time)

    def serve(self, now: float) -> None:
        while self.queue:
            index, came, duration = self.queue[0]
            least = min(self.workers, key=len, default=None)
            if came + self.patience <= now:
                self.waits[index] = REFUSED
            elif least is not None and len(least) < self.slots:
                heapq.heappush(least, now + duration)
                self.waits[index], self.loads[index] = now - came, len(least)
            else:
                return
            self.queue.pop(0)


@pytest.mark.parametrize("seed", range(12))
def test_waits_are_those_of_a_simulator_that_knows_every_worker(seed: int) -> None:
    random = np.random.default_rng(seed)
    # Around what two to five workers of four slots can do: at times enough, at times not.
    rate = random.uniform(1.6, 3)
    times = np.cumsum(random.exponential(1 / rate, 600))
    durations = 4 * np.exp(0.5 * random.standard_normal(600))
    joins = [(float(times[200]), 1), (float(times[400]), 2)]
    slow = EveryWorker(slots=4, patience=5, workers=[[], []])
    slow.run(times, durations, joins)

    fast = Serving(times, durations, slots=4, workers=2, patience_seconds=5)
    steps = [*np.arange(0, times[-1] + 100, 2.5).tolist(), *(time for time, _ in joins)]
    for step in sorted(steps):
        fast.advance(step)
        for time, workers in joins:
            if time == step:
                fast.join(step, workers)

    waits = np.array([slow.waits[index] for index in range(600)])
    assert 20 < np.count_nonzero(waits) < 580
    np.testing.assert_allclose(fast.waits, waits, rtol=0, atol=1e-9)
    # What waited started on a full worker or on a new one, which is exact. Others are said to
    # meet what even workers have, which is no less than the least loaded one has.
    waited = [index for index in range(600) if 0 < waits[index] < REFUSED]
    assert [fast.loads[index] for index in waited] == [slow.loads[index] for index in waited]
    at_once = [index for index in range(600) if waits[index] == 0]
    more = [fast.loads[index] - slow.loads[index] for index in at_once]
    assert min(more) >= 0
    assert max(more) <= 2
    assert np.mean(more) < 0.5


def test_it_makes_no_difference_how_often_one_looks() -> None:
    random = np.random.default_rng(7)
    times = np.cumsum(random.exponential(1 / 3, 900))
    durations = 4 * np.exp(0.5 * random.standard_normal(900))
    results = []
    for step in (0.3, 5.0, 50.0):
        one = Serving(times, durations, slots=4, workers=3, patience_seconds=5)
        for until in np.arange(0, times[-1] + 100, step):
            one.advance(float(until))
        results.append(one)
    assert np.count_nonzero(results[0].waits) > 50
    for other in results[1:]:
        np.testing.assert_array_equal(other.waits, results[0].waits)
