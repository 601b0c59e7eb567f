"""The control plane and what may reach it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.cloudformation import ACCOUNT, Resources
from tests.iam_evaluator import Decision, Request, evaluate
from tests.synth import ROOT, changed, stacks_of

EXPECTED = yaml.safe_load((ROOT / "tests/expected/cluster.yaml").read_text())
CLUSTER = "AWS::EKS::Cluster"
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/platform-admin"


@pytest.fixture(scope="module")
def resources(templates: dict[str, Template]) -> Resources:
    return Resources(templates["cluster"])


@pytest.fixture(scope="module")
def configured(default_config: Configuration) -> Resources:
    config = changed(
        default_config,
        deployment={"account": ACCOUNT, "terminationProtection": True},
        scaling={"acceptAssumedCapacity": True},
        cluster={
            "adminRoleArns": [ADMIN],
            "serviceCidr": "172.30.0.0/16",
            "logRetentionDays": 30,
        },
        network={"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
    )
    return Resources(Template.from_stack(stacks_of(config).cluster))


def cluster_of(resources: Resources) -> dict[str, Any]:
    (cluster,) = resources.of(CLUSTER)
    return cluster


def handler_policy(resources: Resources) -> list[dict[str, Any]]:
    """Return the inline policies of the role of CDK's kubectl handler."""
    (handler,) = (
        function
        for function in resources.of("AWS::Lambda::Function")
        if "kubectl" in function.get("Description", "")
    )
    role = resources.properties(handler["Role"].removeprefix("att-").removesuffix("-Arn"))
    return [policy["PolicyDocument"] for policy in role["Policies"]]


def test_the_endpoint_is_private(resources: Resources) -> None:
    vpc = cluster_of(resources)["ResourcesVpcConfig"]
    assert vpc["EndpointPrivateAccess"] is True
    assert vpc["EndpointPublicAccess"] is False


def test_interfaces_lie_in_every_system_zone(resources: Resources, configured: Resources) -> None:
    assert len(set(cluster_of(resources)["ResourcesVpcConfig"]["SubnetIds"])) == 2
    assert len(set(cluster_of(configured)["ResourcesVpcConfig"]["SubnetIds"])) == 3


def test_secrets_are_encrypted_with_a_key_that_rotates(resources: Resources) -> None:
    (encryption,) = cluster_of(resources)["EncryptionConfig"]
    assert encryption["Resources"] == ["secrets"]
    key = encryption["Provider"]["KeyArn"].removeprefix("att-").removesuffix("-Arn")
    assert resources.properties(key)["EnableKeyRotation"] is True


def test_every_log_goes_to_a_group_that_forgets(
    resources: Resources, configured: Resources
) -> None:
    for stack, days in ((resources, 90), (configured, 30)):
        enabled = cluster_of(stack)["Logging"]["ClusterLogging"]["EnabledTypes"]
        assert sorted(log["Type"] for log in enabled) == EXPECTED["control_plane_logs"]
        groups = stack.by("AWS::Logs::LogGroup", "LogGroupName")
        assert groups["/aws/eks/sonic/cluster"]["RetentionInDays"] == days
        assert {group["RetentionInDays"] for group in groups.values()} == {days}
        # EKS would make the group itself, and keep it for ever, if it came first.
        (cluster,) = stack.ids(CLUSTER)
        ids = stack.id_by("AWS::Logs::LogGroup", "LogGroupName")
        assert ids["/aws/eks/sonic/cluster"] in stack.needs(cluster)


def test_no_log_group_or_key_outlives_the_stack(templates: dict[str, Template]) -> None:
    resources = templates["cluster"].to_json()["Resources"]
    assert {
        name: resource["DeletionPolicy"]
        for name, resource in resources.items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    } == {}


def test_uninstalls_leave_no_logs_behind(resources: Resources) -> None:
    """A function that runs after its log group is gone makes a new one, kept for ever."""
    (cluster_logs,) = (
        name
        for name in resources.ids("AWS::Logs::LogGroup")
        if resources.properties(name)["LogGroupName"].startswith("/aws/eks/")
    )
    functions = set(resources.ids("AWS::Logs::LogGroup")) - {cluster_logs}
    assert len(functions) == 2
    for kind in ("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource"):
        for custom in resources.ids(kind):
            assert functions <= resources.needs(custom)


def test_access_is_by_entries_of_named_roles(resources: Resources, configured: Resources) -> None:
    for stack in (resources, configured):
        access = cluster_of(stack)["AccessConfig"]
        assert access == {
            "AuthenticationMode": "API",
            "BootstrapClusterCreatorAdminPermissions": False,
        }

    def administrators(stack: Resources) -> set[str]:
        policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
        return {
            entry["PrincipalArn"]
            for entry in stack.of("AWS::EKS::AccessEntry")
            for granted in entry.get("AccessPolicies", [])
            if granted == {"PolicyArn": policy, "AccessScope": {"Type": "cluster"}}
        }

    (handler,) = administrators(resources)
    assert handler.startswith("att-"), "CDK's kubectl handler alone"
    assert administrators(configured) == {handler, ADMIN}


def test_configuration_reaches_the_cluster(resources: Resources, configured: Resources) -> None:
    default, other = cluster_of(resources), cluster_of(configured)
    assert default["Name"] == other["Name"] == "sonic"
    assert default["Version"] == "1.35"
    assert default["DeletionProtection"] is False
    assert other["DeletionProtection"] is True
    assert other["KubernetesNetworkConfig"]["ServiceIpv4Cidr"] == "172.30.0.0/16"
    # Every add-on is managed, so EKS must not install its own first.
    assert default["BootstrapSelfManagedAddons"] is False
    assert default["ComputeConfig"] == {"Enabled": False}


def test_only_lustre_is_let_in(resources: Resources, templates: dict[str, Template]) -> None:
    network = Resources(templates["network"])
    rules = resources.of("AWS::EC2::SecurityGroupIngress")
    gpu_subnets = {
        subnet["CidrBlock"]
        for name in network.ids("AWS::EC2::Subnet")
        for subnet in [network.properties(name)]
        if any("gpu" in str(tag["Value"]).lower() for tag in subnet["Tags"])
    }
    assert {rule["CidrIp"] for rule in rules} == gpu_subnets
    assert len(gpu_subnets) == 1
    assert [[rule["FromPort"], rule["ToPort"]] for rule in rules] == EXPECTED["lustre_ports"]
    assert {rule["IpProtocol"] for rule in rules} == {"tcp"}
    for group in resources.of("AWS::EC2::SecurityGroup"):
        assert "SecurityGroupIngress" not in group
        assert all(rule["CidrIp"] != "0.0.0.0/0" for rule in group["SecurityGroupEgress"])


def test_kubectl_runs_inside_the_vpc(resources: Resources) -> None:
    subnets = set(cluster_of(resources)["ResourcesVpcConfig"]["SubnetIds"])
    for function in resources.of("AWS::Lambda::Function"):
        assert set(function["VpcConfig"]["SubnetIds"]) == subnets
    (handler,) = (
        f for f in resources.of("AWS::Lambda::Function") if "kubectl" in f.get("Description", "")
    )
    # An interface endpoint serves the regional name of STS alone.
    assert handler["Environment"]["Variables"]["AWS_STS_REGIONAL_ENDPOINTS"] == "regional"


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("eks:DescribeCluster", f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/sonic", True),
        ("eks:DescribeCluster", f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/other", False),
        ("eks:DeleteCluster", f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/sonic", False),
        ("ecr:GetAuthorizationToken", "*", True),
        ("ecr:BatchGetImage", "repository/sonic/charts/keda", True),
        ("ecr:GetDownloadUrlForLayer", "repository/sonic/charts/karpenter-crd", True),
        ("ecr:BatchGetImage", "repository/sonic/images/sonic-api", False),
        ("ecr:BatchGetImage", "repository/other/charts/keda", False),
        ("ecr:PutImage", "repository/sonic/charts/keda", False),
        ("ecr-public:GetAuthorizationToken", "*", False),
    ],
)
def test_the_kubectl_handler_pulls_charts_and_no_more(
    resources: Resources, action: str, resource: str, allowed: bool
) -> None:
    if resource.startswith("repository/"):
        resource = f"arn:aws:ecr:us-east-1:{ACCOUNT}:{resource}"
    decision = evaluate(handler_policy(resources), Request(action, resource))
    assert (decision is Decision.ALLOW) is allowed


def test_what_comes_later_finds_the_cluster(templates: dict[str, Template]) -> None:
    outputs = templates["cluster"].to_json()["Outputs"]
    assert {
        "ClusterSecurityGroupId", "ClusterName", "ClusterEndpoint", "PlacementGroupId"
    } <= outputs.keys()  # fmt: skip
    command = Resources(templates["cluster"]).resolve(outputs["KubeconfigCommand"]["Value"])
    assert command.startswith("aws eks update-kubeconfig --name ")
    assert command.endswith(" --region us-east-1")


@pytest.mark.slow
def test_the_api_is_reached_from_where_the_configuration_says(
    default_config: Configuration, resources: Resources
) -> None:
    ranges = ["10.200.0.0/16", "192.168.5.0/24"]
    config = changed(default_config, cluster={"apiClientCidrs": ranges})
    found = Resources(Template.from_stack(stacks_of(config).cluster))
    group_id = cluster_of(found)["ResourcesVpcConfig"]["SecurityGroupIds"]

    def admitted(stack: Resources) -> list[tuple[Any, Any, Any, Any]]:
        return [
            (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], rule["CidrIp"])
            for group in stack.of("AWS::EC2::SecurityGroup")
            if group["GroupDescription"].startswith("EKS control plane")
            for rule in group.get("SecurityGroupIngress", [])
        ]

    assert len(group_id) == 1
    assert admitted(found) == [("tcp", 443, 443, cidr) for cidr in ranges]
    assert admitted(resources) == []
