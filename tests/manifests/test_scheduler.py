"""Every pod has a node: at rest, with any node away, and during every planned update."""

from __future__ import annotations

import pytest
from aws_cdk.assertions import Template

from tests.cloudformation import Resources
from tests.manifests.scheduler.addons import Passed, key_of, passed_values, typed
from tests.manifests.scheduler.cases import CASES, configuration, world
from tests.manifests.scheduler.nodes import Node
from tests.manifests.scheduler.updates import roll, update_group
from tests.manifests.scheduler.world import Waiting, World

pytestmark = pytest.mark.slow

# Which pods may wait for a node that is away, and why no stream is cut meanwhile.
MAY_WAIT = {
    # Replicas refuse to share a node. The other one leads; nodes are added without a pause.
    "system": {"karpenter": "one replica of two", "prometheus": "its disk is in the zone"},
    # Servers refuse to share a node. Two of three carry the bus; clients of the third connect to
    # them while it is in lame duck mode.
    "serving": {"nats": "one server of three"},
    # Only where no NodePool has a GPU left: the evicted worker first ends what it has, its grace
    # covers that, and the others take what is new.
    "gpu": {"sonic-worker": "no GPU until the node is back"},
}
# Runs on GPU instance types alone (tests/expected/addon_pods.yaml).
WATCHES_GPUS = {"dcgm-server"}

# While Prometheus is away the scalers hold what they have (`ignoreNullValues: "false"`, fallback
# currentReplicasIfHigher), so no pod is taken away by mistake.


@pytest.fixture(scope="module")
def passed(templates: dict[str, Template]) -> Passed:
    """Values of add-ons and charts in the cluster's template."""
    return passed_values(Resources(templates["cluster"]))


@pytest.fixture(params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    name, order = request.param
    return name, order


def important(waiting: list[Waiting]) -> list[str]:
    """Return those that wait, but for spare capacity, which is there to give way."""
    return [str(w) for w in waiting if w.pod.priority >= 0]


def unexcused(world: World, node: Node, waiting: list[Waiting]) -> list[str]:
    """Return those that wait for a node and may not."""
    excuses = dict(MAY_WAIT.get(node.group, {}))
    if any(pool.labels["sonic-eks/pool"] == "gpu" for pool in world.pools):
        excuses.pop("sonic-worker", None)
    return [
        str(w)
        for w in waiting
        if w.pod.priority >= 0
        and not any(w.workload == name or w.workload.startswith(f"{name}-") for name in excuses)
    ]


def test_every_addon_and_chart_has_its_pods_typed(passed: Passed) -> None:
    # The only chart without pods.
    assert {key_of(entry) for entry in typed()} == passed.keys() - {"chart/karpenter-crd"}


def test_every_pod_has_a_node_at_rest(case: tuple[str, str], passed: Passed) -> None:
    found = world(*case, passed)
    assert important(found.why_waiting()) == []
    assert [pod.name for pod in found.unstarted] == []


def test_every_daemon_runs_wherever_it_must(case: tuple[str, str], passed: Passed) -> None:
    found = world(*case, passed)
    for node in found.cluster.nodes:
        running = {pod.workload.name for pod in found.cluster.on(node)}
        pool = node.labels["sonic-eks/pool"]
        missing = {w.name for w in found.workloads if pool in w.covers} - running
        if not node.allocatable["nvidia.com/gpu"]:
            missing -= WATCHES_GPUS
        assert not missing, f"{node.name} lacks {missing}"


def test_every_pod_has_a_node_at_the_maximum(case: tuple[str, str], passed: Passed) -> None:
    found = world(*case, passed, at_maximum=True)
    assert important(found.why_waiting()) == []


def test_any_node_may_go_and_come_back(case: tuple[str, str], passed: Passed) -> None:
    for index, _ in enumerate(world(*case, passed).cluster.nodes):
        found = world(*case, passed)
        node = found.cluster.nodes[index]
        assert found.evict(node) == [], f"a budget holds pods on {node.name}"
        assert unexcused(found, node, found.why_waiting()) == []
        found.leave(node)
        if node.group not in found.groups:
            continue
        source, _ = found.groups[node.group]
        for zone in found.replacement_zones(source):
            again = world(*case, passed)
            same = again.cluster.nodes[index]
            again.evict(same)
            again.leave(same)
            again.join(source, zone)
            again.place()
            assert important(again.why_waiting()) == [], f"{node.zone} came back as {zone}"


def test_every_workload_can_be_rolled(case: tuple[str, str], passed: Passed) -> None:
    found = world(*case, passed)
    for workload in found.workloads:
        if workload.kind != "DaemonSet":
            course = roll(found, workload)
            assert important(course.stuck) == []
            assert len(found.of(workload)) == workload.replicas
            assert {pod.revision for pod in found.of(workload)} <= {1}


@pytest.mark.parametrize("group", ["system", "serving", "gpu"])
def test_every_node_group_can_be_updated(case: tuple[str, str], group: str, passed: Passed) -> None:
    found = world(*case, passed)
    if group not in found.groups:
        assert configuration(case[0]).topology == "standalone"
        return
    before = set(found.nodes_of(group))
    course = update_group(found, group)
    assert [pod.name for pod in course.held] == []
    assert important(course.stuck) == []
    node = next(iter(before))
    assert unexcused(found, node, course.waited) == []
    assert not before & set(found.nodes_of(group))


# Typed by hand: what waits in config/default.yaml while each node is away.
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (
            "spread",
            {
                "system-us-east-1a": ["karpenter"],
                "system-us-east-1b": ["karpenter", "prometheus"],
                "serving-us-east-1a": [],
                "gpu-us-east-1a": [],
                "gpu-burst-us-east-1a": [],
            },
        ),
        (
            "pack",
            {
                "system-us-east-1a": ["karpenter", "prometheus"],
                "system-us-east-1b": ["karpenter"],
                "serving-us-east-1a": [],
                "gpu-us-east-1a": [],
                "gpu-burst-us-east-1a": [],
            },
        ),
    ],
)
def test_what_waits_in_the_default_deployment(
    order: str, expected: dict[str, list[str]], passed: Passed
) -> None:
    seen: dict[str, list[str]] = {}
    for index, _ in enumerate(world("default.yaml", order, passed).cluster.nodes):
        found = world("default.yaml", order, passed)
        node = found.cluster.nodes[index]
        found.evict(node)
        waiting = sorted(w.workload for w in found.why_waiting() if w.pod.priority >= 0)
        assert seen.setdefault(f"{node.group}-{node.zone}", waiting) == waiting
    assert seen == expected
