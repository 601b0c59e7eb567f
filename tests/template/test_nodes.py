"""Managed node groups and their launch templates."""

from __future__ import annotations

from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.config.instances import instance_types
from sonic_eks.constructs.node_pools import ManagedNodePool, node_role
from sonic_eks.nodes.pools import Pool
from tests.cloudformation import Resources
from tests.synth import ROOT, cdk_context, changed, stacks_of

EXPECTED = yaml.safe_load((ROOT / "tests/expected/cluster.yaml").read_text())
USER_DATA = {
    True: (ROOT / "tests/expected/node_user_data_nvme.txt").read_text(),
    False: (ROOT / "tests/expected/node_user_data_plain.txt").read_text(),
}
NODE_GROUP = "AWS::EKS::Nodegroup"
TEMPLATE = "AWS::EC2::LaunchTemplate"
POOL_LABEL = "sonic-eks/pool"

# Every x86_64 type with whole GPUs of a generation that the vendor supports, by hand from the EC2
# instance type pages; the table in the package must have them all and no other family.
GPU_FAMILIES = {
    "g5", "g6", "g6e", "g7", "g7e", "gr6", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300",
}  # fmt: skip
GPU_TYPES = sorted(
    t.name for t in instance_types().values() if t.serves_sonic and t.architecture == "x86_64"
)


class Group:
    """A node group with its launch template."""

    def __init__(self, resources: Resources, name: str) -> None:
        self.name = name
        self.group = resources.properties(name)
        template = self.group["LaunchTemplate"]["Id"].removeprefix("ref-")
        self.template = resources.properties(template)["LaunchTemplateData"]
        self.root = self.template["BlockDeviceMappings"][0]["Ebs"]


def groups_of(resources: Resources) -> dict[str, Group]:
    """Return the node groups by their pool label."""
    groups = [Group(resources, name) for name in resources.ids(NODE_GROUP)]
    return {group.group["Labels"][POOL_LABEL]: group for group in groups}


@pytest.fixture(scope="module")
def resources(templates: dict[str, Template]) -> Resources:
    return Resources(templates["cluster"])


@pytest.fixture(scope="module")
def groups(resources: Resources) -> dict[str, Group]:
    return groups_of(resources)


@cache
def every_gpu_type() -> dict[str, Group]:
    """Return a node group of each GPU type, all in one stack, by instance type."""
    stack = cdk.Stack(cdk.App(context=cdk_context()), "Types")
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1")
    cluster = eks.Cluster.from_cluster_attributes(stack, "Cluster", cluster_name="c")
    role = node_role(stack, "Role")
    for name in GPU_TYPES:
        ManagedNodePool(
            stack,
            name,
            cluster=cluster,
            kubernetes_version="1.35",
            pool=Pool.GPU,
            instance_type=instance_types()[name],
            size=2,
            root_volume_gib=200,
            subnets=[subnet],
            role=role,
        )
    resources = Resources(Template.from_stack(stack))
    groups = [Group(resources, name) for name in resources.ids(NODE_GROUP)]
    return {group.template["InstanceType"]: group for group in groups}


def test_the_gpu_families_are_known() -> None:
    assert {name.split(".")[0] for name in GPU_TYPES} == GPU_FAMILIES


@pytest.mark.parametrize("instance_type", GPU_TYPES)
def test_every_gpu_type_gets_the_nvidia_image(instance_type: str) -> None:
    group = every_gpu_type()[instance_type]
    assert group.group["AmiType"] == "AL2023_x86_64_NVIDIA"
    # In the launch template alone: EKS refuses a type in both.
    assert "InstanceTypes" not in group.group
    # Every one of them has local NVMe for images.
    assert group.template["UserData"] == USER_DATA[True]


def test_pools(groups: dict[str, Group]) -> None:
    assert groups.keys() == {"system", "serving", "gpu"}
    for pool, ami, instance_type in (
        ("system", "AL2023_x86_64_STANDARD", "m7i.xlarge"),
        ("serving", "AL2023_x86_64_STANDARD", "m7i.xlarge"),
        ("gpu", "AL2023_x86_64_NVIDIA", "g6e.2xlarge"),
    ):
        assert groups[pool].group["AmiType"] == ami
        assert groups[pool].group["Version"] == "1.35"
        assert groups[pool].template["InstanceType"] == instance_type
        assert "ImageId" not in groups[pool].template, "EKS keeps the image patched"
        assert groups[pool].group["Labels"] == {POOL_LABEL: pool}


def test_taints(groups: dict[str, Group]) -> None:
    def taints(pool: str) -> set[tuple[str, str, str]]:
        given = groups[pool].group.get("Taints", [])
        return {(taint["Key"], taint["Value"], taint["Effect"]) for taint in given}

    assert taints("system") == set(), "controllers and CoreDNS must find nodes"
    assert taints("serving") == {(POOL_LABEL, "serving", "NO_SCHEDULE")}
    assert taints("gpu") == {
        ("nvidia.com/gpu", "true", "NO_SCHEDULE"),
        ("fsx.csi.aws.com/agent-not-ready", "true", "NO_EXECUTE"),
    }


@pytest.mark.synth
def test_sizes_are_fixed_and_configured(default_config: Configuration) -> None:
    config = changed(
        default_config,
        nodes={
            "system": {"size": 3, "instanceType": "m6i.xlarge", "rootVolumeGib": 40},
            "serving": {"size": 5, "instanceType": "c7i.2xlarge", "rootVolumeGib": 50},
            "gpu": {"baseSize": 4, "instanceType": "p5.48xlarge", "rootVolumeGib": 300},
        },
    )
    groups = groups_of(Resources(Template.from_stack(stacks_of(config).cluster)))
    for pool, size, instance_type, gib, nvme in (
        ("system", 3, "m6i.xlarge", 40, False),
        ("serving", 5, "c7i.2xlarge", 50, False),
        ("gpu", 4, "p5.48xlarge", 300, True),
    ):
        group = groups[pool]
        assert group.group["ScalingConfig"] == {
            "MinSize": size,
            "DesiredSize": size,
            "MaxSize": size,
        }
        assert group.template["InstanceType"] == instance_type
        assert group.root["VolumeSize"] == gib
        assert group.template["UserData"] == USER_DATA[nvme]


@pytest.mark.parametrize("pool", ["system", "serving", "gpu"])
def test_launch_templates_are_hardened(groups: dict[str, Group], pool: str) -> None:
    template = groups[pool].template
    assert template["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    (device,) = template["BlockDeviceMappings"]
    # AL2023 has one volume, and it is this one.
    assert device["DeviceName"] == "/dev/xvda"
    assert device["Ebs"]["VolumeType"] == "gp3"
    assert device["Ebs"]["Encrypted"] is True
    assert device["Ebs"]["DeleteOnTermination"] is True
    # Amazon EBS user guide: gp3 gives 125 to 1,000 MiB/s, and 0.25 MiB/s for each of 3,000 IOPS.
    assert 125 <= device["Ebs"]["Throughput"] <= 750
    # Amazon EKS user guide, "Customize managed nodes with launch templates": prohibited fields.
    assert not {"IamInstanceProfile", "InstanceInitiatedShutdownBehavior", "KeyName"} & set(
        template
    )
    interfaces: list[dict[str, Any]] = template.get("NetworkInterfaces", [])
    assert not any(interface.get("AssociatePublicIpAddress") for interface in interfaces)


@pytest.mark.parametrize("pool", ["system", "serving", "gpu"])
def test_instances_and_volumes_carry_the_deployment(groups: dict[str, Group], pool: str) -> None:
    for kind in ("instance", "volume"):
        (tags,) = (
            {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
            for specification in groups[pool].template["TagSpecifications"]
            if specification["ResourceType"] == kind
        )
        assert tags["sonic-eks:deployment"] == "sonic"
        assert tags["Name"].endswith(f"-{pool}")


def test_images_are_pulled_faster_where_they_lie_on_the_root_volume(
    groups: dict[str, Group],
) -> None:
    assert groups["gpu"].root["Throughput"] == 125
    assert groups["serving"].root["Throughput"] > 125


def test_the_gpu_base_is_one_placement_group_in_one_subnet(
    resources: Resources, groups: dict[str, Group]
) -> None:
    ((name, placement),) = (
        (name, resources.properties(name)) for name in resources.ids("AWS::EC2::PlacementGroup")
    )
    assert placement["Strategy"] == "cluster"
    assert groups["gpu"].template["Placement"]["GroupName"] == f"ref-{name}"
    assert len(groups["gpu"].group["Subnets"]) == 1
    for pool in ("system", "serving"):
        assert "Placement" not in groups[pool].template
    # The group can only be deleted when no instance is in it any more.
    assert name in resources.needs(groups["gpu"].name)


def test_every_gpu_type_may_lie_in_the_placement_group() -> None:
    refused = [name for name in GPU_TYPES if not instance_types()[name].cluster_placement]
    assert refused == []


def test_without_a_reservation_ec2_chooses(groups: dict[str, Group]) -> None:
    for group in groups.values():
        assert "CapacityReservationSpecification" not in group.template
        assert "InstanceMarketOptions" not in group.template
        assert "CapacityType" not in group.group, "on-demand is what EKS does by itself"


@pytest.mark.synth
def test_only_the_gpu_base_is_launched_into_its_reservation(default_config: Configuration) -> None:
    reservation = "cr-0123456789abcdef0"
    config = changed(default_config, nodes={"gpu": {"baseReservationId": reservation}})
    groups = groups_of(Resources(Template.from_stack(stacks_of(config).cluster)))
    # AWS::EC2::LaunchTemplate CapacityReservationSpecification: a target or a preference alone.
    assert groups["gpu"].template["CapacityReservationSpecification"] == {
        "CapacityReservationTarget": {"CapacityReservationId": reservation}
    }
    assert groups["gpu"].template["Placement"], "still in the placement group"
    for pool in ("system", "serving"):
        assert "CapacityReservationSpecification" not in groups[pool].template


def test_pools_lie_where_they_should(resources: Resources, groups: dict[str, Group]) -> None:
    (cluster,) = resources.of("AWS::EKS::Cluster")
    system = set(groups["system"].group["Subnets"])
    assert system == set(cluster["ResourcesVpcConfig"]["SubnetIds"])
    (serving,) = groups["serving"].group["Subnets"]
    (gpu,) = groups["gpu"].group["Subnets"]
    assert len({serving, gpu} | system) == 4, (
        "GPU nodes share no subnet with one that has a way out"
    )


def test_updates_never_cut_streams(groups: dict[str, Group]) -> None:
    for pool, strategy in (("system", "DEFAULT"), ("serving", "DEFAULT"), ("gpu", "MINIMAL")):
        group = groups[pool].group
        assert group["UpdateConfig"] == {"MaxUnavailable": 1, "UpdateStrategy": strategy}
        assert group["ForceUpdateEnabled"] is False
        assert group["NodeRepairConfig"] == {"Enabled": True, "MaxParallelNodesRepairedCount": 1}


def test_nodes_may_join_and_pull_images(resources: Resources, groups: dict[str, Group]) -> None:
    roles = {group.group["NodeRole"] for group in groups.values()}
    assert len(roles) == 1
    role = resources.properties(roles.pop().removeprefix("att-").removesuffix("-Arn"))
    policies = {arn.rpartition(":policy/")[2] for arn in role["ManagedPolicyArns"]}
    assert sorted(policies) == EXPECTED["node_policies"]
    assert "Policies" not in role
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}


def test_node_agents_are_there_before_nodes(resources: Resources, groups: dict[str, Group]) -> None:
    addons = resources.id_by("AWS::EKS::Addon", "AddonName")
    agents = {addons[name] for name in EXPECTED["addons"]["before_nodes"]}
    for group in groups.values():
        assert agents <= resources.needs(group.name)
