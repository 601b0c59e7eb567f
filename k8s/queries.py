"""Every PromQL expression, in one place."""

from __future__ import annotations

from collections.abc import Mapping

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

_CANNOT_LOOK = 'sonic_gate_source{%s,watch="sockets",source="none"} == 1'
"""Gates that answer, and leave the value out since they cannot read the pod's sockets."""


def active_generations(model: str | None = None) -> str:
    """Return the query for the generations in progress on the workers.

    The API's queue is left out: the labels of `api_queue_size` are not public, so it cannot be
    given to a model, and one queue counted by every API pod would be added up. Saturated workers
    are above their target already, which adds workers until the queue is gone.

    Parameters
    ----------
    model : str or None
        One model's workers; None for all.
    """
    where = {"component": "worker"} | ({"model": model} if model is not None else {})
    return _held_sum(WORKER_LOAD, where)


def active_streams() -> str:
    """Return the query for the active streams of the API pods, draining ones included."""
    return _held_sum(ACTIVE_STREAMS, {"component": "api"})


def standalone_generations(load_metric: str | None, per_stream: float) -> str:
    """Return the query for the generations in progress on servers that stand alone.

    Parameters
    ----------
    load_metric : str or None
        The server's own count; None for what the active streams stand for.
    per_stream : float
        Generations of an active stream.
    """
    where = {"component": "standalone"}
    if load_metric is not None:
        return _held_sum(load_metric, where)
    streams = _held_sum(ACTIVE_STREAMS, where)
    return streams if per_stream == 1 else f"{per_stream:g} * {streams}"


def _held_sum(metric: str, where: Mapping[str, str]) -> str:
    """Return a sum over pods in which each counts with its last value.

    A pod that is gone is no longer a target and drops out with the window; a target that cannot
    be scraped, and a gate that cannot look, keep their last value, so that a partial view is never
    taken for less load. Where no pod has a value the result is empty, not zero: a silent metric
    must not scale in.
    """
    labels = {"namespace": SONIC_NAMESPACE, **where}
    selector = ",".join(f'{name}="{value}"' for name, value in labels.items())
    series = f"{metric}{{{selector}}}"
    unknown = f"up{{{selector}}} == 0"
    if metric == ACTIVE_STREAMS:
        unknown += f" or {_CANNOT_LOOK % selector}"
    return (
        f"sum(last_over_time({series}[{WINDOW_SECONDS}s])"
        f" or last_over_time({series}[{HOLD_SECONDS}s])"
        # A pod has several targets: the one that the value comes from counts.
        f" and on (namespace, pod, instance) ({unknown}))"
    )
