"""Order of creation and deletion across stacks, rule by rule, each with what breaks it."""

from __future__ import annotations

import re

import pytest

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.stacks.deployment import Stacks
from tests.synth import ROOT, charts_of, stacks_of
from tests.template.dependency_graph import CHART, MANIFEST, DependencyGraph, Node
from tests.template.order_rules import (
    RULES,
    Rule,
    chart,
    node_pool_goes_before_its_class_and_both_before_karpenter,
)

# Kubernetes 1.35, kubectl, "apply --prune": the kinds that it deletes without an allow-list.
PRUNED = {
    "ConfigMap", "CronJob", "DaemonSet", "Deployment", "Endpoints", "Ingress", "Job", "Namespace",
    "PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicaSet", "ReplicationController",
    "Secret", "Service", "StatefulSet",
}  # fmt: skip
# What may stay behind when its pods are gone: nothing runs under it.
INERT = {
    "ClusterRole", "ClusterRoleBinding", "PriorityClass", "Role", "RoleBinding", "ServiceAccount",
    "StorageClass",
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(stacks: Stacks) -> DependencyGraph:
    """The graph of config/default.yaml."""
    return DependencyGraph.of(stacks)


@pytest.fixture(scope="module", params=("production", "isolated", "existing-vpc", "standalone"))
def variant(request: pytest.FixtureRequest) -> DependencyGraph:
    """The graph of another shipped configuration."""
    path = ROOT / "config" / f"{request.param}.yaml"
    return DependencyGraph.of(stacks_of(load_configuration(path)))


def violations(graph: DependencyGraph, check: Rule) -> list[tuple[Node, Node]]:
    """Return the pairs of a rule that the graph does not order."""
    return [pair for pair in check(graph) if not graph.is_after(*pair)]


def names(check: Rule) -> str:
    """Return the name of a rule, as the id of its test."""
    return check.__name__


@pytest.mark.parametrize("check", RULES, ids=names)
def test_rule_holds(graph: DependencyGraph, check: Rule) -> None:
    assert list(check(graph))
    assert violations(graph, check) == []


@pytest.mark.slow
@pytest.mark.parametrize("check", RULES, ids=names)
def test_rule_holds_in_every_variant(variant: DependencyGraph, check: Rule) -> None:
    assert list(check(variant))
    assert violations(variant, check) == []


@pytest.mark.parametrize("check", RULES, ids=names)
def test_rule_notices_a_missing_dependency(graph: DependencyGraph, check: Rule) -> None:
    for pair in set(check(graph)):
        later, earlier = pair
        direct, order = graph.direct[later], graph.order[later.stack]
        graph.cut(later, earlier)
        try:
            assert pair in violations(graph, check)
        finally:
            graph.direct[later], graph.order[later.stack] = direct, order


def test_rule_notices_a_reversed_dependency(stacks: Stacks) -> None:
    graph = DependencyGraph.of(stacks)
    (pair, *_) = node_pool_goes_before_its_class_and_both_before_karpenter(graph)
    pool, node_class = pair
    graph.direct[pool], graph.direct[node_class] = set(), {pool.id}
    assert pair in violations(graph, node_pool_goes_before_its_class_and_both_before_karpenter)


def test_nothing_waits_for_itself(graph: DependencyGraph, stacks: Stacks) -> None:
    assert graph.cycles() == []
    broken = DependencyGraph.of(stacks)
    pool = broken.objects("NodePool")[0][0]
    guard = broken.one("Custom::NodeGuard")
    broken.direct[guard] = {pool.id}
    assert {guard.id, pool.id} <= set(broken.cycles())


def test_charts_are_ready_before_what_follows_and_end_within_the_handlers_time(
    graph: DependencyGraph,
) -> None:
    nodes = graph.of_type(CHART)
    assert len(nodes) >= 5
    for node in nodes:
        properties = graph.stacks[node.stack].properties(node.id)
        assert properties["Wait"] is True
        assert 0 < int(properties["Timeout"].removesuffix("s")) <= 900 - 120


def test_no_object_stays_behind_when_it_leaves_its_chart(graph: DependencyGraph) -> None:
    """A resource of several objects holds only kinds that kubectl prunes, or that do nothing."""
    shared = 0
    for node in graph.of_type(MANIFEST):
        properties = graph.stacks[node.stack].properties(node.id)
        objects = [manifest for other, manifest in graph.objects() if other == node]
        assert ("PruneLabel" in properties) or len(objects) == 1
        if "PruneLabel" in properties:
            shared += 1
            assert {manifest["kind"] for manifest in objects} <= PRUNED | INERT
    assert shared >= 5


def test_every_object_is_applied_once_and_as_rendered(
    graph: DependencyGraph, default_config: Configuration
) -> None:
    def key(manifest: dict) -> tuple[str, str, str]:  # type: ignore[type-arg]
        metadata = manifest["metadata"]
        # An id that is known after a deployment: a marker, or a reference to another stack.
        name = re.sub(r"<<[\w:-]+>>|out-sonic-\w+-\w+", "ID", metadata["name"])
        return manifest["kind"], metadata.get("namespace", ""), name

    rendered = {key(m): m for chart in charts_of(default_config) for m in chart.manifests}
    applied = [(node, m) for node, m in graph.objects() if node.stack == "workload"]
    assert sorted(key(m) for _, m in applied) == sorted(rendered)
    for _, manifest in applied:
        labels = {
            name: value
            for name, value in manifest["metadata"]["labels"].items()
            if not name.startswith("aws.cdk.eks/prune-")
        }
        assert labels == rendered[key(manifest)]["metadata"]["labels"]
        assert manifest.keys() == rendered[key(manifest)].keys()


def test_a_node_class_can_go_without_calling_iam(graph: DependencyGraph) -> None:
    """Karpenter's finalizer of an EC2NodeClass cleans up instance profiles, which takes IAM.

    It leaves that out with ``isolatedVPC`` (aws/karpenter-provider-aws, pull request 8617); IAM
    has no endpoint in a VPC, so otherwise the class would never go.
    """
    values = graph.stacks["cluster"].properties(chart(graph, "karpenter").id)["Values"]
    assert '"isolatedVPC":true' in values.replace(" ", "")
    for _, node_class in graph.objects("EC2NodeClass"):
        assert node_class["spec"]["instanceProfile"]
        assert "role" not in node_class["spec"]


def test_the_guard_may_look_and_nothing_else(graph: DependencyGraph) -> None:
    workload = graph.stacks["workload"]
    (role,) = workload.of("AWS::IAM::Role")
    statements = [
        statement
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    actions = {a for s in statements for a in [s["Action"]] if isinstance(a, str)}
    actions |= {a for s in statements if isinstance(s["Action"], list) for a in s["Action"]}
    assert actions == {"ec2:DescribeInstances", "logs:CreateLogStream", "logs:PutLogEvents"}
    assert "ManagedPolicyArns" not in role
    (function,) = workload.of("AWS::Lambda::Function")
    # AWS Lambda quotas: code in a template is at most 4,096 characters, a run 15 minutes.
    assert len(function["Code"]["ZipFile"]) <= 4096
    assert function["Timeout"] == 900
    (guard,) = workload.of("Custom::NodeGuard")
    assert 900 < int(guard["ServiceTimeout"]) <= 3600
    assert guard["ClusterName"] == "sonic"
