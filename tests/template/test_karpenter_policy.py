"""What Karpenter's controller may do: its own document, and concrete requests."""

from __future__ import annotations

from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_iam as iam

from sonic_eks.constructs.karpenter_policy import KarpenterStatements
from tests.cloudformation import iam_size
from tests.iam_evaluator import Decision, Request, evaluate
from tests.synth import ROOT

# IAM quotas ("IAM and AWS STS quotas"): characters of a managed policy, without white space.
MAX_MANAGED_POLICY = 6144

NODE_ROLE = "arn:aws:iam::111122223333:role/voice-node"
CLUSTER = "arn:aws:eks:us-east-1:111122223333:cluster/voice"
QUEUE = "arn:aws:sqs:us-east-1:111122223333:voice-karpenter"
EC2 = "arn:aws:ec2:us-east-1:111122223333"
INSTANCE = f"{EC2}:instance/i-0123456789abcdef0"


def documents(
    name: str = "voice", partition: str = "aws", region: str = "us-east-1"
) -> list[dict[str, Any]]:
    """Return the two policies as IAM gets them."""
    statements = KarpenterStatements(cluster_name=name, partition=partition, region=region)
    stack = cdk.Stack(cdk.App(), "S")
    integration = statements.integration(
        node_role_arn=NODE_ROLE, cluster_arn=CLUSTER, queue_arn=QUEUE
    )
    return [
        stack.resolve(iam.PolicyDocument(statements=group))
        for group in (statements.node_lifecycle(), integration)
    ]


@cache
def voice() -> list[dict[str, Any]]:
    """Return the policies of the cluster voice."""
    return documents()


def decide(action: str, resource: str, **context: Any) -> Decision:
    """Decide on a request of the controller of the cluster voice."""
    return evaluate(voice(), Request(action, resource, context.get("context", {})))


def request_tags(cluster: str = "voice", **changes: str | None) -> dict[str, Any]:
    """Return the request tags that Karpenter sends, with changes."""
    tags: dict[str, str | None] = {
        f"aws:RequestTag/kubernetes.io/cluster/{cluster}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": cluster,
        "aws:RequestTag/karpenter.sh/nodepool": "gpu-burst",
    }
    tags |= {f"aws:RequestTag/{key}": value for key, value in changes.items()}
    return {key: value for key, value in tags.items() if value is not None}


def resource_tags(cluster: str = "voice") -> dict[str, str]:
    """Return the tags of a resource that Karpenter made."""
    return {
        f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned",
        "aws:ResourceTag/karpenter.sh/nodepool": "gpu-burst",
    }


def test_statements_are_karpenters_own() -> None:
    expected = yaml.safe_load((ROOT / "tests/expected/karpenter_policy.yaml").read_text())
    text = {"NODE_ROLE": NODE_ROLE, "CLUSTER": CLUSTER, "QUEUE": QUEUE}
    for statement in expected.values():
        statement["Resource"] = [text.get(r, r) for r in statement["Resource"]]
    seen = {}
    for document in voice():
        for statement in document["Statement"]:
            assert statement["Effect"] == "Allow"
            seen[statement["Sid"]] = {
                "Action": sorted(_listed(statement["Action"])),
                "Resource": sorted(_listed(statement["Resource"])),
                **({"Condition": statement["Condition"]} if "Condition" in statement else {}),
            }
    assert seen == expected


@pytest.mark.parametrize("name", ["voice", "a" * 100])
@pytest.mark.parametrize(
    ("partition", "region"),
    [
        ("aws", "us-east-1"),
        ("aws", "ap-northeast-2"),
        ("aws-us-gov", "us-gov-west-1"),
        ("aws-cn", "cn-northwest-1"),
    ],
)
def test_policies_fit_into_managed_policies(name: str, partition: str, region: str) -> None:
    for document in documents(name, partition, region):
        assert iam_size(document) <= MAX_MANAGED_POLICY


@pytest.mark.parametrize("action", ["ec2:RunInstances", "ec2:CreateFleet"])
@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:ec2:us-east-1::image/ami-1",
        "arn:aws:ec2:us-east-1::snapshot/snap-1",
        f"{EC2}:security-group/sg-1",
        f"{EC2}:subnet/subnet-1",
        f"{EC2}:capacity-reservation/cr-1",
        f"{EC2}:placement-group/voice-gpu",
    ],
)
def test_launches_with_what_is_there(action: str, resource: str) -> None:
    assert decide(action, resource) is Decision.ALLOW
    other = resource.replace("us-east-1", "us-east-2")
    assert decide(action, other) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize(
    "kind",
    [
        "fleet",
        "instance",
        "volume",
        "network-interface",
        "launch-template",
        "spot-instances-request",
    ],
)
def test_launches_only_what_carries_the_clusters_tags(kind: str) -> None:
    resource = f"{EC2}:{kind}/*"
    assert decide("ec2:RunInstances", resource, context=request_tags()) is Decision.ALLOW
    for wrong in (
        {},
        request_tags("other"),
        request_tags(**{"eks:eks-cluster-name": "other"}),
        request_tags(**{"eks:eks-cluster-name": None}),
        request_tags(**{"karpenter.sh/nodepool": None}),
        request_tags(**{"kubernetes.io/cluster/voice": "shared"}),
    ):
        assert decide("ec2:RunInstances", resource, context=wrong) is Decision.IMPLICIT_DENY


def test_uses_only_its_own_launch_templates() -> None:
    template = f"{EC2}:launch-template/lt-1"
    assert decide("ec2:CreateFleet", template, context=resource_tags()) is Decision.ALLOW
    assert decide("ec2:CreateFleet", template, context=resource_tags("x")) is Decision.IMPLICIT_DENY
    assert decide("ec2:CreateFleet", template) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize("action", ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"])
def test_ends_only_its_own_nodes(action: str) -> None:
    resource = INSTANCE if "Instances" in action else f"{EC2}:launch-template/lt-1"
    assert decide(action, resource, context=resource_tags()) is Decision.ALLOW
    # A managed node group's instance has the cluster's tag, but no NodePool.
    managed = {"aws:ResourceTag/kubernetes.io/cluster/voice": "owned"}
    for context in ({}, managed, resource_tags("other"), resource_tags("voice-eu")):
        assert decide(action, resource, context=context) is Decision.IMPLICIT_DENY


def test_tags_only_while_creating_and_only_three_keys_later() -> None:
    volume = f"{EC2}:volume/vol-1"
    creating = {**request_tags(), "ec2:CreateAction": "CreateFleet"}
    assert decide("ec2:CreateTags", volume, context=creating) is Decision.ALLOW
    later = {**request_tags(), "ec2:CreateAction": "CreateVolume"}
    assert decide("ec2:CreateTags", volume, context=later) is Decision.IMPLICIT_DENY
    assert decide("ec2:CreateTags", volume, context=request_tags()) is Decision.IMPLICIT_DENY

    def retag(keys: list[str], **more: str) -> Decision:
        context = {**resource_tags(), "aws:TagKeys": keys, **more}
        return decide("ec2:CreateTags", INSTANCE, context=context)

    assert retag(["Name", "karpenter.sh/nodeclaim"]) is Decision.ALLOW
    assert retag(["Name", "owner"]) is Decision.IMPLICIT_DENY
    assert retag(["karpenter.sh/nodepool"]) is Decision.IMPLICIT_DENY
    name = "eks:eks-cluster-name"
    assert retag([name], **{f"aws:RequestTag/{name}": "voice"}) is Decision.ALLOW
    assert retag([name], **{f"aws:RequestTag/{name}": "other"}) is Decision.IMPLICIT_DENY


def test_passes_only_the_node_role_and_only_to_ec2() -> None:
    def to(service: str) -> dict[str, Any]:
        return {"context": {"iam:PassedToService": service}}

    assert decide("iam:PassRole", NODE_ROLE, **to("ec2.amazonaws.com")) is Decision.ALLOW
    assert decide("iam:PassRole", NODE_ROLE, **to("ec2.amazonaws.com.cn")) is Decision.ALLOW
    assert decide("iam:PassRole", NODE_ROLE, **to("lambda.amazonaws.com")) is Decision.IMPLICIT_DENY
    admin = "arn:aws:iam::111122223333:role/admin"
    assert decide("iam:PassRole", admin, **to("ec2.amazonaws.com")) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("eks:DescribeCluster", CLUSTER, True),
        ("eks:DescribeCluster", CLUSTER.replace("voice", "other"), False),
        ("eks:DeleteCluster", CLUSTER, False),
        ("sqs:ReceiveMessage", QUEUE, True),
        ("sqs:SendMessage", QUEUE, False),
        ("sqs:ReceiveMessage", QUEUE + "-2", False),
        ("ssm:GetParameter", "arn:aws:ssm:us-east-1::parameter/aws/service/eks/x", True),
        ("ssm:GetParameter", "arn:aws:ssm:us-east-1:111122223333:parameter/secret", False),
        ("iam:CreateInstanceProfile", "arn:aws:iam::111122223333:instance-profile/x", False),
        ("iam:AddRoleToInstanceProfile", "arn:aws:iam::111122223333:instance-profile/x", False),
        ("iam:ListInstanceProfiles", "*", False),
        ("pricing:GetProducts", "*", False),
    ],
)
def test_other_services(action: str, resource: str, allowed: bool) -> None:
    assert (decide(action, resource) is Decision.ALLOW) is allowed


def test_reads_one_region() -> None:
    here = {"aws:RequestedRegion": "us-east-1"}
    assert decide("ec2:DescribePlacementGroups", "*", context=here) is Decision.ALLOW
    there = {"aws:RequestedRegion": "eu-west-1"}
    assert decide("ec2:DescribePlacementGroups", "*", context=there) is Decision.IMPLICIT_DENY


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
