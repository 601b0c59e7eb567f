"""When generations are due: open-loop schedules, fixed before the run begins."""

from __future__ import annotations

import random


def constant(rate: float, count: int) -> list[float]:
    """Return `count` moments in seconds from 0, `rate` a second at even distances."""
    return [index / rate for index in range(count)]


def poisson(rate: float, count: int, seed: int) -> list[float]:
    """Return `count` moments in seconds from 0 of a Poisson process of `rate` a second."""
    dice = random.Random(seed)
    now, moments = 0.0, []
    for _ in range(count):
        now += dice.expovariate(rate)
        moments.append(now)
    return moments
