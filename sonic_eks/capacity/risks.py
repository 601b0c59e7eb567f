"""What a value that the configuration pins costs, or risks, beside what would follow."""

from __future__ import annotations

from sonic_eks.capacity.curve import chosen
from sonic_eks.config import Configuration
from sonic_eks.config.gpu_profile import measured_release
from sonic_eks.config.service import Model
from sonic_eks.config.sizes import LEAST_WORKERS, Sizes
from sonic_eks.sizing.demand import Demand, seconds_to_a_new_node, seconds_to_a_spare_gpu


def of_generations(config: Configuration) -> str:
    """Say what the generations per GPU risk: the objective, or GPUs that do little."""
    capacity = config.gpu_capacity
    gpu = config.gpu_type.gpu or config.gpu_type.name
    if config.standalone.stand_in:
        return "a stand-in serves tones: there is no GPU to measure"
    if capacity.basis == "assumed":
        if capacity.below_floor:
            return f"nothing says that the {gpu} can keep the objective at all: measure it first"
        return f"nobody measured the {gpu}: measure it before callers rely on it"
    point = chosen(config)
    if capacity.basis == "measured":
        release = measured_release(config)
        return f"measured with {release}, another release than runs" if release else ""
    if point is None:
        return f"no profile of the {gpu} backs it"
    if not point.kept:
        floor = f"{point.curve.first[1]:g} ms at {point.curve.first[0]:g}"
        return f"the profile says that the objective cannot be kept: {floor}"
    if capacity.generations > point.kept:
        there = point.first_audio_ms
        seen = "what was never measured" if there is None else f"{there:.0f} ms"
        return (
            f"more than the {point.kept} that keep {point.budget_ms} ms: p{point.percentile} is"
            f" {seen} at {capacity.generations}"
        )
    if capacity.generations < point.kept:
        times = point.kept / capacity.generations
        return f"{point.kept} would keep the objective: costs {times:.1f} times the GPUs"
    return ""


def of_utilization(config: Configuration) -> str:
    """Say where neither the target nor a margin leaves a slot free."""
    scaling = config.scaling
    if scaling.target_utilization == 1 and not (
        scaling.margin_sigmas or config.reserve_generations
    ):
        return "no slot is free in the mean: half of the time, demand is above it"
    return ""


def of_min_replicas(sizes: Sizes, model: Model, demand: Demand | None) -> str:
    """Say what a pinned minimum costs around the clock, or whom it lets wait."""
    if model.min_replicas == 0:
        return f"a first caller waits for a cold start, {sizes.config.scaling.cold_start_seconds} s"
    if demand is None or model.min_replicas is None:
        return ""
    wanted = max(LEAST_WORKERS, sizes.workers(demand.trough, sizes.reserve_generations))
    if model.min_replicas > wanted:
        more = _gpus(sizes.config, model.min_replicas - wanted)
        return f"costs {more} around the clock: the trough needs {wanted}"
    if model.min_replicas < wanted:
        return f"the trough needs {wanted}: only the scaler keeps them, no lower bound"
    return ""


def of_max_replicas(sizes: Sizes, model: Model, demand: Demand | None) -> str:
    """Say what a maximum refuses at the peak, whether it is pinned or follows pinned nodes."""
    if demand is None:
        return ""
    most = sizes.max_replicas(model)
    wanted = max(LEAST_WORKERS, sizes.workers(demand.peak, sizes.reserve_generations))
    slots = most * sizes.slots
    if demand.peak > slots:
        over = demand.peak - slots
        return (
            f"the peak needs {wanted}: {over:g} of {demand.peak:g} generations find no slot, and"
            " wait or are refused"
        )
    if most < wanted:
        return f"the peak needs {wanted}: workers are {demand.peak / slots * 100:.0f} % full there"
    if model.max_replicas is not None and most > wanted:
        more = _gpus(sizes.config, most - wanted)
        return f"the peak needs {wanted}: a fault or an attack may start {more} more"
    return ""


def of_waiting(config: Configuration, share: float) -> str:
    """Say where more generations wait than the objective lets miss it."""
    may_miss = 100 - config.slo.percentile
    if share * 100 <= may_miss:
        return ""
    return (
        f"{share * 100:.1f} % wait, and p{config.slo.percentile} lets {may_miss} % miss the"
        " objective: it is not kept at the peak"
    )


def of_limit(sizes: Sizes, pinned: int | None) -> str:
    """Say what a pinned limit of a worker does to the objective."""
    kept = sizes.slots
    if pinned is not None and pinned > kept:
        return f"a busy worker takes {pinned}, and the objective is counted on at {kept}"
    if pinned is not None and pinned < kept:
        return f"below the {kept} that scaling counts on"
    return ""


def of_reserve(sizes: Sizes) -> str:
    """Say what a reserve costs, or what a ramp outruns without it."""
    short = _outrun(sizes, seconds_to_a_spare_gpu(sizes.config.scaling.cold_start_seconds))
    if short > 0 and sizes.config.scaling.reserve_generations is not None:
        return f"the ramp outruns it: {short:.0f} generations wait for a worker on a spare GPU"
    if sizes.reserve_generations:
        each = sizes.slots * sizes.config.scaling.target_utilization
        gpus = round(sizes.reserve_generations / each * len(sizes.config.models))
        return f"costs about {_gpus(sizes.config, max(gpus, 1))} around the clock"
    return ""


def _outrun(sizes: Sizes, seconds: float) -> float:
    """Return the generations for which the slots that are free do not last so long."""
    reserve = sizes.reserve_generations
    short = [
        demand.risen(seconds) - sizes.free_in_trough(model, demand, reserve)
        for model, demand in sizes.demands
    ]
    return sum(max(0.0, one) for one in short)


def of_headroom(sizes: Sizes) -> str:
    """Say what spare GPUs cost, or what a ramp outruns without them."""
    seconds = seconds_to_a_new_node(sizes.config.scaling.cold_start_seconds)
    short = _outrun(sizes, seconds) - sizes.headroom_gpus * sizes.slots
    if short > 0:
        return f"the ramp outruns them: {short:.0f} generations wait for a worker on a new node"
    if not sizes.headroom_gpus:
        return "each new worker waits for a node"
    return f"costs {_gpus(sizes.config, sizes.headroom_gpus)} around the clock"


def _gpus(config: Configuration, count: int) -> str:
    """Return a number of GPUs in words; a stand-in has nodes without any."""
    what = "GPU" if config.gpu_type.gpus else "node"
    return f"{count} {what}{'' if count == 1 else 's'}"


def of_nodes(sizes: Sizes) -> str:
    """Say what a pinned number of GPU nodes leaves no room for."""
    pool = sizes.config.nodes.gpu
    spare = sizes.gpu_max_nodes * pool.workers_per_node - sum(
        sizes.max_replicas(model) for model in sizes.config.models
    )
    if spare < 1 and sizes.config.scaling.rollout == "surge":
        return "no GPU is left for an update's surge while all workers run"
    if spare < sizes.headroom_gpus:
        spared = _gpus(sizes.config, sizes.headroom_gpus)
        return f"all workers together leave {spare} of the {spared} to spare"
    return ""


def of_api(sizes: Sizes, streams: float, most: int) -> str:
    """Say where API pods at most hold more streams than they were sized for."""
    each = sizes.config.scaling.generations_per_api_pod
    if sizes.demands and streams > most * each:
        return f"{streams / most:.0f} streams a pod at the peak, {each} were counted on"
    return ""
