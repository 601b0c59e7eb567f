"""Workloads, their pods and their disruption budgets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.manifests.scheduler.matching import matches
from tests.manifests.scheduler.quantities import PODS, amounts

Spec = Mapping[str, Any]

# Kubernetes documentation, "DaemonSet", tolerations that the controller adds.
_DAEMON_TOLERATIONS: list[dict[str, str]] = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
]

# Kubernetes documentation, "Pod Priority and Preemption".
_BUILT_IN_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}

_numbers = itertools.count()


@dataclass(eq=False)
class Pod:
    """A pod, whether it has a node or not."""

    workload: Workload
    name: str
    claims: tuple[str, ...] = ()
    """Claims whose volumes live in one zone."""
    node: str | None = None
    """The node that a DaemonSet's pod is for."""
    revision: int = 0

    @property
    def namespace(self) -> str:
        return self.workload.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return self.workload.labels

    @property
    def spec(self) -> Spec:
        return self.workload.spec

    @property
    def priority(self) -> int:
        return self.workload.priority

    @property
    def tolerations(self) -> list[Mapping[str, Any]]:
        given = list(self.spec.get("tolerations") or [])
        return given + _DAEMON_TOLERATIONS if self.workload.kind == "DaemonSet" else given

    @cached_property
    def requests(self) -> Counter[str]:
        return requests_of(self.spec)


def requests_of(spec: Spec) -> Counter[str]:
    """Return what a pod asks of its node, with sidecars, init containers and overhead.

    Kubernetes documentation, "Sidecar Containers", resource sharing within containers: sidecars
    count beside the containers; an init container counts with the sidecars before it.
    """
    running = Counter[str]()
    peak = Counter[str]()
    for container in spec.get("initContainers") or []:
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            running = running + asked
            peak |= running
        else:
            peak |= running + asked
    for container in spec["containers"]:
        running = running + _asked(container)
    total = (running | peak) + amounts(spec.get("overhead") or {})
    total[PODS] = 1
    return total


def _asked(container: Mapping[str, Any]) -> Counter[str]:
    resources = container.get("resources") or {}
    # The API server takes a missing request from the limit.
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


@dataclass(frozen=True)
class Rollout:
    """How a workload replaces its pods."""

    max_surge: int = 0
    max_unavailable: int = 1
    recreate: bool = False
    """Whether every old pod is gone before a new one is made."""


@dataclass(eq=False)
class Workload:
    """Pods of one template."""

    kind: str
    namespace: str
    name: str
    replicas: int
    labels: Mapping[str, str]
    spec: Spec
    rollout: Rollout = Rollout()
    zonal_claims: tuple[str, ...] = ()
    """Claims of a Deployment, shared by its pods, with volumes in one zone."""
    claim_templates: tuple[str, ...] = ()
    """Claims that each pod of a StatefulSet gets, with volumes in one zone."""
    priority: int = 0
    covers: tuple[str, ...] = ()
    removes_taint: str | None = None
    source: str = "manifests"
    members: list[Pod] = field(default_factory=list)

    def pods(self) -> list[Pod]:
        """Return the pods of the declared number."""
        return [self.pod(index) for index in range(self.replicas)]

    def pod(self, index: int, *, revision: int = 0) -> Pod:
        """Return a new pod; the index matters to a StatefulSet."""
        if self.kind == "StatefulSet":
            claims = tuple(f"{claim}-{self.name}-{index}" for claim in self.claim_templates)
            return Pod(self, f"{self.name}-{index}", (*self.zonal_claims, *claims), None, revision)
        return Pod(self, f"{self.name}-{next(_numbers)}", self.zonal_claims, None, revision)

    def replacement(self, pod: Pod) -> Pod:
        """Return the pod that the controller makes for one that was evicted."""
        name = pod.name if self.kind == "StatefulSet" else f"{self.name}-{next(_numbers)}"
        return Pod(self, name, pod.claims, None, pod.revision)

    def daemon(self, node: str) -> Pod:
        """Return a DaemonSet's pod for a node."""
        return Pod(self, f"{self.name}@{node}", node=node)


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget."""

    namespace: str
    selector: Mapping[str, Any]
    max_unavailable: int | str | None = None
    min_available: int | str | None = None

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and matches(self.selector, pod.labels)

    def allows(self, expected: int, healthy: int) -> bool:
        """Return whether one more pod may go (Kubernetes documentation, "Disruptions")."""
        if self.max_unavailable is not None:
            return healthy > expected - share(self.max_unavailable, expected, up=True)
        assert self.min_available is not None
        return healthy > share(self.min_available, expected, up=True)


def share(value: int | str, of: int, *, up: bool) -> int:
    """Return a whole number, or a percentage of one rounded up or down."""
    if isinstance(value, int):
        return value
    part = of * int(value.removesuffix("%")) / 100
    return math.ceil(part) if up else math.floor(part)


def rollout_of(kind: str, replicas: int, strategy: Mapping[str, Any] | None) -> Rollout:
    """Return a Deployment's or StatefulSet's rollout; API defaults are 25 % each."""
    if kind != "Deployment":
        return Rollout()
    given = strategy or {}
    if given.get("type") == "Recreate":
        return Rollout(0, replicas, recreate=True)
    rolling = given.get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    # The controller never lets both be zero.
    return Rollout(surge, unavailable if surge or unavailable else 1)


_POD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod")


def rendered_workloads(
    manifests: Iterable[Mapping[str, Any]], *, at_maximum: bool = False
) -> Iterator[Workload]:
    """Yield the workloads among manifests, with the replicas that their scalers start from."""
    documents = list(manifests)
    scaled = {
        (m["metadata"]["namespace"], m["spec"]["scaleTargetRef"]["name"]): m["spec"]
        for m in documents
        if m["kind"] == "ScaledObject"
    }
    priorities = _BUILT_IN_PRIORITIES | {
        m["metadata"]["name"]: m["value"] for m in documents if m["kind"] == "PriorityClass"
    }
    zonal = {
        (m["metadata"].get("namespace", "default"), m["metadata"]["name"])
        for m in documents
        # A claim without a class of its own gets a disk of the default class, in one zone.
        if m["kind"] == "PersistentVolumeClaim" and m["spec"].get("storageClassName") != ""
    }
    for m in documents:
        if m["kind"] not in _POD_KINDS:
            continue
        spec = m["spec"]
        namespace, name = m["metadata"]["namespace"], m["metadata"]["name"]
        scaler = scaled.get((namespace, name))
        if scaler:
            replicas = scaler["maxReplicaCount" if at_maximum else "minReplicaCount"]
        else:
            replicas = spec.get("replicas", spec.get("parallelism", 1))
        pod = spec["template"]
        claims = [
            v["persistentVolumeClaim"]["claimName"]
            for v in pod["spec"].get("volumes") or []
            if "persistentVolumeClaim" in v
        ]
        yield Workload(
            m["kind"],
            namespace,
            name,
            replicas,
            pod["metadata"].get("labels") or {},
            pod["spec"],
            rollout_of(m["kind"], replicas, spec.get("strategy")),
            tuple(f"{namespace}/{c}" for c in claims if (namespace, c) in zonal),
            tuple(
                f"{namespace}/{c['metadata']['name']}" for c in spec.get("volumeClaimTemplates", [])
            ),
            priority_of(pod["spec"], priorities),
        )


def priority_of(spec: Spec, known: Mapping[str, int] = _BUILT_IN_PRIORITIES) -> int:
    """Return a pod's priority; an unknown class would be refused at admission."""
    name = spec.get("priorityClassName")
    return known[name] if name else 0


def rendered_budgets(manifests: Iterable[Mapping[str, Any]]) -> Iterator[Budget]:
    """Yield the disruption budgets among manifests."""
    for m in manifests:
        if m["kind"] == "PodDisruptionBudget":
            spec = m["spec"]
            yield Budget(
                m["metadata"]["namespace"],
                spec["selector"],
                spec.get("maxUnavailable"),
                spec.get("minAvailable"),
            )
