"""Replicas, spare GPUs and nodes: as pinned, else from the models' traffic, else the default."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.gpu_profile import profile_of
from sonic_eks.sizing.demand import (
    Demand,
    headroom_for,
    reserve_for,
    streams_of,
    workers_for,
)

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration
    from sonic_eks.config.service import Model
    from sonic_eks.config.traffic import Traffic

LEAST_WORKERS = 2  # on different nodes, so that one may be lost
DEFAULT_MAX_WORKERS = 8
LEAST_API_PODS = 3
DEFAULT_MAX_API_PODS = 6
DEFAULT_HEADROOM_GPUS = 1
DEFAULT_RESERVE = 0
DEFAULT_MAX_GPU_NODES = 9

# The bounds of the fields that would pin them.
MOST_WORKERS = 500
MOST_GPU_NODES = 500
MOST_HEADROOM_GPUS = 50
MOST_API_PODS = 200

ASSUMED_SPEAKING_SHARE = 0.4
"""As in `sonic-eks bench`: two parties, of whom one listens, and pauses."""


def demand_of(c: Configuration, model: Model) -> Demand | None:
    """Return the demand of a model in generations; None where its traffic is not given.

    Raises
    ------
    Refusal
        When conversations cannot be counted in generations.
    """
    traffic = model.traffic
    if traffic is None:
        return None
    share = generations_per_conversation(c, traffic)
    return Demand(traffic.peak * share, traffic.trough * share, traffic.ramp_per_minute * share)


def generations_per_conversation(c: Configuration, traffic: Traffic) -> float:
    """Return the generations in progress of one conversation in the mean; 1 for generations.

    Raises
    ------
    Refusal
        When neither the traffic nor a profile of the GPU says how long a generation takes.
    """
    if traffic.peak_conversations is None:
        return 1.0
    factor = traffic.real_time_factor or _measured_factor(c)
    if factor is None:
        raise Refusal(
            None,
            "seconds of work for a second of audio, which no profile says of the"
            f" {c.gpu_type.gpu or c.gpu_type.name}; or peakGenerations",
            field="realTimeFactor",
        )
    return factor * (traffic.speaking_share or ASSUMED_SPEAKING_SHARE)


def _measured_factor(c: Configuration) -> float | None:
    """Return the p95, else a lower one, at the first point with a GPU's generations or more.

    The mean is not published; p95 is on the safe side of it.
    """
    profile = profile_of(c)
    if profile is None:
        return None
    for point in profile.points:
        if point.concurrency / profile.gpus >= c.generations_per_gpu and point.rtf is not None:
            return point.rtf.p95 or point.rtf.p90 or point.rtf.p50
    return None


def workers(c: Configuration, demand: float, reserve: float) -> int:
    """Return the workers that the deployment's policy wants for a demand that stands still."""
    return workers_for(
        demand,
        threshold=c.generations_per_gpu * c.scaling.target_utilization,
        sigmas=c.scaling.margin_sigmas,
        reserve=reserve,
    )


def min_replicas(c: Configuration, model: Model) -> int:
    """Return the workers of a model at least."""
    if model.min_replicas is not None:
        return model.min_replicas
    demand = demand_of(c, model)
    if demand is None:
        return LEAST_WORKERS
    wanted = max(LEAST_WORKERS, workers(c, demand.trough, reserve_generations(c)))
    return int(min(wanted, model.max_replicas or wanted, _room(c)))


def max_replicas(c: Configuration, model: Model) -> int:
    """Return the workers of a model at most."""
    if model.max_replicas is not None:
        return model.max_replicas
    demand = demand_of(c, model)
    if demand is None:
        return DEFAULT_MAX_WORKERS
    wanted = workers(c, demand.peak, reserve_generations(c))
    return max(min_replicas(c, model), int(min(wanted, _room(c))))


def _room(c: Configuration) -> float:
    """Return the workers that pinned GPU nodes hold beside a surge, where one model has them all.

    Several models would have to share them in a way that only the operator can say.
    """
    pool = c.nodes.gpu
    if pool.max_nodes is None or len(c.models) > 1:
        return math.inf
    surge = 1 if c.scaling.rollout == "surge" else 0
    return max(LEAST_WORKERS, pool.max_nodes * pool.workers_per_node - surge)


def free_in_trough(c: Configuration, model: Model, demand: Demand, reserve: float) -> float:
    """Return the slots that are free on a model's workers in the quietest hours."""
    least = LEAST_WORKERS if model.min_replicas is None else model.min_replicas
    running = max(least, workers(c, demand.trough, reserve))
    return running * c.generations_per_gpu - demand.trough


def reserve_generations(c: Configuration) -> int:
    """Return the generations that every model's policy holds free: the most that one needs."""
    if c.scaling.reserve_generations is not None:
        return c.scaling.reserve_generations
    needed = [
        reserve_for(
            demand.ramp_per_minute,
            cold_start_seconds=c.scaling.cold_start_seconds,
            free=free_in_trough(c, model, demand, 0),
        )
        for model, demand in demands(c)
    ]
    return max(needed, default=DEFAULT_RESERVE)


def headroom_gpus(c: Configuration) -> int:
    """Return the GPUs that placeholders hold: what the models' ramps need together."""
    if c.scaling.headroom_gpus is not None:
        return c.scaling.headroom_gpus
    reserve = reserve_generations(c)
    needed = [
        headroom_for(
            demand.ramp_per_minute,
            cold_start_seconds=c.scaling.cold_start_seconds,
            free=free_in_trough(c, model, demand, reserve),
            slots=c.generations_per_gpu,
        )
        for model, demand in demands(c)
    ]
    wanted = min(max(DEFAULT_HEADROOM_GPUS, sum(needed)), MOST_HEADROOM_GPUS)
    if c.nodes.gpu.max_nodes is None or not needed:
        return wanted
    least = sum(min_replicas(c, model) for model in c.models)
    return max(0, min(wanted, c.nodes.gpu.max_nodes * c.nodes.gpu.workers_per_node - least))


def demands(c: Configuration) -> list[tuple[Model, Demand]]:
    """Return each model whose traffic is given, with its demand."""
    found = [(model, demand_of(c, model)) for model in c.models]
    return [(model, demand) for model, demand in found if demand is not None]


def gpu_max_nodes(c: Configuration) -> int:
    """Return the GPU nodes at most: for every worker, and for headroom or the surge of an update.

    They share the spare GPUs: a placeholder gives way to a surge.
    """
    pool = c.nodes.gpu
    if pool.max_nodes is not None:
        return pool.max_nodes
    if not demands(c):
        return DEFAULT_MAX_GPU_NODES
    spare = max(headroom_gpus(c), 1 if c.scaling.rollout == "surge" else 0)
    gpus = sum(max_replicas(c, model) for model in c.models) + spare
    return max(pool.base_size, -(-gpus // pool.workers_per_node))


def api_min_replicas(c: Configuration) -> int:
    """Return the API pods at least."""
    if c.api.min_replicas is not None:
        return c.api.min_replicas
    wanted = max(LEAST_API_PODS, _api_pods(c, busiest=False))
    return min(wanted, c.api.max_replicas or wanted) if demands(c) else LEAST_API_PODS


def api_max_replicas(c: Configuration) -> int:
    """Return the API pods at most; one more than carry the peak, so that one may be lost."""
    if c.api.max_replicas is not None:
        return c.api.max_replicas
    if not demands(c):
        return DEFAULT_MAX_API_PODS
    wanted = _api_pods(c, busiest=True) + 1
    return max(DEFAULT_MAX_API_PODS, api_min_replicas(c), wanted)


def _api_pods(c: Configuration, *, busiest: bool) -> int:
    return math.ceil(api_streams(c, busiest=busiest) / c.scaling.generations_per_api_pod)


def api_streams(c: Configuration, *, busiest: bool) -> float:
    """Return the active streams of all models; of one without traffic, what its workers hold."""
    total = 0.0
    for model in c.models:
        demand = demand_of(c, model)
        if demand is None:
            bound = max_replicas(c, model) if busiest else min_replicas(c, model)
            total += bound * c.generations_per_gpu
        else:
            total += demand.peak if busiest else demand.trough
    return streams_of(total, idle_seconds=c.drain.idle_seconds)
