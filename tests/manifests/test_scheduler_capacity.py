"""What pods take: resources, disks, priority, budgets and rollouts, by worked examples.

Each rule also has a pod that breaks it, which must be named with the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.scheduler.cluster import Cluster, pack, spread
from tests.manifests.scheduler.examples import cluster, fits, node, workload
from tests.manifests.scheduler.pods import Budget, Rollout, requests_of, rollout_of
from tests.manifests.scheduler.quantities import amounts, quantity

# --- Resources ----------------------------------------------------------------------------------


def test_quantities() -> None:
    assert quantity("250m") * 1000 == 250
    assert quantity("1.5Gi") == 3 * 2**29
    assert quantity("20M") == 20_000_000
    assert amounts({"cpu": "0.1", "memory": "1Ki", "nvidia.com/gpu": 1}) == {
        "cpu": 100,
        "memory": 1024,
        "nvidia.com/gpu": 1,
    }


def test_sidecars_count_beside_containers_and_init_containers_before_them() -> None:
    # KEP-753, "Resources calculation for scheduling and pod admission".
    def container(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    sidecar = container("1", restartPolicy="Always")
    spec: dict[str, Any] = {
        "initContainers": [sidecar, container("4")],
        "containers": [container("2")],
    }
    assert requests_of(spec)["cpu"] == 5000
    spec = {"initContainers": [container("4"), sidecar], "containers": [container("2")]}
    assert requests_of(spec)["cpu"] == 4000
    spec = {"initContainers": [sidecar], "containers": [container("2")], "overhead": {"cpu": "1"}}
    assert requests_of(spec)["cpu"] == 4000
    assert requests_of(spec)["pods"] == 1


def test_a_limit_without_a_request_is_the_request() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1"}}}
    assert requests_of({"containers": [container]}) == {"cpu": 2000, "memory": 1, "pods": 1}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"cpu": "4001m"}, "resources: cpu 4001 asked, 4000 free"),
        ({"memory": "9Gi"}, "resources: memory 9663676416 asked, 8589934592 free"),
        ({"nvidia.com/gpu": 1}, "resources: nvidia.com/gpu 1 asked, 0 free"),
        ({"ephemeral-storage": "1"}, "resources: ephemeral-storage 1 asked, 0 free"),
    ],
)
def test_a_pod_that_is_too_large_is_named(asked: dict[str, Any], reason: str) -> None:
    made = cluster(node("node1"))
    pod = workload(requests=asked).pod(0)
    assert made.schedule([pod]) == [pod]
    assert made.reasons(pod) == {"node1": reason}


def test_pods_run_out_and_terminating_ones_hold_their_room() -> None:
    made = cluster(node("node1", room={"cpu": "2", "memory": "1Gi", "pods": "2"}))
    first, second, third = (workload(requests={"cpu": "1"}).pod(0) for _ in range(3))
    assert made.schedule([first, second, third]) == [third]
    assert made.reasons(third)["node1"].startswith("resources: cpu")
    made.terminating.add(first)
    assert made.schedule([third]) == [third]
    made.remove(first)
    assert made.schedule([third]) == []
    assert made.reasons(workload().pod(0)) == {"node1": "resources: pods 1 asked, 0 free"}


# --- Volumes, priority, budgets, rollouts -------------------------------------------------------


def test_a_disk_binds_to_the_first_zone_and_stays_there() -> None:
    made = cluster(node("node1"), node("node2", "zoneB"))
    stateful = workload("db")
    stateful.kind, stateful.claim_templates = "StatefulSet", ("default/data",)
    pod = stateful.pod(0)
    made.put(pod, made.nodes[1])
    made.remove(pod)
    made.nodes.pop()
    again = stateful.replacement(pod)
    assert made.schedule([again]) == [again]
    reason = "volume zone: the disk of default/data-db-0 is in zoneB"
    assert made.reasons(again) == {"node1": reason}
    other = stateful.pod(1)
    assert fits(made, other) == ["node1"], "another pod of the set has a disk of its own"


def test_a_more_important_pod_displaces_the_least_that_makes_room() -> None:
    made = cluster(node("node1"))
    spare, small = workload("spare", requests={"cpu": "3"}), workload("s", requests={"cpu": "1"})
    spare.priority = -10
    assert made.schedule([spare.pod(0), small.pod(0)]) == []
    urgent = workload("urgent", requests={"cpu": "2"}).pod(0)
    waiting = made.schedule([urgent])
    assert [pod.workload.name for pod in waiting] == ["spare"]
    assert sorted(pod.workload.name for pod in made.pods) == ["s", "urgent"]
    equal = workload("equal", requests={"cpu": "2"}).pod(0)
    assert made.schedule([equal]) == [equal], "none is less important"
    assert made.free(made.nodes[0])["cpu"] == 1000


def test_packing_and_spreading_choose_opposite_nodes() -> None:
    for order, expected in ((spread, "node2"), (pack, "node1")):
        made = Cluster(order)
        made.nodes += [node("node1"), node("node2")]
        made.put(workload(requests={"cpu": "1"}).pod(0), made.nodes[0])
        pod = workload(requests={"cpu": "1"}).pod(0)
        assert made.schedule([pod]) == []
        assert made.pods[pod].name == expected


@pytest.mark.parametrize(
    ("budget", "expected", "healthy", "allowed"),
    [
        # "Specifying a Disruption Budget": of 7 pods, 50 % must be available: 4.
        ({"min_available": "50%"}, 7, 5, True),
        ({"min_available": "50%"}, 7, 4, False),
        # Of 7 pods, 30 % may be unavailable: 3, rounded up.
        ({"max_unavailable": "30%"}, 7, 5, True),
        ({"max_unavailable": "30%"}, 7, 4, False),
        ({"max_unavailable": 1}, 3, 3, True),
        ({"max_unavailable": 1}, 3, 2, False),
        ({"max_unavailable": 0}, 3, 3, False),
    ],
)
def test_budgets(budget: dict[str, Any], expected: int, healthy: int, allowed: bool) -> None:
    assert Budget("default", {}, **budget).allows(expected, healthy) is allowed


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        # "Deployments", rolling update: of 10, 30 % up and 30 % down; the defaults are 25 %.
        (
            10,
            {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "30%"}},
            Rollout(3, 3),
        ),
        (2, None, Rollout(1, 0)),
        (4, None, Rollout(1, 1)),
        (3, {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, Rollout(1, 0)),
        (3, {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "10%"}}, Rollout(0, 1)),
        (1, {"type": "Recreate"}, Rollout(0, 1, recreate=True)),
    ],
)
def test_rollouts(replicas: int, strategy: dict[str, Any] | None, expected: Rollout) -> None:
    assert rollout_of("Deployment", replicas, strategy) == expected
