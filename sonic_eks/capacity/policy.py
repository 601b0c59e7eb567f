"""The policy that scales a model's workers: rendered for KEDA, and simulated, from one place.

The HPA wants ``ceil(signal / threshold)`` workers, with ::

    demand = in_progress + min(waiting, slots * workers)
    ahead  = max(demand, demand + look_ahead_seconds * slope)
    signal = ahead + margin_sigmas * sqrt(ahead) + reserve_generations

in generations, where the slope is that of a straight line through the demand's last
`look_ahead_window_seconds`.

Arrivals that know nothing of each other keep a number of slots busy that varies by the square root
of its mean (Poisson), so a large service needs a smaller share of spare slots than a small one
("square-root staffing").

A queue holds all that came while its callers were patient, which is more than is needed at once by
as many times as their patience is longer than a generation. So it counts for one more filling of
the workers at most, and demand never more than doubles by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from sonic_eks.config import Configuration
from sonic_eks.config.schedules import Schedule
from sonic_eks.config.service import Model
from sonic_eks.sizing.demand import REACTION_SECONDS

PERIOD_SECONDS = 15
"""Seconds between two decisions of the HPA.

kube-controller-manager reference: horizontal-pod-autoscaler-sync-period.
"""

STEP_SECONDS = 5
"""Between two of the points that a slope is taken of: as often as pods are scraped.

Longer windows have longer steps, so that a slope is of `_MOST_POINTS` points at most. Prometheus
looks through ten minutes of each worker for each of them, and KEDA waits for three seconds.
"""

_MOST_POINTS = 90

# As in the configuration.
_LEAST_WINDOW, _MOST_WINDOW = 60, 1800


@dataclass(frozen=True)
class Limit:
    """How fast replicas may change.

    Attributes
    ----------
    kind : str
        Whether `value` is pods or percent.
    value : int
        The largest change.
    period_seconds : int
        Time in which it may be made.
    """

    kind: Literal["Pods", "Percent"]
    value: int
    period_seconds: int


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One half of an HPA's behavior.

    Attributes
    ----------
    window_seconds : int
        Stabilization window: the most cautious wish in it counts.
    limits : tuple of Limit
        The one that allows the largest change counts.
    tolerance : float
        Share by which the signal may miss its target before anything changes.
    """

    window_seconds: int
    limits: tuple[Limit, ...]
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class ScalingPolicy:
    """How the workers of a model are scaled.

    Attributes
    ----------
    threshold : float
        Generations that a worker is to have (KEDA's `threshold`, an AverageValue).
    slots : int
        Generations that a worker takes at once.
    margin_sigmas, reserve_generations : float
        See the module.
    look_ahead_seconds, look_ahead_window_seconds : int
        Seconds ahead, 0 for not at all, and seconds of the past that it rests on.
    min_replicas, max_replicas : int
        Bounds.
    up, down : Direction
        Behavior.
    headroom_gpus : int
        GPUs that placeholders hold.
    node_keep_seconds : int
        Seconds for which a node that became empty is kept.
    """

    threshold: float
    slots: int
    margin_sigmas: float
    reserve_generations: float
    look_ahead_seconds: int
    look_ahead_window_seconds: int
    min_replicas: int
    max_replicas: int
    up: Direction
    down: Direction
    headroom_gpus: int
    node_keep_seconds: int

    @property
    def step_seconds(self) -> int:
        """Seconds between two of the points that the slope is taken of."""
        longest = _MOST_POINTS * STEP_SECONDS
        return STEP_SECONDS * math.ceil(self.look_ahead_window_seconds / longest)

    @property
    def points(self) -> int:
        """Points that the slope is taken of."""
        return math.ceil(self.look_ahead_window_seconds / self.step_seconds)


def worker_policy(config: Configuration, model: Model) -> ScalingPolicy:
    """Return the policy of a model's workers, or of the servers that stand alone."""
    scaling = config.scaling
    ahead, window = scaling.look_ahead_seconds, scaling.look_ahead_window_seconds
    if ahead is None:
        ahead = scaling.cold_start_seconds + REACTION_SECONDS
    up, down = directions(config)
    return ScalingPolicy(
        threshold=config.generations_per_gpu * scaling.target_utilization,
        slots=config.generations_per_gpu,
        margin_sigmas=scaling.margin_sigmas,
        reserve_generations=config.reserve_generations,
        look_ahead_seconds=ahead,
        # Chance in the slope is multiplied by the seconds ahead: further ahead, a longer line.
        look_ahead_window_seconds=window or min(max(ahead, _LEAST_WINDOW), _MOST_WINDOW),
        min_replicas=config.min_replicas(model),
        max_replicas=config.max_replicas(model),
        up=up,
        down=down,
        headroom_gpus=config.headroom_gpus,
        node_keep_seconds=config.nodes.gpu.consolidate_after_seconds,
    )


def counts_queue(config: Configuration) -> bool:
    """Tell whether what waits for a model's workers is part of their demand."""
    queue = config.scaling.queue
    known = len(config.models) == 1 or queue.model_label is not None
    return config.topology == "distributed" and queue.counted and known


def concerns(schedule: Schedule, model: Model) -> bool:
    """Tell whether a schedule is for a model."""
    return not schedule.models or model.name in schedule.models


def directions(config: Configuration) -> tuple[Direction, Direction]:
    """Return how pods are added and removed, whatever they are scaled on."""
    scaling = config.scaling
    added = Limit("Pods", scaling.scale_up_pods_per_period, PERIOD_SECONDS)
    period = scaling.scale_down_period_seconds
    removed = (
        Limit("Pods", scaling.scale_down_pods_per_period, period),
        Limit("Percent", scaling.scale_down_percent_per_period, period),
    )
    return (
        Direction(window_seconds=0, limits=(added,), tolerance=scaling.scale_up_tolerance),
        Direction(
            window_seconds=scaling.scale_down_window_seconds,
            limits=removed,
            tolerance=scaling.scale_down_tolerance,
        ),
    )
