"""What a policy sees of the service: scrapes, and the signal made of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from sonic_eks.capacity.policy import STEP_SECONDS, ScalingPolicy


def even_loads(in_progress: int, pods: Sequence[int]) -> dict[int, int]:
    """Return the load of each pod: even, the first ones have one more."""
    each, more = divmod(in_progress, max(len(pods), 1))
    return {pod: each + (index < more) for index, pod in enumerate(pods)}


class Scrapes:
    """The values of pods, each held where a scrape missed it.

    Parameters
    ----------
    loss : float
        Chance that a value is missing from a scrape, each by itself.
    random : Generator
        Decides.
    """

    def __init__(self, loss: float, random: np.random.Generator) -> None:
        self._loss = loss
        self._random = random
        self._values: dict[int, int] = {}

    def seen(self, values: Mapping[int, int]) -> Mapping[int, int]:
        """Return what is known after a scrape; a pod that was never seen has no value.

        Parameters
        ----------
        values : mapping
            Value of each pod that is there.
        """
        if not self._loss:
            return values
        missed = self._random.random(len(values)) < self._loss
        held = {}
        for (name, value), lost in zip(values.items(), missed, strict=True):
            if not lost:
                held[name] = value
            elif name in self._values:
                held[name] = self._values[name]
        self._values = held
        return held


class Signal:
    """The signal of `ScalingPolicy`: demand, what it will be, and the margins.

    Parameters
    ----------
    policy : ScalingPolicy
        Look-ahead and margins.
    """

    def __init__(self, policy: ScalingPolicy) -> None:
        self._policy = policy
        steps = np.arange(policy.points) * policy.step_seconds
        # The slope of a straight line through points is a sum over them with these weights.
        distances = steps - steps.mean()
        self._weights = distances / (distances**2).sum()
        self._demands: deque[float] = deque(maxlen=policy.points)
        self._each = policy.step_seconds // STEP_SECONDS
        self._noted = 0

    def demand(self, in_progress: int, waiting: int, workers: int) -> int:
        """Return the demand."""
        return in_progress + min(waiting, self._policy.slots * workers)

    def note(self, demand: float) -> None:
        """Remember the demand of a scrape, if it is one of the slope's points."""
        if self._noted % self._each == 0:
            self._demands.append(demand)
        self._noted += 1

    def of(self, demand: float) -> float:
        """Return the signal of a demand, given what was noted before it and with it."""
        policy = self._policy
        if policy.look_ahead_seconds and len(self._demands) == self._demands.maxlen:
            slope = float(self._weights @ np.array(self._demands))
            demand += max(0.0, policy.look_ahead_seconds * slope)
        return demand + policy.margin_sigmas * math.sqrt(demand) + policy.reserve_generations
