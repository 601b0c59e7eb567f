"""Soft rules: what a scheduler prefers, and may break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.manifests.scheduler.matching import matches
from tests.manifests.scheduler.nodes import Node
from tests.manifests.scheduler.pods import Pod

if TYPE_CHECKING:
    from tests.manifests.scheduler.cluster import Cluster


def penalty(cluster: Cluster, pod: Pod, node: Node) -> float:
    """Return how much a node goes against preferred anti-affinity and ScheduleAnyway spread."""
    anti = (pod.spec.get("affinity") or {}).get("podAntiAffinity") or {}
    total = 0.0
    for preferred in anti.get("preferredDuringSchedulingIgnoredDuringExecution") or []:
        term = preferred["podAffinityTerm"]
        total += preferred["weight"] * _peers(cluster, pod, node, term)
    for constraint in pod.spec.get("topologySpreadConstraints") or []:
        if constraint["whenUnsatisfiable"] == "ScheduleAnyway":
            total += 100 * _peers(cluster, pod, node, constraint)
    return total


def _peers(cluster: Cluster, pod: Pod, node: Node, rule: dict[str, object]) -> int:
    key = str(rule["topologyKey"])
    selector = rule["labelSelector"]
    assert isinstance(selector, dict)
    return sum(
        1
        for other, place in cluster.pods.items()
        if place.labels.get(key) == node.labels.get(key)
        and other.namespace == pod.namespace
        and matches(selector, other.labels)
    )
