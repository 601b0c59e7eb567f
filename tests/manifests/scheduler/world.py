"""A deployment's cluster and what changes it: drains, rollouts, node group updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.k8s.render import RenderedChart
from tests.manifests.scheduler.addons import Passed, addon_workloads
from tests.manifests.scheduler.cluster import Cluster, Order
from tests.manifests.scheduler.nodes import Node, Source, managed_groups, node_pools
from tests.manifests.scheduler.pods import (
    Pod,
    Workload,
    rendered_budgets,
    rendered_workloads,
)

KARPENTER = "karpenter"


@dataclass
class Waiting:
    """A pod that found no node, and what kept it off each."""

    pod: Pod
    reasons: dict[str, str]

    @property
    def workload(self) -> str:
        return self.pod.workload.name

    def __str__(self) -> str:
        kept = "; ".join(f"{node}: {reason}" for node, reason in self.reasons.items())
        return f"{self.pod.name} stays Pending ({kept})"


class World:
    """A deployment in its cluster.

    Parameters
    ----------
    config, charts : Configuration, sequence of RenderedChart
        The deployment.
    passed : dict
        Values of add-ons and charts.
    order : Order
        How a scheduler picks among the nodes that a pod fits.
    at_maximum : bool
        Whether scalers are at their maximum rather than at their minimum.
    """

    def __init__(
        self,
        config: Configuration,
        charts: Iterable[RenderedChart],
        passed: Passed,
        order: Order,
        *,
        at_maximum: bool = False,
    ) -> None:
        manifests = [manifest for chart in charts for manifest in chart.manifests]
        addons, budgets = addon_workloads(passed)
        self.workloads = [*addons, *rendered_workloads(manifests, at_maximum=at_maximum)]
        self.budgets = [*budgets, *rendered_budgets(manifests)]
        self.groups = managed_groups(config)
        self.pools = node_pools(manifests)
        self.cluster = Cluster(order)
        self.unstarted: list[Pod] = []
        self.waiting: list[Pod] = []
        self._start()

    def _start(self) -> None:
        for source, size in self.groups.values():
            for index in range(size):
                self.join(source, source.zones[index % len(source.zones)])
        pods = [pod for w in self.workloads if w.kind != "DaemonSet" for pod in w.pods()]
        # Add-ons come first, and then the charts, as in the stacks.
        for addon in (True, False):
            batch = [p for p in pods if (p.workload.source != "manifests") is addon]
            self.place(batch)

    def of(self, workload: Workload) -> list[Pod]:
        """Return a workload's running pods that are not terminating."""
        cluster = self.cluster
        return [p for p in cluster.pods if p.workload is workload and p not in cluster.terminating]

    def join(self, source: Source, zone: str) -> Node:
        """Add a node of a group or pool."""
        node = source.node(zone)
        self.unstarted += self.cluster.join(node, self.workloads)
        return node

    def leave(self, node: Node) -> None:
        """Remove a node with all that is on it; what is no DaemonSet's pod has left before."""
        for pod in self.cluster.on(node):
            assert pod.node, f"{pod.name} is still on {node.name}"
            self.cluster.remove(pod)
        self.cluster.nodes.remove(node)

    def place(self, pods: Iterable[Pod] = ()) -> None:
        """Schedule pods and all that wait; Karpenter adds nodes for what it may."""
        waiting = self.cluster.schedule([*self.waiting, *pods])
        self.waiting = []
        for pod in waiting:
            if not self.cluster.schedule([pod]):
                continue
            if not (self._karpenter_runs() and self._provision(pod)):
                self.waiting.append(pod)

    def _karpenter_runs(self) -> bool:
        return any(pod.workload.name == KARPENTER for pod in self.cluster.pods)

    def _provision(self, pod: Pod) -> bool:
        for pool in self.pools:
            if not self._within_limits(pool):
                continue
            for zone in pool.zones:
                unstarted = len(self.unstarted)
                node = self.join(pool, zone)
                if self.cluster.why_not(pod, node) is None:
                    self.cluster.put(pod, node)
                    return True
                del self.unstarted[unstarted:]
                self.leave(node)
        return False

    def _within_limits(self, pool: Source) -> bool:
        total = Counter(pool.capacity)
        for node in self.cluster.nodes:
            if node.group == pool.name:
                total.update(pool.capacity)
        return all(total[name] <= limit for name, limit in (pool.limits or {}).items())

    def why_waiting(self) -> list[Waiting]:
        """Return the pods that wait, each with what keeps it off every node."""
        return [Waiting(pod, self.cluster.reasons(pod)) for pod in self.waiting]

    def evict(self, node: Node) -> list[Pod]:
        """Cordon and drain a node as `kubectl drain` does; return the pods that a budget holds.

        A pod whose place is taken over leaves; the next of its budget goes only then.
        """
        node.cordoned = True
        while True:
            left = [pod for pod in self.cluster.on(node) if not pod.node]
            allowed = [pod for pod in left if self._may_evict(pod)]
            if not allowed:
                return left
            pod = allowed[0]
            self.cluster.remove(pod)
            self.place([pod.workload.replacement(pod)])

    def _may_evict(self, pod: Pod) -> bool:
        for budget in self.budgets:
            if budget.covers(pod):
                expected = sum(
                    w.replicas for w in self.workloads if budget.covers(w.pod(0)) and w.replicas
                )
                healthy = sum(1 for p in self.cluster.pods if budget.covers(p))
                if not budget.allows(expected, healthy):
                    return False
        return True

    def nodes_of(self, group: str) -> list[Node]:
        """Return the nodes of a group or pool."""
        return [node for node in self.cluster.nodes if node.group == group]

    def replacement_zones(self, source: Source) -> Iterator[str]:
        """Yield the zones where a missing node of a group may come back.

        Amazon EC2 Auto Scaling user guide, "Auto Scaling benefits": a new instance starts in one
        of the zones with the fewest.
        """
        counts = Counter(dict.fromkeys(source.zones, 0))
        counts.update(node.zone for node in self.nodes_of(source.name))
        fewest = min(counts.values())
        yield from (zone for zone in source.zones if counts[zone] == fewest)
