"""The state of a cluster: nodes, the pods on them, and where volumes are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tests.manifests.scheduler.nodes import Node
from tests.manifests.scheduler.pods import Pod, Workload
from tests.manifests.scheduler.predicates import PREDICATES, tolerates
from tests.manifests.scheduler.preferences import penalty

Order = Callable[["Cluster", Pod, Node], tuple[float, ...]]
"""Ranks the nodes that a pod fits: the smallest wins."""


class Cluster:
    """Nodes and the pods that run on them; `terminating` ones still hold what they asked for."""

    def __init__(self, order: Order) -> None:
        self.nodes: list[Node] = []
        self.pods: dict[Pod, Node] = {}
        self.terminating: set[Pod] = set()
        self.volume_zones: dict[str, str] = {}
        self._order = order
        # Sums of what is in `pods`, kept since every predicate asks for them.
        self._on: dict[Node, dict[Pod, None]] = {}
        self._free: dict[Node, Counter[str]] = {}

    def on(self, node: Node) -> list[Pod]:
        """Return the pods on a node."""
        return list(self._on.get(node, ()))

    def free(self, node: Node) -> Counter[str]:
        """Return what a node has left."""
        return self._free.get(node, node.allocatable)

    def why_not(self, pod: Pod, node: Node) -> str | None:
        """Return the first predicate that keeps a pod off a node, or None when it fits."""
        for name, predicate in PREDICATES.items():
            reason = predicate(self, pod, node)
            if reason:
                return f"{name}: {reason}"
        return None

    def reasons(self, pod: Pod) -> dict[str, str]:
        """Return by node what keeps a pod off it."""
        found = {node.name: self.why_not(pod, node) for node in self.nodes}
        return {name: reason for name, reason in found.items() if reason}

    def put(self, pod: Pod, node: Node) -> None:
        """Bind a pod to a node, and its unbound claims to the node's zone."""
        self._bind(pod, node)
        for claim in pod.claims:
            # WaitForFirstConsumer: the disk is made where the first pod lands, and stays there.
            self.volume_zones.setdefault(claim, node.zone)

    def remove(self, pod: Pod) -> None:
        """Take a pod off its node for good."""
        self._unbind(pod)
        self.terminating.discard(pod)

    def _bind(self, pod: Pod, node: Node) -> None:
        self.pods[pod] = node
        self._on.setdefault(node, {})[pod] = None
        self._free.setdefault(node, Counter(node.allocatable)).subtract(pod.requests)

    def _unbind(self, pod: Pod) -> None:
        node = self.pods.pop(pod)
        del self._on[node][pod]
        self._free[node].update(pod.requests)

    def schedule(self, pods: Iterable[Pod]) -> list[Pod]:
        """Place pods, the most important first, and return those that found no node.

        A pod with a higher priority displaces others; these are tried again.
        """
        queue = sorted(pods, key=lambda pod: -pod.priority)
        waiting = []
        while queue:
            pod = queue.pop(0)
            fitting = [node for node in self.nodes if self.why_not(pod, node) is None]
            if fitting:
                self.put(pod, min(fitting, key=lambda node: self._order(self, pod, node)))
                continue
            victims = self._displace(pod)
            if victims:
                queue.insert(0, pod)
                queue += [victim.workload.replacement(victim) for victim in victims]
            else:
                waiting.append(pod)
        return waiting

    def _displace(self, pod: Pod) -> list[Pod]:
        """Evict the fewest less important pods of one node that make room, and return them."""
        best: list[Pod] = []
        for node in self.nodes:
            lower = sorted(
                (p for p in self.on(node) if p.priority < pod.priority and not p.node),
                key=lambda p: p.priority,
            )
            gone: list[Pod] = []
            while lower and self.why_not(pod, node):
                gone.append(lower.pop(0))
                self._unbind(gone[-1])
            works = self.why_not(pod, node) is None
            for victim in gone:
                self._bind(victim, node)
            if works and gone and (not best or len(gone) < len(best)):
                best = gone
        for victim in best:
            self.remove(victim)
        return best

    def join(self, node: Node, workloads: Iterable[Workload]) -> list[Pod]:
        """Add a node, start its DaemonSets' pods, and return those that found no room on it.

        The node is ready for other pods only when what takes its startup taint off it runs.
        """
        self.nodes.append(node)
        daemons = [w for w in workloads if w.kind == "DaemonSet"]
        failed = self._start_daemons(node, daemons)
        running = {pod.workload.removes_taint for pod in self.on(node)} - {None}
        if any(taint["key"] in running for taint in node.taints):
            node.taints = [taint for taint in node.taints if taint["key"] not in running]
            failed = self._start_daemons(node, daemons)
        return failed

    def _start_daemons(self, node: Node, daemons: list[Workload]) -> list[Pod]:
        present = {pod.workload for pod in self.on(node)}
        failed = []
        for pod in sorted(
            (w.daemon(node.name) for w in daemons if w not in present), key=lambda p: -p.priority
        ):
            # The DaemonSet controller makes no pod for a node that selector or taint rules out.
            if PREDICATES["node selector"](self, pod, node) or not tolerates(pod, node):
                continue
            if self.why_not(pod, node) is None:
                self.put(pod, node)
            else:
                failed.append(pod)
        return failed


def spread(cluster: Cluster, pod: Pod, node: Node) -> tuple[float, ...]:
    """Rank as the default scheduler roughly does: preferences first, then the emptiest node."""
    return (penalty(cluster, pod, node), _used(cluster, node))


def pack(cluster: Cluster, pod: Pod, node: Node) -> tuple[float, ...]:
    """Rank against every preference: the fullest node first."""
    return (-_used(cluster, node), -penalty(cluster, pod, node))


def _used(cluster: Cluster, node: Node) -> float:
    free = cluster.free(node)
    shares = [1 - free[name] / node.allocatable[name] for name in ("cpu", "memory")]
    return max(shares)
