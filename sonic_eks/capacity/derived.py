"""What follows from an objective, a profile and a traffic shape, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sonic_eks.capacity.quotas import quotas
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model

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

    @property
    def pinned(self) -> bool:
        """Whether the configuration gives the value."""
        return self.mark == "pinned"


def derive(config: Configuration) -> list[Derived]:
    """Return the derivation from the objective to the quotas, in the order of its steps."""
    found = [_generations(config), _threshold(config)]
    for index, model in enumerate(config.models):
        found += _replicas(config, index, model)
    found += _nodes(config)
    found += [
        Derived(
            name=f"{quota.name} ({quota.code})",
            value=quota.vcpus,
            unit="vCPU",
            mark="derived",
            reason=quota.reason,
        )
        for quota in quotas(config)
    ]
    return found


def _mark(pinned: bool) -> Mark:
    return "pinned" if pinned else "default"


def _generations(config: Configuration) -> Derived:
    capacity = config.gpu_capacity
    risk = ""
    if capacity.basis == "assumed":
        risk = f"nobody measured the {config.gpu_type.gpu or config.gpu_type.name}: measure it"
    return Derived(
        name="scaling.generationsPerGpu",
        value=capacity.generations,
        unit="generations",
        mark=capacity.basis,
        reason=capacity.reason,
        risk=risk,
    )


def _threshold(config: Configuration) -> Derived:
    share = config.scaling.target_utilization
    return Derived(
        name="scaling.targetUtilization",
        value=share,
        unit="",
        mark=_mark("target_utilization" in config.scaling.model_fields_set),
        reason=f"a worker is added beyond {config.generations_per_gpu * share:g} generations each",
    )


def _replicas(config: Configuration, index: int, model: Model) -> list[Derived]:
    slots = config.generations_per_gpu
    return [
        Derived(
            name=f"models.{index}.{name}",
            value=value,
            unit="workers",
            mark=_mark(field in model.model_fields_set),
            reason=f"{model.name}: {value * slots} generations at once",
        )
        for name, field, value in (
            ("minReplicas", "min_replicas", model.min_replicas),
            ("maxReplicas", "max_replicas", model.max_replicas),
        )
    ]


def _nodes(config: Configuration) -> list[Derived]:
    scaling, gpu = config.scaling, config.nodes.gpu
    return [
        Derived(
            name="scaling.headroomGpus",
            value=scaling.headroom_gpus,
            unit="GPUs",
            mark=_mark("headroom_gpus" in scaling.model_fields_set),
            reason="a worker that starts on one need not wait for a node",
        ),
        Derived(
            name="nodes.gpu.maxNodes",
            value=gpu.max_nodes,
            unit="nodes",
            mark=_mark("max_nodes" in gpu.model_fields_set),
            reason=f"{gpu.workers_per_node} workers a {gpu.instance_type}",
        ),
    ]
