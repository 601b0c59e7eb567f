"""Network policies and the templates: what enforces them, and where their addresses come from."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import load_configuration
from sonic_eks.k8s.render import RenderedChart
from tests.manifests.rules_of_objects import HELM_NAMESPACES
from tests.synth import ROOT, charts_of, stacks_of

Resources = dict[str, Any]
ADDON = "AWS::EKS::Addon"


def unenforced(charts: tuple[RenderedChart, ...], cluster: Resources) -> list[str]:
    """Return the policies that nothing enforces.

    Amazon EKS user guide, "Restrict Pod network traffic with Kubernetes network policies": the
    vpc-cni add-on does with ``enableNetworkPolicy: "true"``, by default it does not.
    """
    values = [
        json.loads(resource["Properties"].get("ConfigurationValues") or "{}")
        for resource in cluster.values()
        if resource["Type"] == ADDON and resource["Properties"]["AddonName"] == "vpc-cni"
    ]
    if [v.get("enableNetworkPolicy") for v in values] == ["true"]:
        return []
    return [
        f"{m['metadata']['namespace']}/{m['metadata']['name']}"
        for chart in charts
        for m in chart.manifests
        if m["kind"] == "NetworkPolicy"
    ]


@pytest.fixture(scope="module")
def cluster(templates: dict[str, Template]) -> Resources:
    """The resources of the cluster's stack."""
    resources: Resources = templates["cluster"].to_json()["Resources"]
    return resources


def with_values(cluster: Resources, edit: Callable[[Resources, str], object]) -> Resources:
    """Return the cluster's resources with its CNI add-on edited."""
    changed = copy.deepcopy(cluster)
    (name,) = (
        name
        for name, resource in changed.items()
        if resource["Type"] == ADDON and resource["Properties"]["AddonName"] == "vpc-cni"
    )
    edit(changed, name)
    return changed


def set_values(**values: Any) -> Callable[[Resources, str], object]:
    """Return an edit that gives the add-on other configuration values."""
    return lambda resources, name: resources[name]["Properties"].update(
        ConfigurationValues=json.dumps(values)
    )


def test_the_cni_enforces_what_is_rendered(
    default_charts: tuple[RenderedChart, ...], cluster: Resources
) -> None:
    assert any(m["kind"] == "NetworkPolicy" for c in default_charts for m in c.manifests)
    assert unenforced(default_charts, cluster) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isolated", "existing-vpc", "production"])
def test_the_cni_enforces_them_in_every_configuration(name: str) -> None:
    config = load_configuration(ROOT / "config" / f"{name}.yaml")
    template = Template.from_stack(stacks_of(config).by_name["cluster"])
    assert unenforced(charts_of(config), template.to_json()["Resources"]) == []


@pytest.mark.parametrize(
    "edit",
    [
        set_values(),
        set_values(enableNetworkPolicy="false"),
        set_values(env={"NETWORK_POLICY_ENFORCING_MODE": "standard"}),
        lambda resources, name: resources[name]["Properties"].pop("ConfigurationValues"),
        lambda resources, name: resources.pop(name),
    ],
    ids=["no values", "off", "mode alone", "none given", "no add-on"],
)
def test_policies_without_enforcement_are_found(
    default_charts: tuple[RenderedChart, ...],
    cluster: Resources,
    edit: Callable[[Resources, str], object],
) -> None:
    found = unenforced(default_charts, with_values(cluster, edit))
    assert "sonic/default-deny" in found
    without = tuple(c for c in default_charts if c.name != "network-policies")
    assert unenforced(without, with_values(cluster, edit)) == []


def ranges(charts: tuple[RenderedChart, ...], name: str, rules: str) -> set[str]:
    """Return the ranges of addresses that a policy names in its ``ingress`` or ``egress``."""
    (policy,) = (
        m
        for chart in charts
        for m in chart.manifests
        if m["kind"] == "NetworkPolicy" and m["metadata"]["name"] == name
    )
    peers = [peer for e in policy["spec"][rules] for peer in e.get("from", e.get("to"))]
    return {peer["ipBlock"]["cidr"] for peer in peers if "ipBlock" in peer}


def cidrs(network: Mapping[str, Any], subnets: list[Any]) -> set[str]:
    """Return the ranges of subnets that another stack refers to."""
    outputs, resources = network["Outputs"], network["Resources"]
    return {
        resources[outputs[subnet["Fn::GetStackOutput"]["OutputName"]]["Value"]["Ref"]][
            "Properties"
        ]["CidrBlock"]
        for subnet in subnets
    }


def one(template: Template, kind: str) -> Any:
    """Return the properties of the only resource of a type."""
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def test_the_load_balancers_addresses_are_those_of_the_policy(
    default_charts: tuple[RenderedChart, ...], templates: dict[str, Template]
) -> None:
    balancer = one(templates["edge"], "AWS::ElasticLoadBalancingV2::LoadBalancer")
    subnets = cidrs(templates["network"].to_json(), balancer["Subnets"])
    assert subnets == ranges(default_charts, "api", "ingress")
    # With client addresses the sources would be those of the callers.
    group = one(templates["edge"], "AWS::ElasticLoadBalancingV2::TargetGroup")
    assert {"Key": "preserve_client_ip.enabled", "Value": "false"} in group["TargetGroupAttributes"]


def test_the_control_planes_addresses_are_those_of_the_policies(
    default_charts: tuple[RenderedChart, ...], templates: dict[str, Template]
) -> None:
    cluster = one(templates["cluster"], "AWS::EKS::Cluster")
    subnets = cidrs(templates["network"].to_json(), cluster["ResourcesVpcConfig"]["SubnetIds"])
    for name in ("keda-metrics", "keda-webhooks"):
        assert ranges(default_charts, name, "ingress") == subnets
    assert cluster["KubernetesNetworkConfig"]["ServiceIpv4Cidr"] == "172.20.0.0/16"
    assert ranges(default_charts, "prometheus", "egress") == {"172.20.0.1/32"}


def test_helm_makes_the_namespaces_that_are_isolated(templates: dict[str, Template]) -> None:
    charts = templates["cluster"].find_resources("Custom::AWSCDK-EKS-HelmChart").values()
    made = {c["Properties"]["Namespace"] for c in charts if c["Properties"]["CreateNamespace"]}
    assert made - {"kube-system"} == HELM_NAMESPACES
