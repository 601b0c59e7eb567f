"""From demand in generations to workers, spare GPUs and API pods; each formula once.

The signal is that of the scaling policy where demand stands still (`sonic_eks.capacity.policy`)::

    workers = ceil((demand + margin_sigmas * sqrt(demand) + reserve) / threshold)

While demand rises, what was ordered arrives late: a rise that begins is known to nobody before it
is seen. Until the first worker that was ordered for it is ready, it needs slots that are free
already, or GPUs that are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

REACTION_SECONDS = 30
"""Seconds until a rise reaches the HPA: its sync of 15 s, and as much for scrape and poll.

kube-controller-manager reference, horizontal-pod-autoscaler-sync-period.
"""

WARM_START_SHARE = 0.3
"""Share of a cold start that a worker on a spare GPU still needs: weights and warm-up (assumed)."""

GENERATION_SECONDS = 1.0
"""Length of a generation: a sentence of five seconds at a real-time factor of 0.2 (assumed)."""

# A sum of decimals that meets the threshold exactly needs no further worker.
_NOISE = 1e-9


@dataclass(frozen=True)
class Demand:
    """Demand of one model, in generations in progress.

    Attributes
    ----------
    peak, trough : float
        Mean in the busiest minutes, and in the quietest hours.
    ramp_per_minute : float
        How fast it rises at the steepest.
    """

    peak: float
    trough: float
    ramp_per_minute: float

    def risen(self, seconds: float) -> float:
        """Return by how much it rises in some seconds: by the ramp, and to the peak at most."""
        return min(self.ramp_per_minute * seconds / 60, self.peak - self.trough)


def workers_for(demand: float, *, threshold: float, sigmas: float, reserve: float) -> int:
    """Return the workers that the policy wants for a demand that stands still."""
    signal = demand + sigmas * math.sqrt(demand) + reserve
    return math.ceil(signal / threshold - _NOISE)


def seconds_to_a_spare_gpu(cold_start_seconds: int) -> float:
    """Return the seconds from the beginning of a rise until a worker on a spare GPU is ready."""
    return REACTION_SECONDS + WARM_START_SHARE * cold_start_seconds


def seconds_to_a_new_node(cold_start_seconds: int) -> float:
    """Return the seconds from the beginning of a rise until a worker on a new node is ready."""
    return REACTION_SECONDS + cold_start_seconds


def reserve_for(demand: Demand, *, cold_start_seconds: int, free: float) -> int:
    """Return the generations to hold free on running workers, beside those that are.

    They last until a worker on a spare GPU is ready.
    """
    rise = demand.risen(seconds_to_a_spare_gpu(cold_start_seconds))
    return max(0, math.ceil(rise - free - _NOISE))


def headroom_for(demand: Demand, *, cold_start_seconds: int, free: float, slots: int) -> int:
    """Return the spare GPUs that last until a worker on a new node is ready."""
    short = demand.risen(seconds_to_a_new_node(cold_start_seconds)) - free
    return max(0, math.ceil(short / slots - _NOISE))


def streams_of(generations: float, *, idle_seconds: int) -> float:
    """Return the active streams of generations: each outlives its generation by `idle_seconds`."""
    return generations * (1 + idle_seconds / GENERATION_SECONDS)


def waiting_share(demand: float, slots: int) -> float:
    """Return the share of generations that finds no free slot (Erlang C); 1 from full load on.

    Parameters
    ----------
    demand : float
        Generations in progress in the mean.
    slots : int
        Generations that can be in progress.
    """
    if demand >= slots:
        return 1.0
    blocked = 1.0
    for busy in range(1, slots + 1):
        blocked = demand * blocked / (busy + demand * blocked)
    load = demand / slots
    return blocked / (1 - load * (1 - blocked))
