"""What keeps a pod off a node, each rule by its kube-scheduler plugin.

Every predicate returns the reason, or None when the rule does not object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.manifests.scheduler.matching import (
    SchedulerGapError,
    matches,
    matches_term,
    tolerated,
)
from tests.manifests.scheduler.nodes import Node, Taint
from tests.manifests.scheduler.pods import Pod

if TYPE_CHECKING:
    from tests.manifests.scheduler.cluster import Cluster

Predicate = Callable[["Cluster", Pod, Node], "str | None"]
Rule = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _node_selector(_: Cluster, pod: Pod, node: Node) -> str | None:
    return selects(pod, node)


def selects(pod: Pod, node: Node) -> str | None:
    """NodeName and NodeAffinity: nodeSelector and every one of the required terms' alternatives."""
    if pod.node and pod.node != node.name:
        return f"is for {pod.node}"
    for key, value in (pod.spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            return f"wants {key}={value}, the node has {node.labels.get(key)}"
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    if required and not any(matches_term(t, node.labels) for t in required["nodeSelectorTerms"]):
        return "no term of its node affinity matches"
    return None


def _untolerated(pod: Pod, node: Node) -> Taint | None:
    for taint in node.all_taints:
        # PreferNoSchedule keeps nothing off.
        hard = taint["effect"] in ("NoSchedule", "NoExecute")
        if hard and not tolerated(taint, pod.tolerations):
            return taint
    return None


def tolerates(pod: Pod, node: Node) -> bool:
    """Return whether a pod tolerates every hard taint of a node."""
    return _untolerated(pod, node) is None


def _taints(_: Cluster, pod: Pod, node: Node) -> str | None:
    """TaintToleration and NodeUnschedulable."""
    taint = _untolerated(pod, node)
    return f"does not tolerate {taint['key']}:{taint['effect']}" if taint else None


def _resources(cluster: Cluster, pod: Pod, node: Node) -> str | None:
    """NodeResourcesFit: requests, the number of pods included."""
    free = cluster.free(node)
    for name, asked in pod.requests.items():
        if asked > free[name]:
            return f"{name} {asked} asked, {free[name]} free"
    return None


def _terms(pod: Pod, kind: str) -> Iterable[Rule]:
    terms: Iterable[Rule] = ((pod.spec.get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []
    return terms


def _selected(term: Rule, owner: Pod, other: Pod) -> bool:
    if term.get("namespaceSelector") is not None:
        raise SchedulerGapError("namespaceSelector")
    namespaces = term.get("namespaces") or [owner.namespace]
    return other.namespace in namespaces and matches(term.get("labelSelector"), other.labels)


def _same(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def _pod_affinity(cluster: Cluster, pod: Pod, node: Node) -> str | None:
    """InterPodAffinity, required terms; the first pod of a group that wants itself may start."""
    for term in _terms(pod, "podAffinity"):
        wanted = [place for other, place in cluster.pods.items() if _selected(term, pod, other)]
        if not wanted and _selected(term, pod, pod) and term["topologyKey"] in node.labels:
            continue
        if not any(_same(term["topologyKey"], place, node) for place in wanted):
            return f"no pod that it wants in the same {term['topologyKey']}"
    return None


def _pod_anti_affinity(cluster: Cluster, pod: Pod, node: Node) -> str | None:
    """InterPodAffinity, both ways: its own terms, and those of pods that run."""
    own = list(_terms(pod, "podAntiAffinity"))
    for other, place in cluster.pods.items():
        for term in own:
            if _selected(term, pod, other) and _same(term["topologyKey"], place, node):
                return f"shares no {term['topologyKey']} with {other.name}"
        for term in _terms(other, "podAntiAffinity"):
            if _selected(term, other, pod) and _same(term["topologyKey"], place, node):
                return f"{other.name} shares no {term['topologyKey']} with it"
    return None


def _topology_spread(cluster: Cluster, pod: Pod, node: Node) -> str | None:
    """PodTopologySpread, constraints with DoNotSchedule."""
    hard = [
        constraint
        for constraint in pod.spec.get("topologySpreadConstraints") or []
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    keys = [constraint["topologyKey"] for constraint in hard]
    for constraint in hard:
        key = constraint["topologyKey"]
        if key not in node.labels:
            return f"the node has no {key}"
        counts = _domains(cluster, pod, constraint, keys)
        few = len(counts) < constraint.get("minDomains", 1)
        least = 0 if few or not counts else min(counts.values())
        itself = matches(_spread_selector(pod, constraint), pod.labels)
        skew = counts[node.labels[key]] + itself - least
        if skew > constraint["maxSkew"]:
            return f"skew over {key} would be {skew}, at most {constraint['maxSkew']}"
    return None


def _domains(cluster: Cluster, pod: Pod, rule: Rule, keys: list[str]) -> Counter[str]:
    """Return the matching pods by eligible domain; terminating ones are not counted."""
    selector = _spread_selector(pod, rule)
    counts = Counter[str]()
    for node in _eligible(cluster, pod, rule, keys):
        counts[node.labels[rule["topologyKey"]]] += sum(
            1
            for other in cluster.on(node)
            if other.namespace == pod.namespace
            and other not in cluster.terminating
            and matches(selector, other.labels)
        )
    return counts


def _eligible(cluster: Cluster, pod: Pod, rule: Rule, keys: list[str]) -> Iterator[Node]:
    for node in cluster.nodes:
        if not all(key in node.labels for key in keys):
            continue
        if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and selects(pod, node):
            continue
        if rule.get("nodeTaintsPolicy", "Ignore") == "Honor" and not tolerates(pod, node):
            continue
        yield node


def _spread_selector(pod: Pod, rule: Rule) -> Rule:
    selector: Rule = rule.get("labelSelector") or {}
    more = {k: pod.labels[k] for k in rule.get("matchLabelKeys") or [] if k in pod.labels}
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **more}}


def _volume_zone(cluster: Cluster, pod: Pod, node: Node) -> str | None:
    """VolumeZone and VolumeBinding: a disk is in one zone."""
    for claim in pod.claims:
        zone = cluster.volume_zones.get(claim, node.zone)
        if zone != node.zone:
            return f"the disk of {claim} is in {zone}"
    return None


PREDICATES: dict[str, Predicate] = {
    "node selector": _node_selector,
    "taints": _taints,
    "resources": _resources,
    "pod affinity": _pod_affinity,
    "pod anti-affinity": _pod_anti_affinity,
    "topology spread": _topology_spread,
    "volume zone": _volume_zone,
}
