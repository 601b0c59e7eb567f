"""Every PromQL expression, in one place."""

from __future__ import annotations

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


def active_generations(model: str | None = None) -> str:
    """Return the query for the generations in progress on the workers.

    Each pod counts with its last value. A pod that is gone is no longer a target and drops out
    with the window; a pod that cannot be scraped keeps its last value, so that a partial view is
    never taken for less load. Where no worker has a value the result is empty, not zero: a
    silent metric must not scale in.

    The API's queue is left out: the labels of `api_queue_size` are not public, so it cannot be
    given to a model, and one queue counted by every API pod would be added up. Saturated workers
    are above their target already, which adds workers until the queue is gone.

    Parameters
    ----------
    model : str or None
        One model's workers; None for all.
    """
    selector = f'namespace="{SONIC_NAMESPACE}",component="worker"'
    if model is not None:
        selector += f',model="{model}"'
    load = f"{WORKER_LOAD}{{{selector}}}"
    return (
        f"sum(last_over_time({load}[{WINDOW_SECONDS}s])"
        f" or last_over_time({load}[{HOLD_SECONDS}s])"
        f" and on (namespace, pod) (up{{{selector}}} == 0))"
    )
