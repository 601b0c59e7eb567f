"""Beyond the peak: what becomes of demand that the most replicas cannot carry."""

from __future__ import annotations

from sonic_eks.capacity.over_capacity import over_capacity_text
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.config.sizes import Sizes
from sonic_eks.plan.sections import Context, Section, section


@section("beyond", place=20)
def beyond(context: Context) -> Section:
    """Say how much is carried, and what happens to more."""
    config = context.config
    sizes = Sizes(config)
    each = sizes.slots
    rows = []
    data = []
    problems = []
    for index, model in enumerate(config.models):
        most = sizes.max_replicas(model)
        carried = most * each
        rows.append(
            (
                model.name,
                f"{carried:,} generations",
                f"{most} replicas with {each} each; {_more(config, index, model)}",
            )
        )
        data.append({"model": model.name, "generations": carried})
        demand = sizes.demand_of(model)
        if demand is not None and demand.peak > carried:
            problems.append(
                f"models.{index}.traffic: a peak of {demand.peak:,g} generations, of which"
                f" {carried:,} are carried at most; raise models.{index}.maxReplicas or"
                " nodes.gpu.maxNodes"
            )
    if config.topology == "distributed":
        streams = config.api_max_replicas * config.scaling.generations_per_api_pod
        rows.append(
            (
                "API",
                f"{streams:,} active streams",
                (
                    f"{config.api_max_replicas} replicas with"
                    f" {config.scaling.generations_per_api_pod} each"
                    " (scaling.generationsPerApiPod); more comes through, and slower"
                ),
            )
        )
    return Section(
        title="Carried at most, and what happens beyond",
        rows=tuple(rows),
        notes=() if config.standalone.stand_in else (_beyond(config),),
        problems=tuple(problems),
        data={"models": data, "overCapacity": config.scaling.over_capacity},
    )


def _beyond(config: Configuration) -> str:
    text = over_capacity_text(config)
    return text if config.scaling.over_capacity else f"not known: {text}"


def _more(config: Configuration, index: int, model: Model) -> str:
    if config.topology == "standalone":
        return "the load balancer knows no limit, and sends more"
    limit = model.max_concurrent_streams or config.generations_per_gpu
    if model.concurrency_env is None:
        return (
            f"the limit of {limit} is not given to the workers (models.{index}.concurrencyEnv is"
            " unset): they take more, and all of it gets slower"
        )
    return f"a worker takes {limit} at once"
