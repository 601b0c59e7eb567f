"""A VPC that is there: what is missing is made in it, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.config.network import ExistingVpc
from tests.cloudformation import Resources
from tests.expected import networking as expected
from tests.synth import ROOT, changed
from tests.template.foundation import Foundation, foundation, network_of, rules

SERVICES = [*expected.INTERFACE_ENDPOINTS, "s3"]


@pytest.fixture(scope="module")
def config() -> Configuration:
    return load_configuration(ROOT / "config" / "existing-vpc.yaml")


def with_existing(config: Configuration, **keys: Any) -> Configuration:
    return changed(config, network={"existing": keys})


def existing_of(config: Configuration) -> ExistingVpc:
    assert config.network.existing is not None
    return config.network.existing


def network(config: Configuration) -> Resources:
    return Resources(Template.from_stack(network_of(config)))


def endpoints(resources: Resources) -> dict[str, dict[str, Any]]:
    found = resources.by("AWS::EC2::VPCEndpoint", "ServiceName")
    return {name.split("us-east-1.")[1]: endpoint for name, endpoint in found.items()}


@pytest.fixture(scope="module")
def made(config: Configuration) -> Resources:
    """The network of the file."""
    return network(config)


@pytest.fixture(scope="module")
def all_missing(config: Configuration) -> Resources:
    """The network where the VPC has no endpoint at all."""
    return network(with_existing(config, endpoints=[], flowLogs=False))


def test_only_endpoints_are_made(made: Resources) -> None:
    kinds = {made.template["Resources"][name]["Type"] for name in made.template["Resources"]}
    assert kinds == {"AWS::EC2::VPCEndpoint", "AWS::EC2::SecurityGroup"}


@pytest.mark.parametrize("service", SERVICES)
def test_an_endpoint_is_made_unless_it_is_there(
    config: Configuration, made: Resources, service: str
) -> None:
    assert (service in endpoints(made)) is (service not in existing_of(config).endpoints)


@pytest.mark.parametrize("service", SERVICES)
def test_any_missing_endpoint_is_made(all_missing: Resources, service: str) -> None:
    endpoint = endpoints(all_missing)[service]
    assert endpoint["VpcId"] == "vpc-0a1b2c3d4e5f60718"
    if service == "s3":
        assert endpoint["VpcEndpointType"] == "Gateway"
        # Each table once: two subnets of the file share one, and EC2 refuses a second route.
        assert sorted(endpoint["RouteTableIds"]) == [
            "rtb-0a1b2c3d4e5f60001",
            "rtb-0a1b2c3d4e5f60002",
            "rtb-0a1b2c3d4e5f60004",
        ]
    else:
        assert endpoint["SubnetIds"] == ["subnet-0a1b2c3d4e5f60001", "subnet-0a1b2c3d4e5f60002"]
        assert endpoint["PrivateDnsEnabled"] is True


@pytest.mark.parametrize("service", SERVICES)
def test_one_missing_endpoint_is_made_alone(config: Configuration, service: str) -> None:
    there = [name for name in SERVICES if name != service]
    resources = network(with_existing(config, endpoints=there))
    assert set(endpoints(resources)) == {service}
    # A security group belongs to interface endpoints.
    assert len(resources.ids("AWS::EC2::SecurityGroup")) == (service != "s3")


def test_endpoints_admit_the_vpc(made: Resources) -> None:
    (name,) = made.ids("AWS::EC2::SecurityGroup")
    group = made.template["Resources"][name]
    assert rules(group, "Ingress") == {("tcp", 443, 443, "10.20.0.0/16")}
    assert rules(group, "Egress") == set()


def test_flow_logs_are_made_where_there_are_none(all_missing: Resources) -> None:
    (log,) = all_missing.of("AWS::EC2::FlowLog")
    assert log["ResourceId"] == "vpc-0a1b2c3d4e5f60718"
    assert log["TrafficType"] == "ALL"


def test_the_owners_routes_and_groups_stay(all_missing: Resources) -> None:
    for kind in ("VPC", "Subnet", "RouteTable", "Route", "NatGateway", "InternetGateway", "EIP"):
        assert all_missing.ids(f"AWS::EC2::{kind}") == []
    assert all_missing.ids("Custom::VpcRestrictDefaultSG") == []


def test_with_nothing_missing_there_is_a_stack_that_cloudformation_takes(
    config: Configuration,
) -> None:
    resources = network(with_existing(config, endpoints=SERVICES))
    assert len(resources.template["Resources"]) == 1
    assert resources.ids("AWS::CloudFormation::WaitConditionHandle")
    assert resources.template["Outputs"]["VpcId"]["Value"] == "vpc-0a1b2c3d4e5f60718"


def test_outputs_are_the_ids_of_the_file(made: Resources) -> None:
    outputs = {name: output["Value"] for name, output in made.template["Outputs"].items()}
    assert outputs["VpcId"] == "vpc-0a1b2c3d4e5f60718"
    assert outputs["GpuSubnetId"] == "subnet-0a1b2c3d4e5f60004"
    assert outputs["ServingSubnetId"] == "subnet-0a1b2c3d4e5f60003"


@pytest.fixture(scope="module")
def around(config: Configuration) -> Foundation:
    return foundation(config)


def test_weights_are_in_the_gpu_subnet(around: Foundation) -> None:
    weights = Resources(Template.from_stack(around.weights))
    (volume,) = weights.of("AWS::FSx::FileSystem")
    assert volume["SubnetIds"] == ["subnet-0a1b2c3d4e5f60004"]
    (name,) = weights.ids("AWS::EC2::SecurityGroup")
    group = weights.template["Resources"][name]
    assert group["Properties"]["VpcId"] == "vpc-0a1b2c3d4e5f60718"
    # GPU nodes and file servers, and serving nodes.
    ranges = {"10.20.48.0/20", "10.20.32.0/20"}
    lustre = {("tcp", *ports, cidr) for ports in expected.LUSTRE_PORTS for cidr in ranges}
    assert rules(group, "Ingress") == rules(group, "Egress") == lustre


def test_load_balancer_is_in_the_serving_subnet(around: Foundation) -> None:
    edge = Resources(Template.from_stack(around.edge))
    (balancer,) = edge.of("AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert balancer["Subnets"] == ["subnet-0a1b2c3d4e5f60003"]
    (group,) = edge.of("AWS::ElasticLoadBalancingV2::TargetGroup")
    assert group["VpcId"] == "vpc-0a1b2c3d4e5f60718"


def test_nothing_is_looked_up(around: Foundation) -> None:
    assembly = around.app.synth()
    manifest = json.loads((Path(assembly.directory) / "manifest.json").read_text())
    assert "missing" not in manifest
    for stack in assembly.stacks:
        assert "dummy" not in json.dumps(stack.template)
