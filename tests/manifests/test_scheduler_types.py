"""Sizes that the configuration admits, at its limits: what it accepts has to be schedulable."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType, instance_types
from sonic_eks.errors import ConfigurationError
from tests.cloudformation import Resources
from tests.configuration import fault_of, load, with_values
from tests.manifests.scheduler.addons import Passed, addon_workloads, passed_values
from tests.manifests.scheduler.cluster import pack
from tests.manifests.scheduler.nodes import Source, managed_groups
from tests.manifests.scheduler.pods import requests_of
from tests.manifests.scheduler.world import World
from tests.synth import charts_of

CPU_TYPES = sorted(t.name for t in instance_types().values() if t.serves_cpu)
GPU_TYPES = sorted(t.name for t in instance_types().values() if t.serves_sonic)
MIB = 2**20


@pytest.fixture(scope="module")
def passed(templates: dict[str, Template]) -> Passed:
    """Values of add-ons and charts in the cluster's template."""
    return passed_values(Resources(templates["cluster"]))


def left_over(source: Source, passed: Passed) -> tuple[int, int, int]:
    """Return millicores, MiB and pods that a node of a group has beside its DaemonSets."""
    node = source.node(source.zones[0])
    room = node.allocatable
    for workload in addon_workloads(passed)[0]:
        if source.labels["sonic-eks/pool"] in workload.covers:
            room = room.copy()
            room.subtract(requests_of(workload.spec))
    return room["cpu"], room["memory"] // MIB, room["pods"]


Asking = Callable[[int], dict[str, Any]]


def largest(asking: Asking, folder: Path) -> int:
    """Return the largest value that the configuration accepts, as its refusals name it."""
    given = 10**9
    while True:
        try:
            load(asking(given), folder)
        except ConfigurationError:
            fault = fault_of(asking(given), folder)
            named = int(re.findall(r"allowed: .*?(?:at most| to) (\d+)", fault)[0])
            assert named < given
            given = named
        else:
            return given


# A worker's pod is one container; the largest that is admitted fits beside the agents, once for
# each GPU of a node.
@pytest.mark.parametrize("name", GPU_TYPES)
def test_the_largest_worker_fits_every_gpu_type(name: str, passed: Passed, tmp_path: Path) -> None:
    gpu_type = ("nodes.gpu.instanceType", name)

    def asking(key: str) -> Asking:
        return lambda value: with_values(gpu_type, ("models", [{key: value}]))

    cpu = largest(asking("cpuMillicores"), tmp_path)
    memory = largest(asking("memoryMib"), tmp_path)
    free = left_over(managed_groups(load(with_values(gpu_type), tmp_path))["gpu"][0], passed)
    gpus = instance_types()[name].gpus
    assert gpus * cpu <= free[0]
    assert gpus * memory <= free[1]
    assert gpus <= free[2]


# Requests of a NATS server and of the license proxy, which may share the node (k8s/nats.py and
# k8s/sonic/license_proxy.py): 250m and 512 MiB, 100m and 256 MiB.
BESIDE = (350, 768)


@pytest.mark.parametrize("name", CPU_TYPES)
def test_the_largest_api_pods_fit_every_serving_type(
    name: str, passed: Passed, tmp_path: Path
) -> None:
    small = (
        ("nodes.serving.instanceType", name),
        ("api.cpuMillicores", 100),
        ("api.memoryMib", 128),
    )

    def asking(key: str) -> Asking:
        return lambda value: with_values(*small, (f"api.{key}", value))

    cpu = largest(asking("cpuMillicores"), tmp_path)
    memory = largest(asking("memoryMib"), tmp_path)
    config = load(with_values(*small), tmp_path)
    free = left_over(managed_groups(config)["serving"][0], passed)
    assert cpu <= free[0] - BESIDE[0]
    assert memory <= free[1] - BESIDE[1]


def _smallest(kinds: list[InstanceType]) -> list[str]:
    """Return the types with the fewest vCPUs and, of these, with the least memory."""
    least = min(t.vcpus for t in kinds)
    memory = min(t.memory_mib for t in kinds if t.vcpus == least)
    return [t.name for t in kinds if (t.vcpus, t.memory_mib) == (least, memory)]


def admitted(names: list[str], folder: Path) -> list[InstanceType]:
    """Return the types that system nodes may have."""
    found = []
    for name in names:
        try:
            load(with_values(("nodes.system.instanceType", name)), folder)
        except ConfigurationError:
            continue
        found.append(instance_types()[name])
    return found


def test_one_of_the_smallest_system_nodes_holds_all_controllers(
    passed: Passed, tmp_path: Path
) -> None:
    smallest = _smallest(admitted(CPU_TYPES, tmp_path))
    assert smallest == ["c6a.xlarge", "c6i.xlarge", "c7a.xlarge", "c7i.xlarge"]
    config = load(with_values(("nodes.system.instanceType", smallest[0])), tmp_path)
    charts = charts_of(config)
    for index in range(2):
        found = World(config, charts, passed, pack)
        assert found.evict(found.cluster.nodes[index]) == []
        assert {w.workload for w in found.why_waiting()} <= {"karpenter", "prometheus"}


@pytest.mark.parametrize("name", ["m7i.large", "c7i.large"])
def test_a_type_that_cannot_hold_all_controllers_is_refused(name: str, tmp_path: Path) -> None:
    fault = fault_of(with_values(("nodes.system.instanceType", name)), tmp_path)
    assert fault.startswith(
        f"nodes.system.instanceType: got '{name}'; allowed: a type with 4 vCPUs or more"
    )
    assert fault.endswith(f"nearest: {name.split('.', maxsplit=1)[0]}.xlarge")


def test_the_default_api_does_not_fit_the_smallest_serving_type(tmp_path: Path) -> None:
    # c7i.large: 4,096 x 0.925 = 3,788 MiB, less 3 x 9 + 2 = 29 addresses of 11 MiB, 355,
    # 1,300 and 64 of the gate.
    fault = fault_of(with_values(("nodes.serving.instanceType", "c7i.large")), tmp_path)
    assert fault == (
        "api.memoryMib: got 2048; allowed: at most 1750, what is left of a c7i.large"
        " (nodes.serving.instanceType); nearest: 1750"
    )


# --- System nodes and the disk of Prometheus ----------------------------------------------------

THREE = ("network.zones", ["us-east-1a", "us-east-1b", "us-east-1c"])


def test_system_nodes_are_one_a_zone_unless_given(tmp_path: Path) -> None:
    assert load(with_values(), tmp_path).system_nodes == 2
    assert load(with_values(THREE), tmp_path).system_nodes == 3
    assert load(with_values(THREE, ("nodes.system.size", 5)), tmp_path).system_nodes == 5


def test_a_zone_without_a_system_node_is_refused(tmp_path: Path) -> None:
    fault = fault_of(with_values(THREE, ("nodes.system.size", 2)), tmp_path)
    assert fault.startswith("nodes.system.size: got 2; allowed: at least 3, one for each of")


def test_what_a_zone_without_a_system_node_would_do(passed: Passed, tmp_path: Path) -> None:
    # The rule above is there because of this: two nodes in three zones.
    config = load(with_values(THREE), tmp_path)
    nodes = config.nodes.model_copy(
        update={"system": config.nodes.system.model_copy(update={"size": 2})}
    )
    two: Configuration = config.model_copy(update={"nodes": nodes})
    found = World(two, charts_of(config), passed, pack)
    (prometheus,) = (p for p in found.cluster.pods if p.workload.name == "prometheus")
    node = found.cluster.pods[prometheus]
    found.evict(node)
    found.leave(node)
    source, _ = found.groups["system"]
    zones = list(found.replacement_zones(source))
    assert len(zones) == 2
    found.join(source, next(zone for zone in zones if zone != node.zone))
    found.place()
    (waiting,) = found.why_waiting()
    assert waiting.workload == "prometheus"
    assert f"is in {node.zone}" in str(waiting)
