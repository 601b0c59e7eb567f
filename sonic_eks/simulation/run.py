"""A scaling policy on a trace: how many generations missed the objective, and for how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonic_eks.capacity.policy import PERIOD_SECONDS, STEP_SECONDS, ScalingPolicy
from sonic_eks.simulation.hpa import Hpa, wish_of_average_value, wish_of_utilization
from sonic_eks.simulation.metrics import Scrapes, Signal, even_loads
from sonic_eks.simulation.nodes import ColdStart, Fleet
from sonic_eks.simulation.serving import REFUSED, Floats, Serving

SIGNAL_AGE_SECONDS = STEP_SECONDS / 2
"""Seconds from a scrape to the decision on it: pods are scraped at times of their own."""

_QUEUE = 0
"""Number of what tells of the queue; workers are numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that is no policy's choice.

    Attributes
    ----------
    slots : int
        Generations that a worker takes at once.
    first_audio_ms : tuple of float
        Time to first audio by load, from 1 to `slots`, at the objective's percentile.
    objective_ms : float
        What that and a generation's wait may be together.
    patience_seconds : float
        Seconds in the queue after which a generation is refused.
    cold_start : ColdStart
        What a worker waits for.
    warm_up_seconds : float
        Seconds of the trace, before second zero, that are not counted.
    end_seconds : float
        Where the trace ends.
    scrape_loss : float
        Chance that a pod's value is missing from a scrape.
    outages : tuple of (begin, end)
        Seconds between which no node can be had.
    base_gpus : int
        GPUs that are there in any case.
    """

    slots: int
    first_audio_ms: tuple[float, ...]
    objective_ms: float
    patience_seconds: float
    cold_start: ColdStart
    warm_up_seconds: float
    end_seconds: float
    scrape_loss: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()
    base_gpus: int = 0


@dataclass(frozen=True, kw_only=True)
class Scaler:
    """A policy and what it looks at.

    Attributes
    ----------
    policy : ScalingPolicy
        The policy.
    queue : bool
        Whether what waits is demand, too.
    cpu_per_load : float or None
        CPU utilization at full load, where that is the signal and `policy.threshold` its target,
        both as shares.
    """

    policy: ScalingPolicy
    queue: bool = True
    cpu_per_load: float | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of it.

    Attributes
    ----------
    generations, violating, refused : int
        Generations; those that missed the objective, refused ones included; those.
    gpu_hours : float
        Hours of all nodes.
    scale_ins : int
        Workers that were ready and were removed.
    """

    generations: int
    violating: int
    refused: int
    gpu_hours: float
    scale_ins: int

    @property
    def share(self) -> float:
        """Share of the generations that missed the objective."""
        return self.violating / max(self.generations, 1)


class Watcher:
    """Hears of every scrape and decision; what it does not want it leaves as it is."""

    def scraped(
        self, now: float, loads: Mapping[int, int], leaving: Mapping[int, int], waiting: int
    ) -> None:
        """Hear what there was to see.

        Parameters
        ----------
        now : float
            Seconds.
        loads, leaving : mapping of int to int
            Generations of each worker that serves, and that was removed, by its number.
        waiting : int
            Generations in the queue.
        """

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        """Hear what was made of it.

        Parameters
        ----------
        now : float
            Seconds.
        signal : float
            The policy's signal, in generations; of CPU, the utilization.
        ready, replicas : int
            Workers that serve, and that there are from now on.
        """

    def judged(self, times: Floats, missed: NDArray[np.bool_]) -> None:
        """Hear, at the end, which generations missed the objective.

        Parameters
        ----------
        times : ndarray, shape (n,)
            When each that is counted came.
        missed : ndarray, shape (n,)
            Whether it did.
        """


def simulate(
    times: Floats,
    durations: Floats,
    *,
    world: World,
    scaler: Scaler,
    replicas: int,
    seed: int = 0,
    watcher: Watcher | None = None,
) -> Result:
    """Play a trace.

    Parameters
    ----------
    times, durations : ndarray, shape (n,)
        Arrivals in rising seconds, and the seconds that each keeps a slot.
    world : World
        World.
    scaler : Scaler
        Policy.
    replicas : int
        Workers at the beginning, ready.
    seed : int
        Of what scrapes lose.
    watcher : Watcher, optional
        Hears what happens.
    """
    return _Run(times, durations, world, scaler, replicas, seed, watcher).result()


class _Run:
    def __init__(
        self,
        times: Floats,
        durations: Floats,
        world: World,
        scaler: Scaler,
        replicas: int,
        seed: int,
        watcher: Watcher | None,
    ) -> None:
        policy = scaler.policy
        self._times, self._world, self._scaler, self._watcher = times, world, scaler, watcher
        self._serving = Serving(
            times,
            durations,
            slots=world.slots,
            workers=replicas,
            patience_seconds=world.patience_seconds,
        )
        self._fleet = Fleet(
            cold_start=world.cold_start,
            headroom=policy.headroom_gpus,
            keep_seconds=policy.node_keep_seconds,
            always=world.base_gpus,
            outages=world.outages,
        )
        self._begin = -world.warm_up_seconds
        self._fleet.begin(self._begin, replicas)
        self._hpa = Hpa(
            up=policy.up,
            down=policy.down,
            min_replicas=policy.min_replicas,
            max_replicas=policy.max_replicas,
        )
        self._scrapes = Scrapes(world.scrape_loss, np.random.default_rng(seed))
        self._signal = Signal(policy)
        self._scale_ins = 0
        self._leaving: dict[int, list[float]] = {}
        # A value that is replaced before anybody looks changes nothing.
        looks = watcher is not None or world.scrape_loss or policy.look_ahead_seconds
        self._scrape_seconds = STEP_SECONDS if looks else PERIOD_SECONDS

    def result(self) -> Result:
        """Play it."""
        world, serving = self._world, self._serving
        scrapes = np.arange(self._begin, world.end_seconds, self._scrape_seconds).tolist()
        for now in scrapes:
            self._advance(now)
            demand = self._scrape(now)
            self._signal.note(demand)
            if (now - self._begin) % PERIOD_SECONDS == 0:
                self._sync(now + SIGNAL_AGE_SECONDS, demand)
        self._advance(world.end_seconds)
        gpu_hours = self._fleet.gpu_hours(0, world.end_seconds)
        serving.advance(world.end_seconds + world.patience_seconds)

        counted = slice(int(np.searchsorted(self._times, 0)), None)
        times = self._times[counted]
        waits, loads = serving.waits[counted], serving.loads[counted]
        first_audio_ms = 1000 * waits + np.array((0.0, *world.first_audio_ms))[loads]
        missed = first_audio_ms > world.objective_ms
        if self._watcher is not None:
            self._watcher.judged(times, missed)
        return Result(
            generations=len(times),
            violating=int(missed.sum()),
            refused=int((waits == REFUSED).sum()),
            gpu_hours=gpu_hours,
            scale_ins=self._scale_ins,
        )

    def _advance(self, until: float) -> None:
        self._join(until)
        self._serving.advance(until)

    def _join(self, until: float) -> None:
        for time, workers in self._fleet.ready(until):
            self._serving.advance(time)
            self._serving.join(time, workers)

    def _scrape(self, now: float) -> float:
        """Return the demand that the scrapes up to now tell of."""
        serving = self._serving
        waiting = serving.waiting if self._scaler.queue else 0
        if self._watcher is None and not self._world.scrape_loss:
            return self._signal.demand(serving.in_progress, waiting, serving.workers)
        pods = sorted(pod.number for pod in self._fleet.pods if pod.ready <= now)
        loads = even_loads(serving.in_progress, pods)
        if self._watcher is not None:
            self._watcher.scraped(now, loads, self._left(now), serving.waiting)
        known = dict(self._scrapes.seen({**loads, _QUEUE: waiting}))
        waiting = known.pop(_QUEUE, 0)
        return self._signal.demand(sum(known.values()), waiting, len(known))

    def _sync(self, now: float, demand: float) -> None:
        self._join(now)
        replicas, ready = len(self._fleet.pods), self._serving.workers
        signal, wish = self._wish(demand, replicas, ready)
        decided = self._hpa.decide(now, replicas, wish)
        if decided < replicas:
            self._serving.advance(now)
        for pod in self._fleet.scale(now, decided):
            self._leaving[pod.number] = ends = self._serving.leave(now).tolist()
            self._fleet.end(pod, max(ends, default=now))
            self._scale_ins += 1
        if self._watcher is not None:
            self._watcher.decided(now, signal, self._serving.workers, decided)

    def _left(self, now: float) -> dict[int, int]:
        """Return what each worker has left that was removed and is not done."""
        left = {pod: sum(end > now for end in ends) for pod, ends in self._leaving.items()}
        return {pod: count for pod, count in left.items() if count}

    def _wish(self, demand: float, replicas: int, ready: int) -> tuple[float, int]:
        policy, cpu = self._scaler.policy, self._scaler.cpu_per_load
        if cpu is not None:
            used = 100 * cpu * demand / max(ready * self._world.slots, 1)
            target = 100 * policy.threshold
            return used, wish_of_utilization(used, target, ready, tolerance=policy.up.tolerance)
        signal = self._signal.of(demand)
        return signal, wish_of_average_value(
            signal,
            policy.threshold,
            replicas,
            up_tolerance=policy.up.tolerance,
            down_tolerance=policy.down.tolerance,
        )
