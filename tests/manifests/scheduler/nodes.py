"""Nodes: what they offer to pods, and where they come from."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType, instance_types
from tests.manifests.scheduler.quantities import CPU, PODS, amounts

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
Taint = Mapping[str, str]

_MIB = 2**20
_GIB = 2**30

# Kubernetes documentation, "Taints and Tolerations": `kubectl drain` cordons, and that taints.
_CORDON: Taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

# awslabs/amazon-eks-ami, nodeadm/internal/kubelet/config.go: hundredths of a percent of each
# range of millicores; 11 MiB a pod and 255 MiB; 1 GiB of disk; eviction below 100 MiB of memory
# or 10 % of the disk.
_CPU_RANGES = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, 10**9, 25))
_EVICTION_MIB = 100
_EVICTION_DISK = 0.10

# Karpenter's setting vmMemoryOverheadPercent, 0.075 by default: what hypervisor and kernel take.
# It over-estimates on large types, and Karpenter launches nodes by it.
_MEMORY_OVERHEAD = 0.075


def allocatable(kind: InstanceType, root_volume_gib: int) -> Counter[str]:
    """Return what a node of a type offers, on EKS' AL2023 image and the default CNI mode."""
    millicores = kind.vcpus * 1000
    reserved_cpu = sum(
        (min(millicores, end) - start) * share // 10_000
        for start, end, share in _CPU_RANGES
        if millicores > start
    )
    # The reservation counts every address that the network interfaces hold (eni-max-pods.txt).
    addresses = kind.enis * (kind.ipv4_per_eni - 1) + 2
    memory_mib = int(kind.memory_mib * (1 - _MEMORY_OVERHEAD))
    disk = kind.local_nvme_gb * 10**9 or root_volume_gib * _GIB
    offered = Counter(
        {
            CPU: millicores - reserved_cpu,
            "memory": (memory_mib - 11 * addresses - 255 - _EVICTION_MIB) * _MIB,
            "ephemeral-storage": int(disk * (1 - _EVICTION_DISK)) - _GIB,
            # Amazon EKS user guide, "Choose an optimal Amazon EC2 node instance type": 110 pods
            # below 30 vCPUs and 250 from there on.
            PODS: min(addresses, 110 if kind.vcpus < 30 else 250),
        }
    )
    if kind.gpus:
        offered[GPU] = kind.gpus
    return offered


_numbers = itertools.count(1)


@dataclass(eq=False)
class Node:
    """A node that has joined."""

    name: str
    labels: dict[str, str]
    allocatable: Counter[str]
    group: str = ""
    """The managed node group or NodePool that it is of."""
    taints: list[Taint] = field(default_factory=list)
    cordoned: bool = False

    @property
    def zone(self) -> str:
        return self.labels[ZONE]

    @property
    def all_taints(self) -> list[Taint]:
        return [*self.taints, _CORDON] if self.cordoned else self.taints


@dataclass(frozen=True)
class Source:
    """A managed node group or NodePool: what makes nodes."""

    name: str
    instance_type: str
    root_volume_gib: int
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    surge: bool = True
    """Whether an update of a managed node group starts new nodes first."""
    limits: Mapping[str, int] | None = None
    """What a NodePool may hold in all; None for a managed node group."""
    weight: int = 0

    @property
    def capacity(self) -> Counter[str]:
        """What one node counts for in a NodePool's limits."""
        kind = instance_types()[self.instance_type]
        memory = kind.memory_mib * _MIB
        return Counter({CPU: kind.vcpus * 1000, "memory": memory, GPU: kind.gpus, "nodes": 1})

    def node(self, zone: str) -> Node:
        """Return a node that has just registered, startup taints included."""
        name = f"{self.name}-{next(_numbers)}"
        kind = instance_types()[self.instance_type]
        labels = {
            HOSTNAME: name,
            ZONE: zone,
            "topology.kubernetes.io/region": zone[:-1],
            "node.kubernetes.io/instance-type": kind.name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            **self.labels,
        }
        if kind.gpus:
            # nodeadm/doc/api-concepts.md: set on Kubernetes 1.35 and later.
            labels["nvidia.com/gpu.present"] = "true"
        offered = allocatable(kind, self.root_volume_gib)
        return Node(name, labels, offered, self.name, [dict(taint) for taint in self.taints])


POOL = "sonic-eks/pool"
FSX_TAINT = {"key": "fsx.csi.aws.com/agent-not-ready", "value": "true", "effect": "NoExecute"}
GPU_TAINT = {"key": GPU, "value": "true", "effect": "NoSchedule"}


def managed_groups(config: Configuration) -> dict[str, tuple[Source, int]]:
    """Return the managed node groups with their size, as the design declares them.

    A test holds them against the node groups of the synthesized cluster.
    """
    nodes, here = config.nodes, config.network.gpu_zone

    def labels(pool: str) -> dict[str, str]:
        return {POOL: pool, "eks.amazonaws.com/nodegroup": pool}

    system = Source(
        "system",
        nodes.system.instance_type,
        nodes.system.root_volume_gib,
        config.network.zones,
        labels("system"),
    )
    serving = Source(
        "serving",
        nodes.serving.instance_type,
        nodes.serving.root_volume_gib,
        (here,),
        labels("serving"),
        ({"key": POOL, "value": "serving", "effect": "NoSchedule"},),
    )
    gpu = Source(
        "gpu",
        nodes.gpu.instance_type,
        nodes.gpu.root_volume_gib,
        (here,),
        labels("gpu"),
        (GPU_TAINT, FSX_TAINT),
        surge=False,
    )
    groups = {
        "system": (system, config.system_nodes),
        "serving": (serving, nodes.serving.size),
        "gpu": (gpu, nodes.gpu.base_size),
    }
    if config.topology == "standalone":
        del groups["serving"]
    return groups


def node_pools(manifests: list[dict[str, Any]]) -> list[Source]:
    """Return Karpenter's NodePools by weight, the heaviest first."""
    found = [_node_pool(m, manifests) for m in manifests if m["kind"] == "NodePool"]
    return sorted(found, key=lambda source: (-source.weight, source.name))


def _node_pool(m: Mapping[str, Any], manifests: list[dict[str, Any]]) -> Source:
    name, spec = m["metadata"]["name"], m["spec"]
    template = spec["template"]
    wanted = {
        r["key"]: r["values"] for r in template["spec"]["requirements"] if r["operator"] == "In"
    }
    (node_class,) = [
        c["spec"]
        for c in manifests
        if c["kind"] == "EC2NodeClass"
        and c["metadata"]["name"] == template["spec"]["nodeClassRef"]["name"]
    ]
    volume = node_class["blockDeviceMappings"][0]["ebs"]["volumeSize"]
    return Source(
        name,
        # Karpenter may take any of the types; the first is the one that pods are sized for.
        wanted["node.kubernetes.io/instance-type"][0],
        int(volume.removesuffix("Gi")),
        tuple(wanted[ZONE]),
        {"karpenter.sh/nodepool": name, **(template["metadata"].get("labels") or {})},
        (*template["spec"].get("taints", ()), *template["spec"].get("startupTaints", ())),
        limits=amounts(spec.get("limits") or {}),
        weight=spec.get("weight", 0),
    )
