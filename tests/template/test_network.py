"""The VPC: addresses, routes, endpoints, flow logs."""

from __future__ import annotations

import ipaddress
import itertools
import re
from dataclasses import dataclass
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.stacks.network import NetworkStack
from tests.expected import networking as expected
from tests.synth import ROOT, changed
from tests.template.foundation import ACCOUNT, network_of, only, resources, rules

AIR_GAPPED = {"license": {"mode": "airGapped", "dataPath": "/data"}}


def in_region(region: str, **network: Any) -> dict[str, Any]:
    zones = [f"{region}a", f"{region}b"]
    return {
        "deployment": {"region": region, "account": ACCOUNT},
        "network": {"zones": zones, **network},
    }


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "none": {"network": {"egress": "none"}, **AIR_GAPPED},
    "three zones": {"network": {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]}},
    "last zone": {
        "network": {
            "zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            "inferenceZone": "us-east-1c",
        }
    },
    "small": {"network": {"vpcCidr": "192.168.4.0/22"}},
    "large": {"network": {"vpcCidr": "10.0.0.0/16"}},
    "long name": {"deployment": {"name": "a" * 100}},
    "us-east-1": in_region("us-east-1"),
    "us-gov-west-1": in_region("us-gov-west-1"),
    "cn-north-1": in_region("cn-north-1"),
}
FILES = ["isolated", "production"]
MADE = [*VARIANTS, *FILES]
WITH_NAT = [name for name in MADE if name not in ("none", "isolated")]


@dataclass(frozen=True)
class Network:
    """A synthesized network stack; subnets by logical id."""

    config: Configuration
    template: Template
    gpu: str
    serving: str
    system: list[str]

    @property
    def private(self) -> list[str]:
        return [self.gpu, self.serving, *self.system]

    @property
    def subnets(self) -> dict[str, dict[str, Any]]:
        found = resources(self.template, "AWS::EC2::Subnet")
        return {key: subnet["Properties"] for key, subnet in found.items()}

    @property
    def public(self) -> list[str]:
        return [key for key in self.subnets if key not in self.private]

    def table_of(self, subnet: str) -> str:
        """The one route table of a subnet."""
        associations = resources(self.template, "AWS::EC2::SubnetRouteTableAssociation").values()
        (table,) = [
            a["Properties"]["RouteTableId"]["Ref"]
            for a in associations
            if a["Properties"]["SubnetId"] == {"Ref": subnet}
        ]
        return table

    def routes_of(self, subnet: str) -> list[dict[str, Any]]:
        """The routes of a subnet, without the local one."""
        table = {"Ref": self.table_of(subnet)}
        found = resources(self.template, "AWS::EC2::Route").values()
        return [r["Properties"] for r in found if r["Properties"]["RouteTableId"] == table]

    def interfaces(self) -> dict[str, dict[str, Any]]:
        """Interface endpoints by the service's name after the region's."""
        found = {}
        for endpoint in resources(self.template, "AWS::EC2::VPCEndpoint").values():
            properties = endpoint["Properties"]
            if properties["VpcEndpointType"] == "Interface":
                service = properties["ServiceName"]
                found[service.split(f"{self.config.deployment.region}.")[1]] = properties
        return found


def describe(stack: NetworkStack, config: Configuration) -> Network:
    def logical_id(subnet: Any) -> str:
        return stack.resolve(subnet.subnet_id)["Ref"]

    system = [logical_id(subnet) for subnet in stack.system_subnets]
    gpu, serving = logical_id(stack.gpu_subnet), logical_id(stack.serving_subnet)
    return Network(config, Template.from_stack(stack), gpu, serving, system)


@pytest.fixture(scope="module")
def networks(default_config: Configuration) -> dict[str, Network]:
    configs = {name: changed(default_config, **changes) for name, changes in VARIANTS.items()}
    configs |= {name: load_configuration(ROOT / "config" / f"{name}.yaml") for name in FILES}
    return {name: describe(network_of(config), config) for name, config in configs.items()}


@pytest.fixture
def network(request: pytest.FixtureRequest, networks: dict[str, Network]) -> Network:
    return networks[request.param]


every = pytest.mark.parametrize("network", MADE, indirect=True)
with_nat = pytest.mark.parametrize("network", WITH_NAT, indirect=True)
default = pytest.mark.parametrize("network", ["default"], indirect=True)


@every
def test_subnets_lie_in_the_vpc_and_do_not_overlap(network: Network) -> None:
    vpc = ipaddress.IPv4Network(network.config.network.cidr)
    ranges = [ipaddress.IPv4Network(s["CidrBlock"]) for s in network.subnets.values()]
    assert only(network.template, "AWS::EC2::VPC")["Properties"]["CidrBlock"] == str(vpc)
    for one, other in itertools.combinations(ranges, 2):
        assert not one.overlaps(other)
    for subnet in ranges:
        assert subnet.subnet_of(vpc)
        assert subnet.prefixlen <= expected.SMALLEST_SUBNET_PREFIX


@every
def test_each_subnet_is_in_its_zone(network: Network) -> None:
    zones = {key: subnet["AvailabilityZone"] for key, subnet in network.subnets.items()}
    settings = network.config.network
    assert [zones[key] for key in network.system] == list(settings.zones)
    assert zones[network.gpu] == zones[network.serving] == settings.gpu_zone
    assert len(set(network.private)) == len(settings.zones) + 2


def test_another_zone_moves_no_subnet(networks: dict[str, Network]) -> None:
    before, after = networks["default"].subnets, networks["three zones"].subnets
    for key, subnet in before.items():
        assert after[key]["CidrBlock"] == subnet["CidrBlock"]
        assert after[key]["AvailabilityZone"] == subnet["AvailabilityZone"]


@every
def test_gpu_subnet_has_no_route_out(network: Network) -> None:
    assert network.routes_of(network.gpu) == []
    table = network.table_of(network.gpu)
    assert table not in [network.table_of(s) for s in network.subnets if s != network.gpu]


@with_nat
def test_system_and_serving_subnets_go_out_through_nat(network: Network) -> None:
    (nat,) = resources(network.template, "AWS::EC2::NatGateway")
    for subnet in [network.serving, *network.system]:
        (route,) = network.routes_of(subnet)
        assert route["DestinationCidrBlock"] == "0.0.0.0/0"
        assert route["NatGatewayId"] == {"Ref": nat}


@with_nat
def test_nat_gateway_is_in_a_public_subnet_of_the_inference_zone(network: Network) -> None:
    (public,) = network.public
    nat = only(network.template, "AWS::EC2::NatGateway")
    assert nat["Properties"]["SubnetId"] == {"Ref": public}
    assert network.subnets[public]["AvailabilityZone"] == network.config.network.gpu_zone
    (gateway,) = resources(network.template, "AWS::EC2::InternetGateway")
    (route,) = network.routes_of(public)
    assert route["DestinationCidrBlock"] == "0.0.0.0/0"
    assert route["GatewayId"] == {"Ref": gateway}
    attachment = only(network.template, "AWS::EC2::VPCGatewayAttachment")
    assert attachment["Properties"]["InternetGatewayId"] == {"Ref": gateway}


@pytest.mark.parametrize("name", ["none", "isolated"])
def test_without_egress_there_is_no_way_out(networks: dict[str, Network], name: str) -> None:
    template = networks[name].template
    for kind in ("InternetGateway", "NatGateway", "EIP", "Route", "VPCGatewayAttachment"):
        template.resource_count_is(f"AWS::EC2::{kind}", 0)
    assert networks[name].public == []


@every
def test_no_instance_gets_a_public_address(network: Network) -> None:
    for subnet in network.subnets.values():
        assert not subnet.get("MapPublicIpOnLaunch", False)
        assert "Ipv6CidrBlock" not in subnet


@every
def test_every_private_route_table_leads_to_s3(network: Network) -> None:
    (gateway,) = [
        e["Properties"]
        for e in resources(network.template, "AWS::EC2::VPCEndpoint").values()
        if e["Properties"]["VpcEndpointType"] == "Gateway"
    ]
    tables = {table["Ref"] for table in gateway["RouteTableIds"]}
    assert tables == {network.table_of(subnet) for subnet in network.private}
    assert gateway["ServiceName"]["Fn::Join"][1][-1] == ".s3"


@pytest.mark.parametrize("service", expected.INTERFACE_ENDPOINTS)
@every
def test_interface_endpoint_serves_the_vpc(network: Network, service: str) -> None:
    endpoint = network.interfaces()[service]
    assert endpoint["PrivateDnsEnabled"] is True
    # One interface a zone, in every zone: EC2 refuses two in one.
    assert endpoint["SubnetIds"] == [{"Ref": subnet} for subnet in network.system]
    (group,) = endpoint["SecurityGroupIds"]
    (own,) = resources(network.template, "AWS::EC2::SecurityGroup")
    assert group["Fn::GetAtt"][0] == own


def test_an_endpoint_keeps_to_the_zones_of_its_service(default_config: Configuration) -> None:
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    only_in = {"eks-auth": ["us-east-1c"], "sqs": ["us-east-1b", "us-east-1a"]}
    config = changed(default_config, network={"zones": zones, "endpointZones": only_in})
    network = describe(network_of(config), config)
    for service, endpoint in network.interfaces().items():
        found = [network.subnets[subnet["Ref"]] for subnet in endpoint["SubnetIds"]]
        expected_zones = sorted(only_in.get(service, zones))
        assert [subnet["AvailabilityZone"] for subnet in found] == expected_zones, service


@every
def test_no_interface_endpoint_without_a_document(network: Network) -> None:
    assert set(network.interfaces()) == set(expected.INTERFACE_ENDPOINTS)


@pytest.mark.parametrize(("service", "name"), expected.CHINA_ENDPOINTS.items())
def test_endpoint_names_in_china(networks: dict[str, Network], service: str, name: str) -> None:
    assert networks["cn-north-1"].interfaces()[service]["ServiceName"] == name


@every
def test_endpoints_admit_https_from_the_vpc_only(network: Network) -> None:
    group = only(network.template, "AWS::EC2::SecurityGroup")
    assert rules(group, "Ingress") == {("tcp", 443, 443, network.config.network.cidr)}
    assert rules(group, "Egress") == set()


@every
def test_default_security_group_is_closed(network: Network) -> None:
    (vpc,) = resources(network.template, "AWS::EC2::VPC")
    closing = only(network.template, "Custom::VpcRestrictDefaultSG")["Properties"]
    assert closing["DefaultSecurityGroupId"] == {"Fn::GetAtt": [vpc, "DefaultSecurityGroup"]}


@pytest.mark.parametrize("days", [1, 365])
def test_flow_logs_keep_all_traffic(default_config: Configuration, days: int) -> None:
    config = changed(default_config, network={"flowLogRetentionDays": days})
    template = Template.from_stack(network_of(config))
    (vpc,) = resources(template, "AWS::EC2::VPC")
    (group,) = resources(template, "AWS::Logs::LogGroup")
    log = only(template, "AWS::EC2::FlowLog")["Properties"]
    assert log["ResourceId"] == {"Ref": vpc}
    assert log["TrafficType"] == "ALL"
    assert log["LogGroupName"] == {"Ref": group}
    assert only(template, "AWS::Logs::LogGroup")["Properties"]["RetentionInDays"] == days


@default
def test_flow_logs_may_write_their_group_only(network: Network) -> None:
    role = log_role(network)
    (group,) = resources(network.template, "AWS::Logs::LogGroup")
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Fn::GetAtt": [group, "Arn"]}
    assert {action.split(":")[0] for action in statement["Action"]} == {"logs"}
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def log_role(network: Network) -> dict[str, Any]:
    log = only(network.template, "AWS::EC2::FlowLog")["Properties"]
    logical_id = log["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]
    properties: dict[str, Any] = resources(network.template, "AWS::IAM::Role")[logical_id][
        "Properties"
    ]
    return properties


def test_every_role_has_the_permissions_boundary(default_config: Configuration) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    config = changed(default_config, deployment={"permissionsBoundaryArn": boundary})
    roles = resources(Template.from_stack(network_of(config)), "AWS::IAM::Role")
    assert len(roles) == 2
    for role in roles.values():
        assert role["Properties"]["PermissionsBoundary"] == boundary


@default
def test_outputs_name_vpc_subnet_and_account(network: Network) -> None:
    outputs = network.template.to_json()["Outputs"]
    (vpc,) = resources(network.template, "AWS::EC2::VPC")
    assert outputs["VpcId"]["Value"] == {"Ref": vpc}
    assert outputs["GpuSubnetId"]["Value"] == {"Ref": network.gpu}
    assert outputs["ServingSubnetId"]["Value"] == {"Ref": network.serving}
    assert outputs["AccountId"]["Value"] == {"Ref": "AWS::AccountId"}


def test_documentation_lists_the_endpoints() -> None:
    text = (ROOT / "docs" / "networking.md").read_text()
    table = text.split("## Who calls which AWS API")[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("|")]
    named = {service for row in rows for service in re.findall(r"`([a-z0-9.-]+)`", row[-2])}
    assert named == {*expected.INTERFACE_ENDPOINTS, "s3"}
