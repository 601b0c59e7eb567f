"""Every PromQL expression, in one place.

What the scalers read is a *demand*: a sum over pods of what is in progress, in which a partial
view is never taken for less. `worker_query` looks ahead of it, as `ScalingPolicy` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sonic_eks.capacity.policy import ScalingPolicy
from sonic_eks.config.scaling import Queue
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE

SCRAPE_SECONDS = 5
"""Seconds between two scrapes (Cartesia, "Metrics": every 5 s)."""

WINDOW_SECONDS = 6 * SCRAPE_SECONDS
"""How old a pod's last value may be: a few lost scrapes do not look like lost load.

Prometheus 3 leaves the start of a range out, so that a window holds one sample less than before;
no window is shorter than four scrapes.
"""

HOLD_SECONDS = 600
"""How long the last value of a pod counts that is still there but answers no scrape."""

WORKER_LOAD = "inferno_worker_load"
"""Generations that a worker is processing (Cartesia, "Metrics")."""

ACTIVE_STREAMS = "sonic_active_streams"
"""Connections of a pod with payload in the last `drain.idleSeconds` (the stream gate)."""

DRAINING = "sonic_draining"
"""1 from a pod's removal until it is idle (the stream gate)."""

# Share of a slope's points that must be there: a line through a few would lead anywhere.
_ENOUGH = 0.75

# Gates that answer, and leave the value out since they cannot read the pod's sockets.
_CANNOT_LOOK = 'sonic_gate_source{%s,watch="sockets",source="none"} == 1'

_BY_TARGET = "on (namespace, pod, instance)"
_BY_POD = "on (namespace, pod)"


def worker_query(
    policy: ScalingPolicy, model: str, *, queue: str | None = None, ends_at_once: bool = True
) -> str:
    """Return the signal that a model's workers are scaled on, in generations.

    It reads ``inferno_worker_load``, ``up`` and ``sonic_draining``, all with the labels
    ``namespace="sonic"``, ``component="worker"``, ``model``, ``pod`` and ``instance``: the load and
    an ``up`` from the server's target of a pod, ``sonic_draining`` and another ``up`` from its
    gate's. Without any load the result is empty.

    Parameters
    ----------
    policy : ScalingPolicy
        Look-ahead and margins; the formula is in its module.
    model : str
        Name of the model.
    queue : str, optional
        Query for the generations that wait for a worker.
    ends_at_once : bool
        Whether a worker that is removed takes nothing new. What it still has is not counted then:
        the next generations of the same callers are counted elsewhere already.

    Returns
    -------
    str
        A query with one element without labels, or none.

    Notes
    -----
    Where there may be no workers at all (`min_replicas` is 0), the queue alone is the demand as
    long as Prometheus knows of no worker; without a queue the result is empty then, too.
    """
    where = {"component": "worker", "model": model}
    targets = f"up{{{_selector(where)}}}"
    loads = _values(WORKER_LOAD, where, without_draining=ends_at_once)
    demand = f"sum({loads})"
    if queue is not None:
        # Of pods, each of which may say several values.
        most = f"{policy.slots} * scalar(count(count by (pod) ({loads})))"
        demand = f"{demand} + clamp_max({queue} or vector(0), {most})"
        if policy.min_replicas == 0:
            demand = f"({demand} or {queue} unless on () {targets})"
    return _signal(demand, targets, policy)


def standalone_query(
    policy: ScalingPolicy, load_metric: str | None, generations_per_stream: float
) -> str:
    """Return the signal that servers which stand alone are scaled on, in generations.

    A server that is removed keeps its callers until they renew their connections, and they come
    back to the others: what it has counts.

    Parameters
    ----------
    policy : ScalingPolicy
        Look-ahead and margins.
    load_metric : str or None
        The server's own count; None for what the active streams stand for.
    generations_per_stream : float
        Generations of an active stream.
    """
    where = {"component": "standalone"}
    demand = _held(load_metric or ACTIVE_STREAMS, where)
    if load_metric is None and generations_per_stream != 1:
        demand = f"{_number(generations_per_stream)} * {demand}"
    return _signal(demand, f"up{{{_selector(where)}}}", policy)


def queue_query(queue: Queue, label_value: str | None = None) -> str:
    """Return the query for the generations that wait in the API for a worker.

    Parameters
    ----------
    queue : Queue
        What the API tells of them.
    label_value : str, optional
        What the model is called in `queue.model_label`; None for all models.
    """
    of = {} if label_value is None else {str(queue.model_label): label_value}
    values = _values(queue.metric, {"component": "api"}, of)
    # Where all pods tell of one queue, the highest counts.
    return f"max(sum by (pod) ({values}))" if queue.aggregate == "max" else f"sum({values})"


def active_streams() -> str:
    """Return the query for the active streams of the API pods, draining ones included."""
    return _held(ACTIVE_STREAMS, {"component": "api"})


def _signal(demand: str, targets: str, policy: ScalingPolicy) -> str:
    """Return what `policy` makes of a demand; empty where that is."""
    ahead = demand
    if policy.look_ahead_seconds:
        window = f"{policy.look_ahead_window_seconds}s:{policy.step_seconds}s"
        points = math.ceil(_ENOUGH * policy.points)
        # Targets are known as long as Prometheus runs: too few points are those after a start.
        ahead = (
            f"{demand}"
            f" + (clamp_min({policy.look_ahead_seconds} * deriv(({demand})[{window}]), 0)"
            f" and count_over_time(count({targets})[{window}]) >= {points}"
            " or vector(0))"
        )
    if policy.margin_sigmas:
        # x + m sqrt(x) = (sqrt(x) + m/2)^2 - m^2/4: the long term is there once.
        half = policy.margin_sigmas / 2
        ahead = f"(sqrt({ahead}) + {_number(half)}) ^ 2 - {_number(half * half)}"
    if policy.reserve_generations:
        ahead = f"{ahead} + {_number(policy.reserve_generations)}"
    return ahead


def _held(metric: str, where: Mapping[str, str]) -> str:
    """Return the sum of `_values`: empty, not zero, where no pod has a value.

    A silent metric must not scale in.
    """
    return f"sum({_values(metric, where)})"


def _values(
    metric: str,
    where: Mapping[str, str],
    of: Mapping[str, str] | None = None,
    *,
    without_draining: bool = False,
) -> str:
    """Return the value of each pod, or its last one.

    A pod that is gone is no longer a target and drops out with the window. A target that cannot
    be scraped keeps its last value, and so does a gate that cannot look, and every target while
    Prometheus itself is away (a target's `up` is known for five minutes more, its look-back).

    Parameters
    ----------
    metric : str
        Name of the gauge.
    where, of : mapping
        Labels of the targets, and further ones of the gauge.
    without_draining : bool
        Whether pods that drain are left out.
    """
    targets = _selector(where)
    series = f"{metric}{{{_selector(where, of or {})}}}"
    up = f"up{{{targets}}}"
    unknown = f"{up} == 0 or timestamp({up}) <= time() - {WINDOW_SECONDS}"
    if metric == ACTIVE_STREAMS:
        unknown += f" or {_CANNOT_LOOK % targets}"
    # A pod has several targets: the one that the value comes from counts.
    values = (
        f"{_last(series, WINDOW_SECONDS)}"
        f" or {_last(series, HOLD_SECONDS)} and {_BY_TARGET} ({unknown})"
    )
    if not without_draining:
        return values
    gates = f"last_over_time({DRAINING}{{{targets}}}[{WINDOW_SECONDS}s]) == 1"
    return f"({values}) unless {_BY_POD} ({gates})"


def _last(series: str, seconds: int) -> str:
    """Return each series' last value of a time; where that is no number, the highest one."""
    window = f"{series}[{seconds}s]"
    return f"(last_over_time({window}) >= 0 or max_over_time({window}) >= 0)"


def _selector(*where: Mapping[str, str]) -> str:
    labels = [("namespace", SONIC_NAMESPACE), *(pair for part in where for pair in part.items())]
    return ",".join(f'{name}="{value}"' for name, value in labels)


def _number(value: float) -> str:
    """Return a number without float noise."""
    return f"{value:.12g}"
