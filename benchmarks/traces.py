"""The world in which scaling policies are compared, fixed before any policy of ours existed.

Demand, seeds, serving and the policies to beat are here and nowhere else; a comparison reads
them, and a policy that loses is improved, never its world.

Serving
-------
Every worker takes `capacity` generations at once, as many as its profile keeps within the
objective, the least loaded worker first. What finds no free slot waits in one queue, first come
first served, and is refused after `PATIENCE_SECONDS`. A generation violates the objective when it
is refused, or when its wait and its time to first audio, at the objective's percentile for its
worker's load, are more than the objective together.

Nodes
-----
A pod that finds no free GPU waits for a node: `NODE` of the cold start until it can run pods,
`IMAGE` until the worker's image is there, `WEIGHTS` until the model is loaded and warm. A node
that was freed within its keep time has the image already, and one that a placeholder held too.
A pod that is scaled in takes nothing new, finishes what it has, and frees its node then. A node
costs from its launch until it is gone.

The first `WARM_UP_SECONDS`, at the demand of second zero, are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HOUR = 3600.0
TRACE_SECONDS = 6 * HOUR
WARM_UP_SECONDS = 0.5 * HOUR

TUNING_SEEDS = range(10)
REPORTED_SEEDS = range(100, 120)

PROFILE = "profiles/h100.yaml"
"""The vendor's table for the H100 (docs.cartesia.ai, "Hardware selection")."""

SLO_MS = 165.0
"""Objective for first audio in milliseconds: 8 generations a GPU in `PROFILE`."""

SLO_PERCENTILE = 95

MEDIAN_SECONDS = 4.0
"""Median duration of a generation in seconds."""

SIGMA = 0.5
"""Standard deviation of its natural logarithm."""

MEAN_SECONDS = MEDIAN_SECONDS * float(np.exp(SIGMA**2 / 2))
"""Mean of that lognormal distribution in seconds."""

PATIENCE_SECONDS = 10.0
"""Seconds in the queue after which a request is refused."""

COLD_START_SECONDS = 180.0
"""Seconds from a pending pod without a node to a worker that is ready."""

NODE, IMAGE, WEIGHTS = 0.4, 0.3, 0.3
"""Shares of the cold start: instance until the node is ready, image, weights with warm-up."""

SCRAPE_SECONDS = 5.0
SYNC_SECONDS = 15.0
"""Between two decisions of the HPA (kube-controller-manager's default)."""

MIN_REPLICAS = 2
MAX_REPLICAS = 200
"""More than any policy needs: 340 generations, where a GPU has 4 slots, at half load are 170."""


def daily(seconds: Floats) -> Floats:
    """Return a day of work, six hours long: from 60 to 300 and back."""
    return np.asarray(60 + 240 * np.maximum(0, np.sin(np.pi * seconds / TRACE_SECONDS)))


def step(seconds: Floats) -> Floats:
    """Return 60, and 300 from hour 1 to hour 4, at once."""
    return np.where((seconds >= HOUR) & (seconds < 4 * HOUR), 300.0, 60.0)


def bursts(seconds: Floats) -> Floats:
    """Return 80 and three bursts of 200 more, a quarter, half and three quarters in."""
    centres = [TRACE_SECONDS * quarter / 4 for quarter in (1, 2, 3)]
    waves = [np.exp(-((seconds - centre) ** 2) / (2 * 300.0**2)) for centre in centres]
    return np.asarray(80 + 200 * sum(waves))


def opening(seconds: Floats) -> Floats:
    """Return the opening of a call centre: from 20 to 300 around hour 1, closed at hour 5."""
    opened = 280 / (1 + np.exp(-(seconds - HOUR) / 120))
    return np.where(seconds < 5 * HOUR, 20 + opened, 20.0)


def ramp(seconds: Floats) -> Floats:
    """Return 40, from minute 30 on 10 more a minute up to 340, and 40 again from hour 4."""
    risen = np.clip((seconds - 0.5 * HOUR) / (0.5 * HOUR), 0, 1)
    return np.where(seconds < 4 * HOUR, 40 + 300 * risen, 40.0)


TRACES: Mapping[str, Callable[[Floats], Floats]] = {
    "daily": daily,
    "step": step,
    "bursts": bursts,
    "opening": opening,
    "ramp": ramp,
}
"""Demand in concurrent generations by seconds since the start."""


@dataclass(frozen=True)
class Arrivals:
    """Generations by rising time.

    Attributes
    ----------
    times : ndarray, shape (n,)
        Seconds since the trace's start, from -`WARM_UP_SECONDS` on.
    durations : ndarray, shape (n,)
        Seconds that each keeps a slot.
    """

    times: Floats
    durations: Floats


def arrivals(trace: str, seed: int) -> Arrivals:
    """Return the generations of a trace: Poisson arrivals, lognormal durations.

    Parameters
    ----------
    trace : str
        Key of `TRACES`.
    seed : int
        Seed of the draw; the same for every policy.
    """
    # Not `hash`, which differs between processes.
    random = np.random.default_rng([seed, list(TRACES).index(trace)])
    starts = np.arange(-WARM_UP_SECONDS, TRACE_SECONDS)
    # Demand in the middle of each second; little's law turns it into arrivals a second.
    rates = TRACES[trace](np.maximum(starts + 0.5, 0)) / MEAN_SECONDS
    counts = random.poisson(rates)
    times = np.repeat(starts, counts) + random.random(int(counts.sum()))
    durations = MEDIAN_SECONDS * np.exp(SIGMA * random.standard_normal(len(times)))
    return Arrivals(np.sort(times), durations)


@dataclass(frozen=True)
class Cell:
    """A world: the one that is reported, or one that differs from it in a single thing.

    Attributes
    ----------
    name : str
        What differs.
    cold_start_seconds : float
        Seconds from a pending pod without a node to a worker that is ready.
    profile_factor : float
        What the profile's times to first audio are multiplied by.
    scrape_loss : float
        Chance that a pod's value is missing from a scrape, each by itself.
    told : bool
        Whether the policies are set up for it. What an operator measures, cold start and profile,
        every policy is told; where it is not, the cell is shown for orientation and not counted.
    """

    name: str
    cold_start_seconds: float = COLD_START_SECONDS
    profile_factor: float = 1.0
    scrape_loss: float = 0.0
    told: bool = True


REPORTED = Cell("reported")

SENSITIVITY = (
    Cell("cold start 90 s", cold_start_seconds=90.0),
    REPORTED,
    Cell("cold start 360 s", cold_start_seconds=360.0),
    Cell("first audio 30 % sooner", profile_factor=0.7),
    Cell("first audio 30 % later", profile_factor=1.3),
    Cell("scrape loss 2 %", scrape_loss=0.02),
)
"""At most two of these may miss what is claimed for `REPORTED`."""

UNTOLD = tuple(
    replace(cell, name=f"{cell.name}, untold", told=False)
    for cell in SENSITIVITY
    if cell.cold_start_seconds != COLD_START_SECONDS
)


@dataclass(frozen=True)
class Baseline:
    """A policy to compare with: an HPA on External AverageValue, or on CPU.

    Attributes
    ----------
    name : str
        Who has it.
    target_share : float
        Target: share of a worker's capacity, or of CPU utilization.
    scale_up_window_seconds, scale_down_window_seconds : int
        Stabilization windows.
    scale_up_policies, scale_down_policies : tuple of (type, value, period_seconds)
        Policies; the one that allows the largest change is taken.
    node_keep_seconds : float
        Seconds that a freed node is kept.
    cpu_per_load : float or None
        CPU utilization at full load, where that is the signal; None: generations in progress.
    """

    name: str
    target_share: float
    scale_up_window_seconds: int
    scale_down_window_seconds: int
    scale_up_policies: tuple[tuple[str, int, int], ...]
    scale_down_policies: tuple[tuple[str, int, int], ...]
    node_keep_seconds: float
    cpu_per_load: float | None = None


_HPA_SCALE_UP = (("Percent", 100, 15), ("Pods", 4, 15))
"""Kubernetes, "Horizontal Pod Autoscaling", default behavior."""

VENDOR = Baseline(
    "vendor",
    # docs.cartesia.ai, "Auto scaling": load / capacity at 0.8, windows of 30 s and 900 s, one pod
    # a minute; Cluster Autoscaler's scale-down-unneeded-time is 10 minutes. The queue is not in
    # the signal: its triggers are for scaling from zero. How fast it adds pods is not said: the
    # HPA's own default.
    target_share=0.8,
    scale_up_window_seconds=30,
    scale_down_window_seconds=900,
    scale_up_policies=_HPA_SCALE_UP,
    scale_down_policies=(("Pods", 1, 60),),
    node_keep_seconds=600.0,
)

CPU = Baseline(
    "CPU",
    # CPU of the API pods says 0.3 of load / capacity, and 70 % is the target: for orientation.
    target_share=0.7,
    scale_up_window_seconds=0,
    scale_down_window_seconds=300,
    scale_up_policies=_HPA_SCALE_UP,
    scale_down_policies=(("Percent", 100, 15),),
    node_keep_seconds=600.0,
    cpu_per_load=0.3,
)

MOST_VIOLATIONS = 1 / 3
"""Claim: our policy has at most this share of the vendor's violating generations in total."""

MOST_GPU_HOURS = 1.0
"""Claim: at no more than this share of the vendor's GPU-hours in total."""

MOST_CELLS_MISSED = 2
