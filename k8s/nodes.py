"""Karpenter's NodePools: what comes and goes with the load, beside the managed node groups.

GPU burst lies in the placement group of the managed base, GPU overflow in the same zone outside
it, and the CPU pool takes API pods that the serving nodes have no room for.

Karpenter's limits are per NodePool, and what one pool does not use another cannot have. So the
nodes beyond the base are divided: base, burst and overflow together never exceed
`nodes.gpu.maxNodes`, also while the base is being updated and its workers run elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType, instance_types
from sonic_eks.config.node_rules import api_pods_per_serving_node
from sonic_eks.k8s.chart import DeploymentChart, custom_object
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.node_classes import node_class_spec
from sonic_eks.late import Late
from sonic_eks.nodes.pools import FSX_STARTUP_TAINT, GPU_RESOURCE, POOL_LABEL, Pool

NODE_START_SECONDS = 600
"""Assumed bound in seconds from a launch to a ready node that has pulled a worker image."""

API_REPLACEMENT_SECONDS = 900
"""Assumed bound in seconds from an eviction to a new API pod that is a healthy target."""

# The higher, the sooner tried. All differ, so that which pool a pod gets is never left to chance:
# the group before what lies outside it, and no GPU for a pod that could do without.
_WEIGHTS = {"cpu": 30, "gpu-burst": 20, "gpu-overflow": 10}

# An API pod needs minutes until it is a healthy target; a node that comes and goes faster than
# that would only churn.
_CPU_CONSOLIDATE_AFTER_SECONDS = 600

_GPU_TAINTS = [{"key": GPU_RESOURCE, "value": "true", "effect": "NoSchedule"}]
_SERVING_TAINTS = [{"key": POOL_LABEL, "value": Pool.SERVING.value, "effect": "NoSchedule"}]
# Until the driver can mount the weights; it removes the taint itself.
_FSX_STARTUP_TAINTS = [{"key": FSX_STARTUP_TAINT, "effect": "NoExecute"}]


@dataclass(frozen=True)
class KarpenterPool:
    """A NodePool and the EC2NodeClass of the same name.

    Attributes
    ----------
    name : str
        Name of both.
    pool : Pool
        Value of the nodes' label `POOL_LABEL`.
    instance_type : InstanceType
        Type of every node.
    nodes : int
        Nodes at most.
    node_class : mapping
        Spec of the EC2NodeClass.
    capacity_types : tuple of str
        How EC2 may sell them.
    taints, startup_taints : list of mapping
        Taints of every node, and those that something removes.
    consolidate_after_seconds : int
        Seconds that a node must be empty before it goes.
    termination_seconds : int
        Seconds that a drain may take: a backstop, rarely met.
    """

    name: str
    pool: Pool
    instance_type: InstanceType
    nodes: int
    node_class: Mapping[str, Any]
    capacity_types: tuple[str, ...]
    taints: list[dict[str, str]]
    startup_taints: list[dict[str, str]]
    consolidate_after_seconds: int
    termination_seconds: int

    @property
    def limits(self) -> dict[str, str]:
        """What the NodePool may have of the resource that its pods come for."""
        kind = self.instance_type
        if kind.gpus:
            return {GPU_RESOURCE: str(self.nodes * kind.gpus)}
        return {"cpu": str(self.nodes * kind.vcpus)}


def karpenter_pools(config: Configuration) -> tuple[KarpenterPool, ...]:
    """Return the pools that may have a node."""
    pools: tuple[KarpenterPool, ...] = (_burst(config), _overflow(config))
    if config.has_serving_nodes:
        pools = (_cpu(config), *pools)
    return tuple(pool for pool in pools if pool.nodes)


class NodePools(DeploymentChart):
    """The EC2NodeClasses and NodePools; the chart is left out where there is none."""

    def build(self) -> None:
        """Add every class before the first pool: a pool without its class is not ready."""
        pools = karpenter_pools(self.config)
        for pool in pools:
            self._add("karpenter.k8s.aws/v1", "EC2NodeClass", pool.name, pool.node_class)
        for pool in pools:
            self._add("karpenter.sh/v1", "NodePool", pool.name, _node_pool(self.config, pool))

    def _add(self, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        custom_object(
            self,
            f"{name}-{kind}",
            api_version=api_version,
            kind=kind,
            name=name,
            labels=Labels.of(self.config, name, component="nodes"),
            spec=spec,
        )


def _cpu(config: Configuration) -> KarpenterPool:
    pool = config.nodes.serving
    instance_type = instance_types()[pool.instance_type]
    # As for workers, below: one pod at a time, each replaced first, and one drain at the end.
    pods = min(api_pods_per_serving_node(config), config.api_max_replicas)
    return KarpenterPool(
        name="cpu",
        pool=Pool.SERVING,
        instance_type=instance_type,
        nodes=config.serving_max_nodes - pool.size,
        node_class=node_class_spec(
            config,
            instance_type=instance_type,
            subnet=Late.SERVING_SUBNET,
            root_volume_gib=pool.root_volume_gib,
        ),
        capacity_types=("on-demand",),
        taints=_SERVING_TAINTS,
        startup_taints=[],
        consolidate_after_seconds=_CPU_CONSOLIDATE_AFTER_SECONDS,
        termination_seconds=config.drain.grace_seconds
        + pods * (NODE_START_SECONDS + API_REPLACEMENT_SECONDS),
    )


def _burst(config: Configuration) -> KarpenterPool:
    return _gpu(
        config,
        "gpu-burst",
        nodes=config.gpu_burst_nodes,
        capacity_types=("reserved", "on-demand"),
        placement_group=Late.PLACEMENT_GROUP,
        reservations=config.nodes.gpu.reservation_ids,
    )


def _overflow(config: Configuration) -> KarpenterPool:
    overflow = config.nodes.gpu.overflow
    # Reserved, then Spot, then on-demand is Karpenter's own order.
    spot = ("spot",) if overflow.spot else ()
    return _gpu(
        config,
        "gpu-overflow",
        nodes=config.gpu_overflow_nodes,
        capacity_types=("reserved", *spot, "on-demand"),
        # Capacity Blocks lie close together by themselves, and take no placement group.
        placement_group=None,
        reservations=(*overflow.reservation_ids, *overflow.capacity_block_ids),
    )


def _gpu(
    config: Configuration,
    name: str,
    *,
    nodes: int,
    capacity_types: tuple[str, ...],
    placement_group: Late | None,
    reservations: tuple[str, ...],
) -> KarpenterPool:
    pool = config.nodes.gpu
    return KarpenterPool(
        name=name,
        pool=Pool.GPU,
        instance_type=config.gpu_type,
        nodes=nodes,
        node_class=node_class_spec(
            config,
            instance_type=config.gpu_type,
            subnet=Late.GPU_SUBNET,
            root_volume_gib=pool.root_volume_gib,
            placement_group=placement_group,
            reservations=reservations,
        ),
        capacity_types=capacity_types,
        taints=_GPU_TAINTS,
        startup_taints=_FSX_STARTUP_TAINTS,
        consolidate_after_seconds=pool.consolidate_after_seconds,
        termination_seconds=_gpu_termination_seconds(config),
    )


def _gpu_termination_seconds(config: Configuration) -> int:
    """Return how long a drain of a GPU node may take in seconds.

    The workers' budget lets one pod go at a time, the next when a replacement is ready. So a
    node takes as many node starts and model loads as it has GPUs, and one drain.
    """
    longest_load = max(model.load_seconds for model in config.models)
    one_by_one = config.nodes.gpu.workers_per_node * (NODE_START_SECONDS + longest_load)
    return config.drain.grace_seconds + one_by_one


def _node_pool(config: Configuration, pool: KarpenterPool) -> dict[str, Any]:
    startup = {"startupTaints": pool.startup_taints} if pool.startup_taints else {}
    return {
        "weight": _WEIGHTS[pool.name],
        "template": {
            "metadata": {"labels": {POOL_LABEL: pool.pool.value}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": pool.name,
                },
                "requirements": _requirements(config, pool),
                "taints": pool.taints,
                **startup,
                # Expiry is forceful: it heeds no budget and brings no replacement first.
                "expireAfter": "Never",
                "terminationGracePeriod": f"{pool.termination_seconds}s",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{pool.consolidate_after_seconds}s",
            "budgets": [{"nodes": "1"}],
        },
        "limits": pool.limits,
    }


def _requirements(config: Configuration, pool: KarpenterPool) -> list[dict[str, Any]]:
    values = {
        # A cluster placement group lies in one zone, which Karpenter does not look up.
        "topology.kubernetes.io/zone": [config.network.gpu_zone],
        "node.kubernetes.io/instance-type": [pool.instance_type.name],
        "karpenter.sh/capacity-type": list(pool.capacity_types),
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }
    return [{"key": key, "operator": "In", "values": value} for key, value in values.items()]
