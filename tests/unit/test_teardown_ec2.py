"""Which instances, launch templates, interfaces and volumes a teardown finds, in moto's EC2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sonic_eks.names import Names
from sonic_eks.teardown import karpenter, leftovers
from sonic_eks.teardown.leftovers import Remains

AMI = "ami-12c6146b"
OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "owned"}
STRANGERS = [
    {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice-eu": "owned"},
    {"eks:nodegroup-name": "gpu", "kubernetes.io/cluster/voice": "owned"},
    {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "shared"},
    {},
]


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty account, in which any image may be named."""
    # moto reads thousands of them otherwise, for each test and region.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield boto3.client("ec2", region_name="us-east-1")


def tagged(kind: str, tags: dict[str, str]) -> list[dict[str, Any]]:
    """Return a tag specification."""
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": pairs}] if pairs else []


def launch(ec2: Any, tags: dict[str, str]) -> str:
    """Start an instance."""
    answer = ec2.run_instances(
        ImageId=AMI, MinCount=1, MaxCount=1, TagSpecifications=tagged("instance", tags)
    )
    return str(answer["Instances"][0]["InstanceId"])


def test_only_instances_of_the_clusters_karpenter_are_found_and_terminated(ec2: Any) -> None:
    own = launch(ec2, OWN)
    strangers = {launch(ec2, tags) for tags in STRANGERS}
    (found,) = karpenter.instances(ec2, "voice")
    assert (found.id, found.node_pool, found.state) == (own, "gpu-burst", "running")
    assert karpenter.terminate(ec2, [found]) == [found]
    assert karpenter.instances(ec2, "voice") == []
    alive = ec2.describe_instances(
        Filters=[{"Name": "instance-state-name", "Values": ["running"]}]
    )["Reservations"]
    assert {i["InstanceId"] for r in alive for i in r["Instances"]} == strangers


def test_an_instance_that_is_ending_is_not_asked_again(ec2: Any) -> None:
    ending = karpenter.Instance("i-0123456789abcdef0", "gpu-burst", "shutting-down")
    assert karpenter.terminate(ec2, [ending]) == []


def test_an_instance_that_is_gone_meanwhile_is_no_error(ec2: Any) -> None:
    gone = karpenter.Instance("i-0123456789abcdef0", "gpu-burst", "running")
    assert karpenter.terminate(ec2, [gone]) == [gone]


def test_only_launch_templates_of_the_clusters_karpenter_are_deleted(ec2: Any) -> None:
    def create(name: str, tags: dict[str, str]) -> str:
        answer = ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={"ImageId": AMI},
            TagSpecifications=tagged("launch-template", tags),
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    own = create("own", OWN)
    strangers = {create(f"other-{i}", tags) for i, tags in enumerate(STRANGERS)}
    assert karpenter.delete_launch_templates(ec2, "voice") == [f"launch template {own}"]
    left = {item["LaunchTemplateId"] for item in ec2.describe_launch_templates()["LaunchTemplates"]}
    assert left == strangers


def test_only_unused_interfaces_of_the_clusters_cni_are_deleted(ec2: Any) -> None:
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]

    def create(tags: dict[str, str]) -> str:
        answer = ec2.create_network_interface(
            SubnetId=subnet, TagSpecifications=tagged("network-interface", tags)
        )
        return str(answer["NetworkInterface"]["NetworkInterfaceId"])

    tag = "cluster.k8s.amazonaws.com/name"
    own, used, other = create({tag: "voice"}), create({tag: "voice"}), create({tag: "voice-eu"})
    instance = launch(ec2, {})
    ec2.attach_network_interface(DeviceIndex=1, InstanceId=instance, NetworkInterfaceId=used)
    assert leftovers.delete_interfaces(ec2, "voice") == [f"network interface {own}"]
    left = {i["NetworkInterfaceId"] for i in ec2.describe_network_interfaces()["NetworkInterfaces"]}
    assert {used, other} <= left
    assert own not in left


def test_volumes_of_a_cluster_that_is_gone_are_named_and_kept(ec2: Any) -> None:
    def create(tags: dict[str, str]) -> str:
        answer = ec2.create_volume(
            AvailabilityZone="us-east-1a", Size=1, TagSpecifications=tagged("volume", tags)
        )
        return str(answer["VolumeId"])

    own = create({"kubernetes.io/cluster/voice": "owned"})
    create({"kubernetes.io/cluster/voice-eu": "owned"})
    names = Names("voice")
    gone, there = Remains((), has_cluster=False), Remains((), has_cluster=True)
    assert leftovers.kept(ec2, names, gone) == [f"AWS::EC2::Volume {own}"]
    assert leftovers.kept(ec2, names, there) == []
    assert len(ec2.describe_volumes()["Volumes"]) == 2
