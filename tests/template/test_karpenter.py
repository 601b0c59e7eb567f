"""The AWS side of Karpenter in the template."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.k8s.render import RenderedChart
from tests.cloudformation import Resources
from tests.synth import ROOT

EXPECTED = yaml.safe_load((ROOT / "tests/expected/cluster.yaml").read_text())


@pytest.fixture(scope="module")
def resources(templates: dict[str, Template]) -> Resources:
    return Resources(templates["cluster"])


def node_role(resources: Resources) -> tuple[str, dict[str, Any]]:
    """Return logical id and properties of the role in the instance profile."""
    (profile,) = resources.of("AWS::IAM::InstanceProfile")
    (role,) = profile["Roles"]
    name = role.removeprefix("ref-")
    return name, resources.properties(name)


def test_its_nodes_may_join(resources: Resources) -> None:
    name, role = node_role(resources)
    policies = [arn.rpartition(":policy/")[2] for arn in role["ManagedPolicyArns"]]
    assert sorted(policies) == EXPECTED["node_policies"]
    entries = resources.by("AWS::EKS::AccessEntry", "PrincipalArn")
    entry = entries[f"att-{name}-Arn"]
    assert entry["Type"] == "EC2_LINUX"
    # EKS refuses all of these for that type.
    assert not {"Username", "KubernetesGroups", "AccessPolicies"} & entry.keys()


def test_its_role_is_not_that_of_managed_nodes(resources: Resources) -> None:
    name, _ = node_role(resources)
    managed = {group["NodeRole"] for group in resources.of("AWS::EKS::Nodegroup")}
    assert f"att-{name}-Arn" not in managed


def test_node_classes_name_the_instance_profile(
    resources: Resources, default_charts: tuple[RenderedChart, ...]
) -> None:
    (profile,) = resources.of("AWS::IAM::InstanceProfile")
    classes = [m for c in default_charts for m in c.manifests if m["kind"] == "EC2NodeClass"]
    assert classes
    for node_class in classes:
        assert node_class["spec"]["instanceProfile"] == profile["InstanceProfileName"]
        assert "role" not in node_class["spec"]


def test_its_nodes_join_the_placement_group_of_the_base(
    templates: dict[str, Template], resources: Resources
) -> None:
    (group,) = resources.ids("AWS::EC2::PlacementGroup")
    output = templates["cluster"].to_json()["Outputs"]["PlacementGroupId"]["Value"]
    assert output == {"Fn::GetAtt": [group, "GroupId"]}
    applied = json.dumps(
        Resources(templates["workload"]).of("Custom::AWSCDK-EKS-KubernetesResource")
    )
    selector = re.search(r'placementGroupSelector[\\":{]+id[\\":]+out-sonic-cluster-(\w+)', applied)
    assert selector
    assert "GpuPlacement" in selector.group(1)


def test_it_may_pass_that_role_and_read_that_queue(resources: Resources) -> None:
    name, _ = node_role(resources)
    (queue,) = resources.ids("AWS::SQS::Queue")
    statements = {
        statement["Sid"]: statement
        for policy in resources.of("AWS::IAM::ManagedPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
    }
    assert statements["AllowPassingInstanceRole"]["Resource"] == f"att-{name}-Arn"
    assert statements["AllowInterruptionQueueActions"]["Resource"] == f"att-{queue}-Arn"
    (cluster,) = resources.ids("AWS::EKS::Cluster")
    assert statements["AllowAPIServerEndpointDiscovery"]["Resource"] == f"att-{cluster}-Arn"


def test_the_policies_belong_to_its_controller(resources: Resources) -> None:
    policies = resources.of("AWS::IAM::ManagedPolicy")
    assert len(policies) == 2
    (association,) = (
        given
        for given in resources.of("AWS::EKS::PodIdentityAssociation")
        if given["ServiceAccount"] == "karpenter"
    )
    role = association["RoleArn"].removeprefix("att-").removesuffix("-Arn")
    for policy in policies:
        assert policy["Roles"] == [f"ref-{role}"]
        assert "ManagedPolicyName" not in policy


def test_the_interruption_queue(resources: Resources) -> None:
    (queue,) = resources.of("AWS::SQS::Queue")
    assert queue["MessageRetentionPeriod"] == 300
    assert queue["SqsManagedSseEnabled"] is True
    (policy,) = resources.of("AWS::SQS::QueuePolicy")
    statements = policy["PolicyDocument"]["Statement"]
    (deny,) = (s for s in statements if s["Effect"] == "Deny")
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert deny["Action"] == "sqs:*"
    assert deny["Principal"] == {"AWS": "*"}
    rules = {f"att-{name}-Arn" for name in resources.ids("AWS::Events::Rule")}
    senders = set()
    for statement in statements:
        if statement["Effect"] == "Allow":
            assert statement["Principal"] == {"Service": "events.amazonaws.com"}
            senders.add(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
    assert senders == rules


def test_interruptions_reach_the_queue(resources: Resources) -> None:
    (queue,) = resources.ids("AWS::SQS::Queue")
    seen = []
    for rule in resources.of("AWS::Events::Rule"):
        (source,), (detail,) = rule["EventPattern"]["source"], rule["EventPattern"]["detail-type"]
        seen.append([source, detail])
        assert rule["State"] == "ENABLED"
        assert [target["Arn"] for target in rule["Targets"]] == [f"att-{queue}-Arn"]
    assert sorted(seen) == EXPECTED["interruptions"]


def test_everything_outlives_the_controller(resources: Resources) -> None:
    """On deletion Karpenter goes first: it must still be able to end its nodes."""
    charts = resources.id_by("Custom::AWSCDK-EKS-HelmChart", "Release")
    needed = resources.needs(charts["karpenter"])
    for kind in (
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::ManagedPolicy",
        "AWS::SQS::Queue",
        "AWS::SQS::QueuePolicy",
        "AWS::Events::Rule",
        "AWS::EC2::PlacementGroup",
    ):
        assert set(resources.ids(kind)) <= needed, kind
    entries = resources.ids("AWS::EKS::AccessEntry")
    (node_access,) = (e for e in entries if resources.properties(e).get("Type") == "EC2_LINUX")
    assert node_access in needed
