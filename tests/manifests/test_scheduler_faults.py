"""Faults put into the default deployment: each must be seen, with the pod that it stops."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.k8s.render import RenderedChart
from tests.cloudformation import Resources
from tests.manifests.scheduler.addons import Passed, passed_values
from tests.manifests.scheduler.cases import charts, configuration
from tests.manifests.scheduler.cluster import spread
from tests.manifests.scheduler.updates import roll
from tests.manifests.scheduler.world import World

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def passed(templates: dict[str, Template]) -> Passed:
    """Values of add-ons and charts in the cluster's template."""
    return passed_values(Resources(templates["cluster"]))


def broken(passed: Passed, kind: str, name: str, change: Change) -> World:
    """Return the default deployment with one object changed."""
    made: list[RenderedChart] = []
    changes = 0
    for chart in charts("default.yaml"):
        manifests = copy.deepcopy(chart.manifests)
        for manifest in manifests:
            if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name):
                change(manifest)
                changes += 1
        made.append(replace(chart, manifests=manifests))
    assert changes == 1
    return World(configuration("default.yaml"), made, passed, spread)


def pod_spec(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def no_tolerations(manifest: dict[str, Any]) -> None:
    pod_spec(manifest)["tolerations"] = []


def asks(name: str, value: str) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        pod_spec(manifest)["containers"][0]["resources"]["requests"][name] = value

    return change


def seventeen_servers(manifest: dict[str, Any]) -> None:
    manifest["spec"]["replicas"] = 17


def unknown_pool(manifest: dict[str, Any]) -> None:
    pod_spec(manifest)["nodeSelector"] = {"sonic-eks/pool": "other"}


WORKER = "sonic-worker-sonic-3"


@pytest.mark.parametrize(
    ("kind", "name", "change", "reason"),
    [
        ("Deployment", "sonic-api", no_tolerations, "does not tolerate sonic-eks/pool:NoSchedule"),
        ("Deployment", WORKER, no_tolerations, "does not tolerate nvidia.com/gpu:NoSchedule"),
        ("Deployment", "sonic-api", asks("cpu", "5"), "resources: cpu 5020 asked"),
        ("Deployment", WORKER, asks("ephemeral-storage", "2Ti"), "resources: ephemeral-storage"),
        ("Deployment", WORKER, asks("nvidia.com/gpu", "2"), "resources: nvidia.com/gpu 2 asked"),
        ("StatefulSet", "nats", seventeen_servers, "pod anti-affinity: shares no"),
        ("StatefulSet", "prometheus", unknown_pool, "node selector: wants sonic-eks/pool=other"),
    ],
)
def test_a_pod_that_fits_nowhere_is_named(
    kind: str, name: str, change: Change, reason: str, passed: Passed
) -> None:
    waiting = broken(passed, kind, name, change).why_waiting()
    assert waiting
    assert {w.workload for w in waiting} == {name}
    assert reason in str(waiting[0])
    assert str(waiting[0]).startswith(f"{name}-")


def test_a_budget_that_lets_nothing_go_holds_a_drain(passed: Passed) -> None:
    def nothing(manifest: dict[str, Any]) -> None:
        manifest["spec"]["maxUnavailable"] = 0

    found = broken(passed, "PodDisruptionBudget", "sonic-api", nothing)
    held = found.evict(found.nodes_of("serving")[0])
    assert [pod.workload.name for pod in held] == ["sonic-api"]


def test_a_surge_without_room_never_ends(passed: Passed) -> None:
    def apart(manifest: dict[str, Any]) -> None:
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": manifest["spec"]["selector"],
        }
        pod_spec(manifest)["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }

    found = broken(passed, "Deployment", "sonic-api", apart)
    found.pools = []
    (api,) = (w for w in found.workloads if w.name == "sonic-api")
    course = roll(found, api)
    assert [w.workload for w in course.stuck] == ["sonic-api"]


def test_a_startup_taint_that_nothing_removes_stops_the_workers(passed: Passed) -> None:
    found = World(configuration("default.yaml"), charts("default.yaml"), passed, spread)
    for workload in found.workloads:
        workload.removes_taint = None
    source, _ = found.groups["gpu"]
    node = found.join(source, source.zones[0])
    assert "dcgm-server" in {pod.workload.name for pod in found.cluster.on(node)}
    worker = next(w for w in found.workloads if w.name == WORKER).pod(0)
    reason = found.cluster.why_not(worker, node)
    assert reason == "taints: does not tolerate fsx.csi.aws.com/agent-not-ready:NoExecute"


def test_an_agent_without_its_tolerations_misses_the_gpu_nodes(passed: Passed) -> None:
    bare = {**passed, "addon/eks-node-monitoring-agent": {}}
    found = World(configuration("default.yaml"), charts("default.yaml"), bare, spread)
    (node, *_) = found.nodes_of("gpu")
    assert "dcgm-server" not in {pod.workload.name for pod in found.cluster.on(node)}


def test_a_drained_node_that_counts_as_empty_holds_pods_back(passed: Passed) -> None:
    def ignore_taints(manifest: dict[str, Any]) -> None:
        (constraint,) = pod_spec(manifest)["topologySpreadConstraints"]
        del constraint["nodeTaintsPolicy"]

    found = broken(passed, "Deployment", "sonic-api", ignore_taints)
    found.pools = []
    found.evict(found.nodes_of("serving")[0])
    assert "sonic-api" in {w.workload for w in found.why_waiting()}
