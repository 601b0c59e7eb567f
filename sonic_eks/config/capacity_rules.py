"""Rules of capacity: what a profile must be, and what a production deployment must know.

The docstrings are the words of the generated reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.gpu_profile import curve_of, gpu_capacity, same_gpu
from sonic_eks.config.sizes import MOST_API_PODS, MOST_GPU_NODES, MOST_WORKERS, Sizes

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration


def a_profile_is_of_the_gpu(c: Configuration) -> None:
    """`scaling.profile` is of the GPU of `nodes.gpu.instanceType`.

    It has first audio at `slo.percentile`, at two concurrencies or more, that never falls.
    """
    if c.scaling.profile is None:
        return
    if c.profile is None:
        raise Refusal(
            c.scaling.profile, "a file that load_configuration reads", field="scaling.profile"
        )
    ours = c.gpu_type.gpu
    if not ours or not same_gpu(c.profile.gpu, ours):
        what = f"a profile of the {ours}, the GPU" if ours else "none: there is no GPU"
        raise Refusal(
            c.profile.gpu,
            f"{what} of a {c.gpu_type.name} (nodes.gpu.instanceType)",
            field="scaling.profile",
        )
    curve_of(c.profile, c.slo.percentile, named=c.scaling.profile)


def the_objective_can_be_kept(c: Configuration) -> None:
    """`slo` can be kept by what was measured on the GPU, or `scaling.generationsPerGpu` is set."""
    gpu_capacity(c)


def production_knows_its_capacity(c: Configuration) -> None:
    """With `deployment.terminationProtection`, capacity is measured or pinned.

    Or `scaling.acceptAssumedCapacity` is true.
    """
    protected = c.deployment.termination_protection and not c.standalone.stand_in
    if protected and c.capacity_is_assumed and not c.scaling.accept_assumed_capacity:
        raise Refusal(
            False,
            f"true, as nobody measured the {c.gpu_type.gpu}; or measure it with `sonic-eks bench`"
            " and set scaling.profile or generationsPerGpu: deployment.terminationProtection marks"
            " a deployment that callers rely on",
            field="scaling.acceptAssumedCapacity",
        )


def traffic_can_be_counted(c: Configuration) -> None:
    """`models[].traffic` in conversations has a `realTimeFactor`, or a profile of the GPU has one.

    What follows, also from `models[].maxReplicas`, is within the bounds of the fields that would
    pin it.
    """
    sizes = Sizes(c)
    for index, model in enumerate(c.models):
        if model.traffic is None:
            continue
        field = f"models.{index}.traffic"
        try:
            sizes.demand_of(model)
        except Refusal as refused:
            raise Refusal(
                refused.given, refused.allowed, field=f"{field}.{refused.field}"
            ) from None
        wanted = sizes.max_replicas(model)
        if wanted > MOST_WORKERS:
            reserve = sizes.reserve_generations
            held = f" and {reserve} in reserve" if reserve else ""
            raise Refusal(
                model.traffic.peak,
                f"what {MOST_WORKERS} workers carry; at {sizes.slots} generations"
                f" a GPU{held} these are {wanted}: share it out to several deployments",
                field=field,
            )
    for field, found, most, source in (
        ("nodes.gpu.maxNodes", sizes.gpu_max_nodes, MOST_GPU_NODES, "all models' workers"),
        ("api.maxReplicas", sizes.api_max_replicas, MOST_API_PODS, "models[].traffic"),
    ):
        if found > most:
            raise Refusal(found, f"at most {most}: so many follow from {source}", field=field)


def replicas_are_ordered(c: Configuration) -> None:
    """`minReplicas` of `models[]` and of `api` is at most `maxReplicas`."""
    sizes = Sizes(c)
    bounds = [
        (f"models.{index}", sizes.min_replicas(model), sizes.max_replicas(model))
        for index, model in enumerate(c.models)
    ]
    for field, low, high in (*bounds, ("api", sizes.api_min_replicas, sizes.api_max_replicas)):
        if low > high:
            raise Refusal(
                low,
                f"at most maxReplicas ({high})",
                nearest=str(high),
                field=f"{field}.minReplicas",
            )


CAPACITY_RULES = (
    a_profile_is_of_the_gpu,
    the_objective_can_be_kept,
    production_knows_its_capacity,
    traffic_can_be_counted,
    replicas_are_ordered,
)
