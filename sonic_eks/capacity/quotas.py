"""The vCPU quotas of Amazon EC2 that a deployment needs, by the names of Service Quotas.

Names and codes: Amazon EC2 user guide, "On-Demand Instance quotas" and "Spot Instance quotas";
Service Quotas, Amazon EC2. Nodes of reservations and Capacity Blocks are counted like any other: a
quota that is too large costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType, instance_types

# EKS user guide, "Understand each phase of node updates": an update starts up to two nodes in each
# zone of the group beside those that run, unless its strategy is MINIMAL, as the GPU base's is.
_SURGE_A_ZONE = 2


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota.

    Attributes
    ----------
    name, code : str
        As Service Quotas has them.
    vcpus : int
        vCPUs that the deployment can come to, in the region.
    reason : str
        What adds up to them.
    """

    name: str
    code: str
    vcpus: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Nodes:
    what: str
    kind: InstanceType
    count: int
    spot: bool = False

    @property
    def vcpus(self) -> int:
        return self.kind.vcpus * self.count


def quotas(config: Configuration) -> list[Quota]:
    """Return what the deployment needs of each quota at its largest, surge of updates included."""
    found: dict[tuple[str, str], list[_Nodes]] = {}
    for nodes in _nodes(config):
        if nodes.count:
            found.setdefault(_quota_of(nodes.kind, spot=nodes.spot), []).append(nodes)
    return [
        Quota(
            name=name,
            code=code,
            vcpus=sum(nodes.vcpus for nodes in parts),
            reason=" + ".join(f"{n.count} {n.kind.name} ({n.what})" for n in parts),
        )
        for (name, code), parts in found.items()
    ]


def _nodes(config: Configuration) -> list[_Nodes]:
    kinds, pools = instance_types(), config.nodes
    gpu, system, serving = config.gpu_type, pools.system, pools.serving
    whose = "GPU" if gpu.gpus else "stand-in"
    groups = len(pools.generations)  # with replaceGroup, two exist while one takes over
    found = [
        _Nodes(what=f"{whose} nodes at most", kind=gpu, count=config.gpu_max_nodes),
        _Nodes(what=f"second {whose} base", kind=gpu, count=pools.gpu.base_size * (groups - 1)),
        # Karpenter may take any of the overflow as Spot or as On-Demand: both must have room.
        _Nodes(
            what="overflow on Spot",
            kind=gpu,
            count=config.gpu_overflow_nodes if pools.gpu.overflow.spot else 0,
            spot=True,
        ),
        *_group(
            config,
            "system",
            kinds[system.instance_type],
            config.system_nodes,
            len(config.network.zones),
        ),
    ]
    if config.has_serving_nodes:
        kind = kinds[serving.instance_type]
        found += _group(config, "serving", kind, serving.size, 1)
        burst = config.serving_max_nodes - serving.size
        found.append(_Nodes(what="more for API pods", kind=kind, count=burst))
    return found


def _group(
    config: Configuration, name: str, kind: InstanceType, size: int, zones: int
) -> list[_Nodes]:
    groups = len(config.nodes.generations)
    rolling = config.nodes.upgrade == "rolling"
    return [
        _Nodes(what=name, kind=kind, count=size * groups),
        # A group that another one replaces is never updated in place.
        _Nodes(what=f"update of {name}", kind=kind, count=_SURGE_A_ZONE * zones if rolling else 0),
    ]


def _quota_of(kind: InstanceType, *, spot: bool) -> tuple[str, str]:
    letter = kind.family[0]
    if letter == "g":
        if spot:
            return "All G and VT Spot Instance Requests", "L-3819A6DF"
        return "Running On-Demand G and VT instances", "L-DB2E81BA"
    if letter == "p":
        if spot:  # of these families, only P5 has a type with one GPU
            return "All P5 Spot Instance Requests", "L-C4BD4855"
        return "Running On-Demand P instances", "L-417A185B"
    standard = "Standard (A, C, D, H, I, M, R, T, Z)"
    if spot:
        return f"All {standard} Spot Instance Requests", "L-34B43A08"
    return f"Running On-Demand {standard} instances", "L-1216C47A"
