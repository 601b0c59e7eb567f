"""Small clusters for worked examples."""

from __future__ import annotations

from typing import Any

from tests.manifests.scheduler.cluster import Cluster, spread
from tests.manifests.scheduler.nodes import Node
from tests.manifests.scheduler.pods import Pod, Workload
from tests.manifests.scheduler.quantities import amounts

FOO = {"foo": "bar"}
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(name: str, zone: str = "zoneA", **more: Any) -> Node:
    labels = {"node": name, "zone": zone, "topology.kubernetes.io/zone": zone}
    labels |= more.pop("labels", {})
    room = amounts(more.pop("room", ROOM))
    return Node(name, labels, room, taints=more.pop("taints", []), **more)


def workload(name: str = "web", *, labels: dict[str, str] | None = None, **spec: Any) -> Workload:
    asked = spec.pop("requests", {})
    whole = {"containers": [{"name": "main", "resources": {"requests": asked}}], **spec}
    return Workload("Deployment", "default", name, 1, FOO if labels is None else labels, whole)


def cluster(*nodes: Node) -> Cluster:
    made = Cluster(spread)
    made.nodes += nodes
    return made


def four_nodes() -> Cluster:
    """Return the documentation's cluster: two zones of two nodes, pods on the first three."""
    made = cluster(node("node1"), node("node2"), node("node3", "zoneB"), node("node4", "zoneB"))
    for place in made.nodes[:3]:
        made.put(workload("existing").pod(0), place)
    return made


def fits(made: Cluster, pod: Pod) -> list[str]:
    return [place.name for place in made.nodes if made.why_not(pod, place) is None]


def rule(key: str, **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": FOO},
        **more,
    }
