"""What follows from an objective, a profile and a traffic shape, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sonic_eks.capacity import risks
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.config.sizes import LEAST_WORKERS, Sizes
from sonic_eks.sizing.demand import (
    Demand,
    seconds_to_a_new_node,
    seconds_to_a_spare_gpu,
    waiting_share,
)

Mark = Literal["measured", "assumed", "pinned", "derived", "default"]


@dataclass(frozen=True, kw_only=True)
class Derived:
    """One value that follows.

    Attributes
    ----------
    name : str
        The configuration field that would pin it, as a dotted camelCase path, or what it is called
        where none does.
    value : int, float or str
        The value.
    unit : str
        Its unit; empty where it has none.
    mark : str
        `measured`, `assumed` (from another GPU), `pinned` by the configuration, `derived` from the
        traffic and other values, or the `default`.
    reason : str
        Why, in one line.
    risk : str
        What the value costs or risks; empty for nothing to know.
    """

    name: str
    value: int | float | str
    unit: str
    mark: Mark
    reason: str
    risk: str = ""


def derive(config: Configuration) -> list[Derived]:
    """Return the derivation from the objective to the nodes, in the order of its steps."""
    sizes = Sizes(config)
    return [
        *_policy(config),
        *(one for index, model in enumerate(config.models) for one in _model(sizes, index, model)),
        *_gpus(sizes),
        *_api(sizes),
    ]


def _policy(config: Configuration) -> Iterator[Derived]:
    capacity, scaling = config.gpu_capacity, config.scaling
    given = scaling.model_fields_set
    yield Derived(
        name="scaling.generationsPerGpu",
        value=capacity.generations,
        unit="generations",
        mark=capacity.basis,
        reason=capacity.reason,
        risk=risks.of_generations(config),
    )
    each = config.generations_per_gpu * scaling.target_utilization
    yield Derived(
        name="scaling.targetUtilization",
        value=scaling.target_utilization,
        unit="",
        mark="pinned" if "target_utilization" in given else "default",
        reason=f"{each:g} generations a worker, margins included",
        risk=risks.of_utilization(config),
    )
    if scaling.margin_sigmas:
        yield Derived(
            name="scaling.marginSigmas",
            value=scaling.margin_sigmas,
            unit="",
            mark="pinned" if "margin_sigmas" in given else "default",
            reason="so many square roots of the generations in progress are free for chance",
        )


def _model(sizes: Sizes, index: int, model: Model) -> Iterator[Derived]:
    demand, place = sizes.demand_of(model), f"models.{index}"
    slots, low, high = sizes.slots, sizes.min_replicas(model), sizes.max_replicas(model)
    if demand is not None and model.traffic is not None and model.traffic.peak_conversations:
        each = sizes.generations_per_conversation(model.traffic)
        yield Derived(
            name=f"{model.name}: generations at the peak",
            value=round(demand.peak, 1),
            unit="generations",
            mark="derived",
            reason=f"{model.traffic.peak} conversations, {each:.3g} generations each in the mean:"
            " share of speaking times real-time factor",
        )
    yield Derived(
        name=f"{place}.minReplicas",
        value=low,
        unit="workers",
        mark=_mark(model.min_replicas is not None, demand),
        reason=_why_low(sizes, model, demand) or f"{low * slots} generations at once",
        risk=risks.of_min_replicas(sizes, model, demand),
    )
    yield Derived(
        name=f"{place}.maxReplicas",
        value=high,
        unit="workers",
        mark=_mark(model.max_replicas is not None, demand),
        reason=_why_high(sizes, model, demand) or f"{high * slots} generations at once",
        risk=risks.of_max_replicas(sizes, model, demand),
    )
    yield from _limits(sizes, index, model)
    if demand is not None:
        yield from _at_the_peak(sizes, model, demand)


def _limits(sizes: Sizes, index: int, model: Model) -> Iterator[Derived]:
    """Give what a worker is told to take at once, and to batch."""
    for name, pinned, variable, key in (
        (
            "maxConcurrentStreams",
            model.max_concurrent_streams,
            model.concurrency_env,
            "concurrency",
        ),
        ("maxBatchSize", model.max_batch_size, model.batch_size_env, "batchSize"),
    ):
        yield Derived(
            name=f"models.{index}.{name}",
            value=pinned or sizes.slots,
            unit="generations",
            mark="derived" if pinned is None else "pinned",
            reason=f"given to the worker as {variable}"
            if variable
            else f"not given to the worker: models.{index}.{key}Env is unset",
            risk=risks.of_limit(sizes, pinned),
        )


def _mark(pinned: bool, demand: Demand | None) -> Mark:
    if pinned:
        return "pinned"
    return "default" if demand is None else "derived"


def _why_low(sizes: Sizes, model: Model, demand: Demand | None) -> str:
    if demand is None or model.min_replicas is not None:
        return ""
    wanted = sizes.workers(demand.trough, sizes.reserve_generations)
    text = f"trough of {_held(sizes, demand.trough)}"
    if sizes.min_replicas(model) < wanted:
        return f"{text} needs {wanted}; no more than maxReplicas"
    return f"{text}, {_each(sizes)} a worker; {LEAST_WORKERS} or more"


def _why_high(sizes: Sizes, model: Model, demand: Demand | None) -> str:
    if demand is None or model.max_replicas is not None:
        return ""
    wanted, most = sizes.workers(demand.peak, sizes.reserve_generations), sizes.max_replicas(model)
    text = f"peak of {_held(sizes, demand.peak)}"
    if most < wanted:
        return f"{text} needs {wanted}; nodes.gpu.maxNodes ({sizes.gpu_max_nodes}) hold no more"
    if most > wanted:
        return f"{text} needs {wanted}; no fewer than minReplicas"
    return f"{text}, {_each(sizes)} a worker"


def _each(sizes: Sizes) -> str:
    return f"{sizes.slots * sizes.config.scaling.target_utilization:g}"


def _held(sizes: Sizes, demand: float) -> str:
    """Say what the policy counts: demand, margin and reserve."""
    margin = sizes.config.scaling.margin_sigmas * math.sqrt(demand)
    reserve = sizes.reserve_generations
    parts = [
        f"{demand:g} generation{'' if demand == 1 else 's'}",
        *([f"{margin:.1f} for chance"] if margin else []),
        *([f"{reserve:,} in reserve"] if reserve else []),
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _at_the_peak(sizes: Sizes, model: Model, demand: Demand) -> Iterator[Derived]:
    """Give what the policy comes to at the peak, within `maxReplicas`."""
    wanted = sizes.workers(demand.peak, sizes.reserve_generations)
    running = max(min(wanted, sizes.max_replicas(model)), sizes.min_replicas(model))
    slots = running * sizes.slots
    waiting = waiting_share(demand.peak, slots)
    yield Derived(
        name=f"{model.name}: utilization at the peak",
        value=round(demand.peak / slots, 3),
        unit="",
        mark="derived",
        reason=f"{demand.peak:g} generations on {slots} slots of {running} workers",
    )
    yield Derived(
        name=f"{model.name}: generations that wait at the peak",
        value=round(waiting, 4),
        unit="",
        mark="derived",
        reason="share that finds no free slot; arrivals know nothing of each other (Erlang C)",
        risk=risks.of_waiting(sizes.config, waiting),
    )


def _gpus(sizes: Sizes) -> Iterator[Derived]:
    config = sizes.config
    scaling, gpu = config.scaling, config.nodes.gpu
    demands, cold = sizes.demands, scaling.cold_start_seconds
    mark: Mark = "derived" if demands else "default"
    ramp = sum(demand.ramp_per_minute for _, demand in demands)
    rising = f"for a ramp of {ramp:g} generations a minute, " if ramp else ""
    yield Derived(
        name="scaling.reserveGenerations",
        value=sizes.reserve_generations,
        unit="generations",
        mark=mark if scaling.reserve_generations is None else "pinned",
        reason=f"{rising}free for the {seconds_to_a_spare_gpu(cold):.0f} s until a worker on a"
        " spare GPU is ready",
        risk=risks.of_reserve(sizes),
    )
    yield Derived(
        name="scaling.headroomGpus",
        value=sizes.headroom_gpus,
        unit="GPUs",
        mark=mark if scaling.headroom_gpus is None else "pinned",
        reason=f"{rising}there for the {seconds_to_a_new_node(cold):.0f} s until a worker on a new"
        " node is ready",
        risk=risks.of_headroom(sizes),
    )
    workers = sum(sizes.max_replicas(model) for model in config.models)
    yield Derived(
        name="nodes.gpu.maxNodes",
        value=sizes.gpu_max_nodes,
        unit="nodes",
        mark="derived" if gpu.max_nodes is None else "pinned",
        reason=f"{workers} workers at most and {sizes.spare_gpus} spare, for headroom or an"
        f" update's surge, {gpu.workers_per_node} to a {gpu.instance_type};"
        f" the base of {gpu.base_size} at least",
        risk=risks.of_nodes(sizes),
    )
    yield Derived(
        name="nodes.gpu.overflow.maxNodes",
        value=config.gpu_overflow_nodes,
        unit="nodes",
        mark="default" if gpu.overflow.max_nodes is None else "pinned",
        reason=f"outside the placement group, of {sizes.gpu_max_nodes - gpu.base_size} nodes"
        f" beyond the base of {gpu.base_size}",
    )


def _api(sizes: Sizes) -> Iterator[Derived]:
    config = sizes.config
    if config.topology == "standalone":
        return
    demands = sizes.demands
    mark: Mark = "derived" if demands else "default"
    for name, busiest, pinned, value in (
        ("minReplicas", False, config.api.min_replicas, sizes.api_min_replicas),
        ("maxReplicas", True, config.api.max_replicas, sizes.api_max_replicas),
    ):
        streams = sizes.api_streams(busiest=busiest)
        yield Derived(
            name=f"api.{name}",
            value=value,
            unit="API pods",
            mark=mark if pinned is None else "pinned",
            reason=f"{streams:.0f} active streams at the {'peak' if busiest else 'trough'},"
            f" {config.scaling.generations_per_api_pod} a pod (assumed)",
            risk=risks.of_api(sizes, streams, value) if busiest else "",
        )
    yield Derived(
        name="nodes.serving.maxNodes",
        value=config.serving_max_nodes,
        unit="nodes",
        mark=mark if config.nodes.serving.max_nodes is None else "pinned",
        reason=f"{sizes.api_max_replicas} API pods on {config.nodes.serving.instance_type}",
    )
