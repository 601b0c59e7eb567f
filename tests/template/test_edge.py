"""The internal load balancer."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.constructs.load_balancer import StreamLoadBalancer
from sonic_eks.stacks.deployment import Stacks
from tests.expected import networking as expected
from tests.synth import changed, stacks_of
from tests.template.foundation import (
    ACCOUNT,
    CLUSTER_SECURITY_GROUP,
    edge_of,
    only,
    produced,
    resources,
    rules,
)

CERTIFICATE = f"arn:aws:acm:us-east-1:{ACCOUNT}:certificate/0f0f0f0f-0000-4000-8000-000000000000"


def edge(config: Configuration, **sections: Any) -> Template:
    return Template.from_stack(edge_of(changed(config, **sections)))


def listener(template: Template) -> dict[str, Any]:
    found: dict[str, Any] = only(template, "AWS::ElasticLoadBalancingV2::Listener")["Properties"]
    return found


def target_group(template: Template) -> dict[str, Any]:
    found: dict[str, Any] = only(template, "AWS::ElasticLoadBalancingV2::TargetGroup")["Properties"]
    return found


def load_balancer(template: Template) -> dict[str, Any]:
    found: dict[str, Any] = only(template, "AWS::ElasticLoadBalancingV2::LoadBalancer")[
        "Properties"
    ]
    return found


def attributes(pairs: list[dict[str, str]]) -> dict[str, str]:
    return {pair["Key"]: pair["Value"] for pair in pairs}


def test_load_balancer_is_internal_and_beside_its_targets(
    stacks: Stacks, templates: dict[str, Template]
) -> None:
    properties = load_balancer(templates["edge"])
    assert properties["Scheme"] == "internal"
    assert properties["Type"] == "network"
    (subnet,) = properties["Subnets"]
    network = stacks.network
    assert produced(subnet, templates) == network.resolve(network.serving_subnet.subnet_id)


def test_one_zone_needs_no_cross_zone_balancing(templates: dict[str, Template]) -> None:
    found = attributes(load_balancer(templates["edge"])["LoadBalancerAttributes"])
    assert found["load_balancing.cross_zone.enabled"] == "false"


@pytest.mark.parametrize("protected", [True, False])
def test_deletion_protection_follows_the_stacks(
    default_config: Configuration, protected: bool
) -> None:
    template = edge(
        default_config,
        deployment={"terminationProtection": protected},
        scaling={"acceptAssumedCapacity": True},
    )
    found = attributes(load_balancer(template)["LoadBalancerAttributes"])
    assert found["deletion_protection.enabled"] == str(protected).lower()


@pytest.mark.parametrize("name", ["v", "a" * 100])
def test_name_fits(default_config: Configuration, name: str) -> None:
    given = load_balancer(edge(default_config, deployment={"name": name}))["Name"]
    assert len(given) <= expected.LOAD_BALANCER_NAME_LIMIT
    assert given.startswith(name[:20])
    assert not given.startswith("internal-")


@pytest.mark.parametrize(
    ("settings", "port", "cidrs"),
    [
        ({}, 80, {"10.42.0.0/16"}),
        ({"clientCidrs": ["10.0.0.0/16", "172.31.0.0/20"]}, 80, {"10.0.0.0/16", "172.31.0.0/20"}),
        ({"certificateArn": CERTIFICATE}, 443, {"10.42.0.0/16"}),
        ({"listenerPort": 8443}, 8443, {"10.42.0.0/16"}),
    ],
)
def test_clients_reach_the_listener_alone(
    default_config: Configuration, settings: dict[str, Any], port: int, cidrs: set[str]
) -> None:
    template = edge(default_config, edge=settings)
    group = only(template, "AWS::EC2::SecurityGroup")
    assert rules(group, "Ingress") == {("tcp", port, port, cidr) for cidr in cidrs}
    assert rules(group, "Egress") == {("tcp", 5000, 5000, CLUSTER_SECURITY_GROUP)}
    assert listener(template)["Port"] == port


def test_load_balancer_has_its_group_from_the_start(default_config: Configuration) -> None:
    template = edge(default_config)
    (group,) = resources(template, "AWS::EC2::SecurityGroup")
    assert load_balancer(template)["SecurityGroups"] == [{"Fn::GetAtt": [group, "GroupId"]}]


def test_pods_admit_the_load_balancer_on_their_port(default_config: Configuration) -> None:
    template = edge(default_config)
    (group,) = resources(template, "AWS::EC2::SecurityGroup")
    ingress = only(template, "AWS::EC2::SecurityGroupIngress")["Properties"]
    assert ingress["GroupId"] == CLUSTER_SECURITY_GROUP
    assert ingress["SourceSecurityGroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    assert (ingress["IpProtocol"], ingress["FromPort"], ingress["ToPort"]) == ("tcp", 5000, 5000)


def test_cluster_does_not_wait_for_the_edge(templates: dict[str, Template]) -> None:
    ingress = only(templates["edge"], "AWS::EC2::SecurityGroupIngress")["Properties"]
    name, attribute = produced(ingress["GroupId"], templates)["Fn::GetAtt"]
    cluster = templates["cluster"].to_json()["Resources"]
    assert cluster[name]["Type"] == "AWS::EKS::Cluster"
    assert attribute == "ClusterSecurityGroupId"
    assert "-edge" not in str(cluster)


def test_targets_are_pods_checked_over_http(templates: dict[str, Template]) -> None:
    group = target_group(templates["edge"])
    assert (group["TargetType"], group["Protocol"], group["Port"]) == ("ip", "TCP", 5000)
    assert group["HealthCheckProtocol"] == "HTTP"
    assert group["HealthCheckPath"] == "/status"
    assert group["HealthCheckPort"] == "5000"
    # A dead pod leaves within a minute; one slow answer takes nobody out.
    assert 2 <= group["UnhealthyThresholdCount"] <= 10
    assert group["HealthCheckIntervalSeconds"] * group["UnhealthyThresholdCount"] <= 60
    assert 2 <= group["HealthyThresholdCount"] <= 10
    assert group["HealthCheckTimeoutSeconds"] < group["HealthCheckIntervalSeconds"]


@pytest.mark.parametrize(
    ("drain", "seconds"),
    [
        ({}, 720),
        ({"maxStreamSeconds": 0}, 120),
        ({"maxStreamSeconds": 60, "propagationSeconds": 300}, 360),
        ({"maxStreamSeconds": 720}, 840),
    ],
)
def test_connections_outlive_the_drain(
    default_config: Configuration, drain: dict[str, int], seconds: int
) -> None:
    found = attributes(target_group(edge(default_config, drain=drain))["TargetGroupAttributes"])
    assert found[expected.DEREGISTRATION_DELAY] == str(seconds)
    assert found[expected.DEREGISTRATION_CUTS] == "false"
    assert found[expected.UNHEALTHY_CUTS] == "false"
    assert found[expected.UNHEALTHY_DRAINING] == str(seconds)
    assert found[expected.PRESERVE_CLIENT_IP] == "false"


@pytest.mark.parametrize(
    ("drain_seconds", "delay"),
    [
        (0, expected.LEAST_DEREGISTRATION_SECONDS),
        (119, expected.LEAST_DEREGISTRATION_SECONDS),
        (3600, expected.MOST_DEREGISTRATION_SECONDS),
        (4200, expected.MOST_DEREGISTRATION_SECONDS),
    ],
)
def test_deregistration_delay_stays_within_its_limits(drain_seconds: int, delay: int) -> None:
    stack = cdk.Stack(cdk.App(), "Test")
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a"], nat_gateways=0)
    StreamLoadBalancer(
        stack,
        "Edge",
        vpc=vpc,
        subnet=vpc.isolated_subnets[0],
        name="edge",
        client_cidrs=["10.0.0.0/16"],
        target_security_group=ec2.SecurityGroup(stack, "Pods", vpc=vpc),
        port=80,
        target_port=5000,
        health_path="/status",
        certificate_arn=None,
        tcp_idle_timeout_seconds=350,
        drain_seconds=drain_seconds,
        deletion_protection=False,
    )
    found = attributes(target_group(Template.from_stack(stack))["TargetGroupAttributes"])
    assert found[expected.DEREGISTRATION_DELAY] == str(delay)
    assert found[expected.UNHEALTHY_DRAINING] == str(drain_seconds)


@pytest.mark.parametrize("seconds", [60, 350, 6000])
def test_tcp_listener_keeps_idle_streams(default_config: Configuration, seconds: int) -> None:
    found = listener(edge(default_config, edge={"tcpIdleTimeoutSeconds": seconds}))
    assert found["Protocol"] == "TCP"
    assert attributes(found["ListenerAttributes"]) == {"tcp.idle_timeout.seconds": str(seconds)}
    assert "Certificates" not in found


def test_tls_listener_has_the_certificate_and_no_idle_attribute(
    default_config: Configuration,
) -> None:
    found = listener(edge(default_config, edge={"certificateArn": CERTIFICATE}))
    assert found["Protocol"] == "TLS"
    assert found["Certificates"] == [{"CertificateArn": CERTIFICATE}]
    assert found["SslPolicy"] in expected.MODERN_TLS_POLICIES
    assert "ListenerAttributes" not in found


@pytest.mark.parametrize("settings", [{}, {"certificateArn": CERTIFICATE}])
def test_listener_forwards_to_the_pods(
    default_config: Configuration, settings: dict[str, Any]
) -> None:
    template = edge(default_config, edge=settings)
    (group,) = resources(template, "AWS::ElasticLoadBalancingV2::TargetGroup")
    (action,) = listener(template)["DefaultActions"]
    assert action == {"Type": "forward", "TargetGroupArn": {"Ref": group}}


def test_outputs_name_target_group_and_host(templates: dict[str, Template]) -> None:
    outputs = templates["edge"].to_json()["Outputs"]
    (group,) = resources(templates["edge"], "AWS::ElasticLoadBalancingV2::TargetGroup")
    (balancer,) = resources(templates["edge"], "AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert outputs["TargetGroupArn"]["Value"] == {"Ref": group}
    assert outputs["LoadBalancerDnsName"]["Value"] == {"Fn::GetAtt": [balancer, "DNSName"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("standalone", "protocol", "path"),
    [({"port": 9000}, "TCP", None), ({"port": 9000, "readinessPath": "/up"}, "HTTP", "/up")],
)
def test_a_server_that_stands_alone_is_reached_and_checked_where_it_is(
    default_config: Configuration, standalone: dict[str, Any], protocol: str, path: str | None
) -> None:
    config = changed(
        default_config,
        topology="standalone",
        standalone=standalone,
        models=[{"image": "server"}],
    )
    template = Template.from_stack(stacks_of(config).edge)
    group = target_group(template)
    assert (group["Port"], group["HealthCheckPort"]) == (9000, "9000")
    assert (group["HealthCheckProtocol"], group.get("HealthCheckPath")) == (protocol, path)
    (ingress,) = template.find_resources("AWS::EC2::SecurityGroupIngress").values()
    assert ingress["Properties"]["FromPort"] == ingress["Properties"]["ToPort"] == 9000
