"""Callers in other accounts, and a private name: endpoint service and hosted zone."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.cloudformation import Resources
from tests.expected import networking as expected
from tests.synth import changed
from tests.template.foundation import ACCOUNT, edge_of

BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
ENFORCE = "EnforceSecurityGroupInboundRulesOnPrivateLinkTraffic"
DNS = {"zoneName": "voice.internal", "recordName": "sonic"}


def principal(partition: str = "aws") -> str:
    return f"arn:{partition}:iam::444455556666:root"


def edge(config: Configuration, **edge: Any) -> Resources:
    return Resources(Template.from_stack(edge_of(changed(config, edge=edge))))


@pytest.mark.parametrize("accept", [None, True, False])
def test_endpoint_service_is_for_named_principals(
    default_config: Configuration, accept: bool | None
) -> None:
    link: dict[str, Any] = {"allowedPrincipalArns": [principal()]}
    if accept is not None:
        link["acceptanceRequired"] = accept
    resources = edge(default_config, privateLink=link)
    (service,) = resources.of("AWS::EC2::VPCEndpointService")
    (balancer,) = resources.ids(BALANCER)
    assert service["NetworkLoadBalancerArns"] == [f"ref-{balancer}"]
    # Unless told otherwise, nobody connects unseen.
    assert service["AcceptanceRequired"] is (accept is not False)
    (permissions,) = resources.of("AWS::EC2::VPCEndpointServicePermissions")
    assert permissions["AllowedPrincipals"] == [principal()]
    (name,) = resources.ids("AWS::EC2::VPCEndpointService")
    assert permissions["ServiceId"] == f"ref-{name}"


def test_private_link_traffic_passes_by_the_inbound_rules(default_config: Configuration) -> None:
    link = {"allowedPrincipalArns": [principal()]}
    (balancer,) = edge(default_config, privateLink=link).of(BALANCER)
    assert balancer[ENFORCE] == "off"


def test_without_private_link_the_rules_stay(default_config: Configuration) -> None:
    resources = edge(default_config)
    assert resources.ids("AWS::EC2::VPCEndpointService") == []
    (balancer,) = resources.of(BALANCER)
    assert balancer.get(ENFORCE, "on") == "on"
    assert "EndpointServiceName" not in resources.template["Outputs"]


def test_private_link_opens_nothing_else(default_config: Configuration) -> None:
    link = {"allowedPrincipalArns": [principal()]}
    groups = [
        edge(default_config, **settings).of("AWS::EC2::SecurityGroup")
        for settings in ({}, {"privateLink": link})
    ]
    assert groups[0] == groups[1]


@pytest.mark.parametrize(
    ("region", "partition"),
    [("us-east-1", "aws"), ("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn")],
)
@pytest.mark.parametrize("account", [None, ACCOUNT])
def test_callers_learn_the_name_of_the_service(
    default_config: Configuration, region: str, partition: str, account: str | None
) -> None:
    config = changed(
        default_config,
        deployment={"region": region, "account": account},
        network={"zones": [f"{region}a", f"{region}b"]},
    )
    template = edge_of(
        changed(config, edge={"privateLink": {"allowedPrincipalArns": [principal(partition)]}})
    )
    resources = Resources(Template.from_stack(template), partition=partition, region=region)
    (service,) = resources.ids("AWS::EC2::VPCEndpointService")
    output = resources.resolve(resources.template["Outputs"]["EndpointServiceName"]["Value"])
    assert output == f"{expected.ENDPOINT_SERVICE_PREFIXES[region]}{region}.ref-{service}"


def test_private_zone_serves_the_vpc(default_config: Configuration) -> None:
    resources = edge(default_config, privateDns=DNS)
    (zone,) = resources.of("AWS::Route53::HostedZone")
    assert zone["Name"] == "voice.internal."
    # A zone without a VPC is public.
    (vpc,) = zone["VPCs"]
    assert vpc["VPCRegion"] == "us-east-1"
    assert "-network-" in vpc["VPCId"]


@pytest.mark.parametrize("zone_id", [None, "Z0123456789ABCDEFGHIJ"])
def test_private_name_is_an_alias_of_the_load_balancer(
    default_config: Configuration, zone_id: str | None
) -> None:
    resources = edge(default_config, privateDns={**DNS, "hostedZoneId": zone_id})
    (record,) = resources.of("AWS::Route53::RecordSet")
    (balancer,) = resources.ids(BALANCER)
    assert (record["Name"], record["Type"]) == ("sonic.voice.internal.", "A")
    assert record["AliasTarget"]["DNSName"].endswith(f"att-{balancer}-DNSName")
    assert record["AliasTarget"]["HostedZoneId"] == f"att-{balancer}-CanonicalHostedZoneID"
    made = resources.ids("AWS::Route53::HostedZone")
    assert record["HostedZoneId"] == (zone_id or f"ref-{made[0]}")
    assert bool(made) is (zone_id is None)
    assert resources.template["Outputs"]["PrivateDnsName"]["Value"] == "sonic.voice.internal"


def test_without_a_name_there_is_no_zone(default_config: Configuration) -> None:
    resources = edge(default_config)
    assert resources.ids("AWS::Route53::HostedZone") == []
    assert resources.ids("AWS::Route53::RecordSet") == []
