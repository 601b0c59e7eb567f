"""The weights' file system."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.stacks.deployment import Stacks
from tests.expected.networking import LUSTRE_PORTS
from tests.synth import changed
from tests.template.foundation import foundation, only, produced, resources, rules


def gpu_and_serving_ranges(stacks: Stacks, templates: dict[str, Template]) -> set[str]:
    network = stacks.network
    subnets = resources(templates["network"], "AWS::EC2::Subnet")
    return {
        subnets[network.resolve(subnet.subnet_id)["Ref"]]["Properties"]["CidrBlock"]
        for subnet in (network.gpu_subnet, network.serving_subnet)
    }


def lustre(template: Template) -> dict[str, Any]:
    properties: dict[str, Any] = only(template, "AWS::FSx::FileSystem")["Properties"]
    return properties


@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
def test_lustre_ports_are_open_between_servers_and_clients_alone(
    stacks: Stacks, templates: dict[str, Template], direction: str
) -> None:
    ranges = gpu_and_serving_ranges(stacks, templates)
    assert len(ranges) == 2
    group = only(templates["weights"], "AWS::EC2::SecurityGroup")
    assert rules(group, direction) == {
        ("tcp", first, last, cidr) for first, last in LUSTRE_PORTS for cidr in ranges
    }


def test_file_servers_reach_each_other(templates: dict[str, Template]) -> None:
    """Their own subnet's range is among the rules, which covers them."""
    (subnet,) = lustre(templates["weights"])["SubnetIds"]
    home = produced(subnet, templates)["Ref"]
    cidr = resources(templates["network"], "AWS::EC2::Subnet")[home]["Properties"]["CidrBlock"]
    group = only(templates["weights"], "AWS::EC2::SecurityGroup")
    for direction in ("Ingress", "Egress"):
        open_ports = {r[1:3] for r in rules(group, direction) if r[3] == cidr}
        assert open_ports == LUSTRE_PORTS


def test_rules_are_there_when_the_file_system_is_made(templates: dict[str, Template]) -> None:
    template = templates["weights"]
    template.resource_count_is("AWS::EC2::SecurityGroupIngress", 0)
    template.resource_count_is("AWS::EC2::SecurityGroupEgress", 0)
    (group,) = resources(template, "AWS::EC2::SecurityGroup")
    assert lustre(template)["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]


def test_file_system_is_in_the_gpu_subnet(templates: dict[str, Template]) -> None:
    (subnet,) = lustre(templates["weights"])["SubnetIds"]
    outputs = templates["network"].to_json()["Outputs"]
    assert produced(subnet, templates) == outputs["GpuSubnetId"]["Value"]


def test_file_system_works_with_a_linked_bucket(templates: dict[str, Template]) -> None:
    properties = lustre(templates["weights"])
    assert properties["FileSystemType"] == "LUSTRE"
    # Clients on Amazon Linux 2023 refuse 2.10; associations need 2.12.
    assert properties["FileSystemTypeVersion"] == "2.15"
    configuration = properties["LustreConfiguration"]
    assert configuration["DeploymentType"] == "PERSISTENT_2"
    assert configuration["AutomaticBackupRetentionDays"] == 0
    assert not [k for k in configuration if k.startswith(("Import", "Export", "AutoImport"))]


@pytest.mark.parametrize(("capacity", "throughput"), [(1200, 125), (4800, 1000)])
def test_size_and_throughput_follow_the_configuration(
    default_config: Configuration, capacity: int, throughput: int
) -> None:
    sizes = {"capacityGib": capacity, "throughputMbPerSPerTib": throughput}
    properties = lustre(
        Template.from_stack(foundation(changed(default_config, weights=sizes)).weights)
    )
    assert properties["StorageCapacity"] == capacity
    assert properties["LustreConfiguration"]["PerUnitStorageThroughput"] == throughput


def test_association_imports_and_never_writes_back(templates: dict[str, Template]) -> None:
    template = templates["weights"]
    association = only(template, "AWS::FSx::DataRepositoryAssociation")["Properties"]
    (file_system,) = resources(template, "AWS::FSx::FileSystem")
    assert association["FileSystemId"] == {"Ref": file_system}
    assert association["FileSystemPath"] == "/"
    assert association["BatchImportMetaDataOnCreate"] is True
    assert set(association["S3"]) == {"AutoImportPolicy"}
    assert set(association["S3"]["AutoImportPolicy"]["Events"]) == {"NEW", "CHANGED", "DELETED"}


def test_association_reads_the_weights_bucket(templates: dict[str, Template]) -> None:
    association = only(templates["weights"], "AWS::FSx::DataRepositoryAssociation")["Properties"]
    scheme, bucket = association["DataRepositoryPath"]["Fn::Join"][1]
    assert scheme == "s3://"
    assert produced(bucket, templates) == {
        "Ref": next(iter(resources(templates["data"], "AWS::S3::Bucket")))
    }


def test_everything_may_be_deleted(templates: dict[str, Template]) -> None:
    found = templates["weights"].to_json()["Resources"].values()
    assert len(found) == 3
    for resource in found:
        assert resource.get("DeletionPolicy", "Delete") == "Delete"
        assert resource.get("UpdateReplacePolicy", "Delete") == "Delete"


def test_outputs_say_how_to_mount(templates: dict[str, Template]) -> None:
    outputs = templates["weights"].to_json()["Outputs"]
    (file_system,) = resources(templates["weights"], "AWS::FSx::FileSystem")
    assert outputs["FileSystemId"]["Value"] == {"Ref": file_system}
    assert outputs["FileSystemDnsName"]["Value"] == {"Fn::GetAtt": [file_system, "DNSName"]}
    assert outputs["FileSystemMountName"]["Value"] == {
        "Fn::GetAtt": [file_system, "LustreMountName"]
    }
