"""From generations in progress to conversations: a slot is busy only while audio is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST = 100_000


@dataclass(frozen=True)
class Conversations:
    """Conversations that a number of generations in progress carries.

    Attributes
    ----------
    average : float
        As many as keep that number busy in the mean: what many GPUs together carry for each.
    alone : int
        As many that a generation which begins finds a free slot in the objective's share of
        cases: what one GPU carries by itself.
    """

    average: float
    alone: int


def conversations(
    generations: int, *, busy: float, speaking_percent: float, percentile: float
) -> Conversations:
    """Return the conversations that a capacity in generations carries.

    Parameters
    ----------
    generations : int
        Generations in progress that keep the objective.
    busy : float
        Seconds in which a generation is in progress for each second of its audio.
    speaking_percent : float
        Share of a conversation's time in which the service's audio plays (assumed).
    percentile : float
        Share of generations in percent that must find a free slot.
    """
    occupied = min(busy * speaking_percent / 100, 1.0)
    if generations < 1 or not occupied > 0:
        return Conversations(0.0, 0)
    alone = generations
    while alone < _MOST and _crowded(alone, generations, occupied) * 100 <= 100 - percentile:
        alone += 1
    return Conversations(generations / occupied, alone)


def _crowded(others: int, generations: int, occupied: float) -> float:
    """Return the chance that at least `generations` of `others` are in progress (binomial)."""
    if occupied >= 1:
        return float(others >= generations)
    log_free, log_busy = math.log1p(-occupied), math.log(occupied)
    below = 0.0
    for busy in range(min(generations, others + 1)):
        ways = math.lgamma(others + 1) - math.lgamma(busy + 1) - math.lgamma(others - busy + 1)
        below += math.exp(ways + busy * log_busy + (others - busy) * log_free)
    return max(0.0, 1 - below)
