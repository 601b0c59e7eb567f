"""Rules of scaling that span sections.

The docstrings are the words of the generated reference.
"""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.scaling import Queue
from sonic_eks.sizing.demand import REACTION_SECONDS

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration


_MOST_TIMES_AHEAD = 4


def the_queue_has_a_meaning(c: Configuration) -> None:
    """`scaling.queue` is for `topology: distributed`.

    `models[].queueLabelValue` is given with `scaling.queue.modelLabel` alone, once each.
    """
    if c.topology == "standalone" and c.scaling.queue != Queue():
        raise Refusal(
            "settings", "none: with topology standalone no API has a queue", field="scaling.queue"
        )
    values: set[str] = set()
    for index, model in enumerate(c.models):
        field = f"models.{index}.queueLabelValue"
        if model.queue_label_value is not None and c.scaling.queue.model_label is None:
            raise Refusal(
                model.queue_label_value,
                "none while scaling.queue.modelLabel is unset",
                field=field,
            )
        value = model.queue_label_value or model.name
        if value in values:
            raise Refusal(value, "a value that no other model has", field=field)
        values.add(value)


def schedules_can_be_kept(c: Configuration) -> None:
    """Each of `scaling.schedules` has a name of its own, for models that there are.

    `scaling.schedules[].replicas` are at most the `maxReplicas` of each of them.
    """
    known = [model.name for model in c.models]
    names: set[str] = set()
    for index, schedule in enumerate(c.scaling.schedules):
        field = f"scaling.schedules.{index}"
        if schedule.name in names:
            raise Refusal(schedule.name, "each name once", field=f"{field}.name")
        names.add(schedule.name)
        for position, name in enumerate(schedule.models):
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                raise Refusal(
                    name,
                    f"names of models: {', '.join(known)}",
                    nearest=close[0] if close else None,
                    field=f"{field}.models.{position}",
                )
        for model in c.models:
            concerned = not schedule.models or model.name in schedule.models
            most = c.max_replicas(model)
            if concerned and schedule.replicas > most:
                raise Refusal(
                    schedule.replicas,
                    f"at most {most}, the maxReplicas of {model.name}",
                    nearest=str(most),
                    field=f"{field}.replicas",
                )


def a_first_caller_can_be_seen(c: Configuration) -> None:
    """`models[].minReplicas: 0` needs the queue: without workers nothing else tells of a caller.

    That is `topology: distributed` with `scaling.queue.counted`, with `modelLabel` where there
    are several models, and not `scaling.overCapacity: refuse`.
    """
    queue = c.scaling.queue
    reasons = (
        (c.topology == "standalone", "a server that stands alone is what would tell of callers"),
        (not queue.counted, "scaling.queue.counted is false, and nothing else tells of callers"),
        (
            len(c.models) > 1 and queue.model_label is None,
            "scaling.queue.modelLabel is unset, and nothing tells whom callers wait for",
        ),
        (c.scaling.over_capacity == "refuse", "what scaling.overCapacity refuses does not wait"),
    )
    for index, model in enumerate(c.models):
        for holds, reason in reasons:
            if model.min_replicas == 0 and holds:
                raise Refusal(
                    0, f"2 or more: {reason}", nearest="2", field=f"models.{index}.minReplicas"
                )


def a_slope_is_no_chance(c: Configuration) -> None:
    """`scaling.lookAheadWindowSeconds` is at least a quarter of what it looks ahead.

    Chance in a line is multiplied by the seconds ahead over those that it rests on.
    """
    scaling = c.scaling
    window, ahead = scaling.look_ahead_window_seconds, scaling.look_ahead_seconds
    if ahead is None:
        ahead = scaling.cold_start_seconds + REACTION_SECONDS
    least = math.ceil(ahead / _MOST_TIMES_AHEAD)
    if window is not None and window < least:
        raise Refusal(
            window,
            f"{least} or more, a quarter of the {ahead} s that scaling looks ahead",
            nearest=str(least),
            field="scaling.lookAheadWindowSeconds",
        )


SCALING_RULES = (
    a_slope_is_no_chance,
    the_queue_has_a_meaning,
    schedules_can_be_kept,
    a_first_caller_can_be_seen,
)
