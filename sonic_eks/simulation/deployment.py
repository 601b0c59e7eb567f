"""A deployment on a trace of an operator's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sonic_eks.capacity.curve import chosen
from sonic_eks.capacity.policy import concerns, counts_queue, worker_policy
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.simulation.nodes import ColdStart
from sonic_eks.simulation.run import Scaler, Watcher, World, simulate
from sonic_eks.simulation.trace import Lengths, Trace, draw
from sonic_eks.sizing.demand import WARM_START_SHARE

WARM_UP_SECONDS = 1800.0

COLD_START_SHARES = (0.4, 0.3, WARM_START_SHARE)
"""Shares of `scaling.coldStartSeconds`: node, image, weights (assumed)."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a trace would come to, as a mean over draws of it.

    Attributes
    ----------
    generations, late, refused : float
        Generations; those that miss the objective, refused ones included; those.
    gpu_hours : float
        Hours of GPUs, headroom and kept ones included.
    most_workers : int
        The most that were wanted at once, in any draw.
    removed : float
        Workers that were drained and removed.
    left_out : tuple of str
        What of the deployment's scaling was not played.
    """

    generations: float
    late: float
    refused: float
    gpu_hours: float
    most_workers: int
    removed: float
    left_out: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of the generations that miss the objective."""
        return self.late / max(self.generations, 1)


class _Most(Watcher):
    def __init__(self) -> None:
        self.replicas = 0

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        self.replicas = max(self.replicas, replicas)


def world_of(config: Configuration, *, patience_seconds: float, end_seconds: float) -> World:
    """Return the world of a deployment.

    A worker with all of `generationsPerGpu` keeps the objective: that is what the number says.
    How far below it a worker with fewer is, is known where its GPU was measured. Each GPU is taken
    for a node of its own.
    """
    slots, cold = config.generations_per_gpu, config.scaling.cold_start_seconds
    node, image, weights = (share * cold for share in COLD_START_SHARES)
    point = chosen(config)
    objective_ms = float(config.slo.ttfb_ms if point is None else point.budget_ms)
    first_audio_ms = [objective_ms] * slots
    if point is not None and point.basis == "measured":
        measured = (point.curve.at(load) for load in range(1, slots + 1))
        first_audio_ms = [objective_ms if ms is None else min(ms, objective_ms) for ms in measured]
    return World(
        slots=slots,
        first_audio_ms=tuple(first_audio_ms),
        objective_ms=objective_ms,
        patience_seconds=patience_seconds,
        cold_start=ColdStart(node=node, image=image, weights=weights),
        warm_up_seconds=WARM_UP_SECONDS,
        end_seconds=end_seconds,
        base_gpus=config.nodes.gpu.base_size * config.nodes.gpu.workers_per_node,
    )


def forecast(
    config: Configuration,
    model: Model,
    trace: Trace,
    lengths: Lengths,
    *,
    patience_seconds: float,
    draws: int,
    advanced: Callable[[int], None] = lambda _: None,
) -> Forecast:
    """Play a trace under the policy of a model's workers.

    Parameters
    ----------
    config : Configuration
        Deployment.
    model : Model
        One of its models. One that may have no worker is played with one at least.
    trace : Trace
        Demand for it.
    lengths : Lengths
        How long its generations keep a slot.
    patience_seconds : float
        Seconds in the queue after which a generation is given up; where `scaling.overCapacity` is
        refuse, none waits.
    draws : int
        How often arrivals are drawn anew.
    advanced : callable
        Told how many draws are done.
    """
    if config.scaling.over_capacity == "refuse":
        patience_seconds = 0
    world = world_of(config, patience_seconds=patience_seconds, end_seconds=trace.end_seconds)
    policy = worker_policy(config, model)
    policy = replace(policy, min_replicas=max(policy.min_replicas, 1))
    scaler = Scaler(policy=policy, queue=counts_queue(config))
    first = math.ceil(float(trace.generations[0]) / policy.threshold)
    most, results = _Most(), []
    for seed in range(draws):
        times, durations = draw(trace, lengths, warm_up_seconds=WARM_UP_SECONDS, seed=seed)
        results.append(
            simulate(
                times,
                durations,
                world=world,
                scaler=scaler,
                replicas=min(max(first, policy.min_replicas), policy.max_replicas),
                seed=seed,
                watcher=most,
            )
        )
        advanced(seed + 1)
    return Forecast(
        generations=float(np.mean([one.generations for one in results])),
        late=float(np.mean([one.violating for one in results])),
        refused=float(np.mean([one.refused for one in results])),
        gpu_hours=float(np.mean([one.gpu_hours for one in results])),
        most_workers=most.replicas,
        removed=float(np.mean([one.scale_ins for one in results])),
        left_out=tuple(_left_out(config, model)),
    )


def _left_out(config: Configuration, model: Model) -> Iterator[str]:
    if any(concerns(schedule, model) for schedule in config.scaling.schedules):
        yield "schedules: a trace has no time of day"
    if model.min_replicas == 0:
        yield "times without a worker: there is one at least"
    if config.topology == "distributed" and config.drain.worker == "wait-idle":
        yield "work that a worker takes while it drains"
