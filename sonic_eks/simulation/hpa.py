"""What the HorizontalPodAutoscaler makes of a signal.

Kubernetes, "Horizontal Pod Autoscaling" (algorithm, tolerance, configurable behavior), and
kubernetes/kubernetes, pkg/controller/podautoscaler, for what the page leaves open: that the
tolerance is of a ratio to the replicas that there are, that limits count from the replicas at the
period's start, and how shares of a replica are rounded. `selectPolicy` is Max, its default.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from sonic_eks.capacity.policy import Direction, Limit


def wish_of_average_value(
    total: float, target: float, replicas: int, *, up_tolerance: float, down_tolerance: float
) -> int:
    """Return the replicas that an External metric of type AverageValue asks for.

    Parameters
    ----------
    total : float
        The metric; External metrics know no pods, so that their readiness does not count.
    target : float
        What a replica is to have of it.
    replicas : int
        Replicas that there are, ready or not.
    up_tolerance, down_tolerance : float
        Share by which the average may miss the target before anything changes.
    """
    # Quantities have three digits: without that 6.4 * 10 replicas would ask for an eleventh.
    thousandths, wanted = round(total * 1000), round(target * 1000)
    if replicas and _within(thousandths / (wanted * replicas), up_tolerance, down_tolerance):
        return replicas
    return math.ceil(thousandths / wanted)


def wish_of_utilization(
    percent: float, target_percent: float, replicas: int, *, tolerance: float
) -> int:
    """Return the replicas that a Resource metric of type Utilization asks for.

    Parameters
    ----------
    percent, target_percent : float
        Utilization of the ready pods, of which whole percents count, and its target.
    replicas : int
        Ready pods.
    tolerance : float
        As in `wish_of_average_value`, both ways.
    """
    ratio = math.floor(percent) / target_percent
    if _within(ratio, tolerance, tolerance):
        return replicas
    return math.ceil(ratio * replicas)


def _within(ratio: float, up_tolerance: float, down_tolerance: float) -> bool:
    return 1 - down_tolerance <= ratio <= 1 + up_tolerance


@dataclass(kw_only=True)
class Hpa:
    """An HPA with its memory: what was wished for, and what was changed.

    Attributes
    ----------
    up, down : Direction
        Behavior.
    min_replicas, max_replicas : int
        Bounds.
    """

    up: Direction
    down: Direction
    min_replicas: int
    max_replicas: int
    _began: bool = field(default=False, repr=False)
    _wishes: deque[tuple[float, int]] = field(default_factory=deque, repr=False)
    _changes: deque[tuple[float, int]] = field(default_factory=deque, repr=False)

    def decide(self, now: float, replicas: int, wish: int) -> int:
        """Return the replicas from now on.

        Parameters
        ----------
        now : float
            Seconds, never less than before.
        replicas : int
            Replicas that there are.
        wish : int
            Replicas that the metric asks for.
        """
        if not self._began:
            # What there is when the controller begins is the first of its recommendations.
            self._wishes.append((now, replicas))
            self._began = True
        self._forget(now)
        if not self.min_replicas <= replicas <= self.max_replicas:
            decided = min(max(replicas, self.min_replicas), self.max_replicas)
        else:
            decided = self._limited(now, replicas, self._stabilized(now, replicas, wish))
        if decided != replicas:
            self._changes.append((now, decided - replicas))
        return decided

    def _forget(self, now: float) -> None:
        periods = [limit.period_seconds for limit in (*self.up.limits, *self.down.limits)]
        windows = (self.up.window_seconds, self.down.window_seconds)
        for memory, seconds in ((self._wishes, max(windows)), (self._changes, max(periods))):
            while memory and memory[0][0] <= now - seconds:
                memory.popleft()

    def _stabilized(self, now: float, replicas: int, wish: int) -> int:
        """Return the wish that the windows leave: no less caution than any wish in them had."""
        lowest = min([wish, *self._wished_since(now - self.up.window_seconds)])
        highest = max([wish, *self._wished_since(now - self.down.window_seconds)])
        self._wishes.append((now, wish))
        return min(max(replicas, lowest), highest)

    def _wished_since(self, cutoff: float) -> list[int]:
        return [wish for time, wish in self._wishes if time > cutoff]

    def _limited(self, now: float, replicas: int, wish: int) -> int:
        if wish > replicas:
            allowed = max(self._most(now, replicas, limit) for limit in self.up.limits)
            return min(wish, self.max_replicas, max(allowed, replicas))
        if wish < replicas:
            allowed = min(self._least(now, replicas, limit) for limit in self.down.limits)
            return max(wish, self.min_replicas, min(allowed, replicas))
        return replicas

    def _most(self, now: float, replicas: int, limit: Limit) -> int:
        began = self._at_start(now, replicas, limit)
        if limit.kind == "Pods":
            return began + limit.value
        # Rounded up, or a small percentage would add nothing.
        return math.ceil(began * (1 + limit.value / 100))

    def _least(self, now: float, replicas: int, limit: Limit) -> int:
        began = self._at_start(now, replicas, limit)
        if limit.kind == "Pods":
            return began - limit.value
        return int(began * (1 - limit.value / 100))

    def _at_start(self, now: float, replicas: int, limit: Limit) -> int:
        """Return the replicas that there were when the limit's period began."""
        cutoff = now - limit.period_seconds
        return replicas - sum(change for time, change in self._changes if time > cutoff)
