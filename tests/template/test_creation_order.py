"""Order that the references between resources do not make by themselves."""

from __future__ import annotations

import pytest
from aws_cdk.assertions import Template

from sonic_eks.k8s.render import RenderedChart
from sonic_eks.stacks.deployment import Stacks
from tests.cloudformation import Resources
from tests.template.dependency_graph import DependencyGraph, Node


@pytest.fixture(scope="module")
def network(templates: dict[str, Template]) -> Resources:
    return Resources(templates["network"])


@pytest.fixture(scope="module")
def graph(stacks: Stacks) -> DependencyGraph:
    return DependencyGraph.of(stacks)


def test_a_route_to_the_internet_waits_for_the_gateway(network: Resources) -> None:
    # CloudFormation user guide, DependsOn, "When a DependsOn attribute is required": a route of an
    # attached internet gateway.
    (attachment,) = network.ids("AWS::EC2::VPCGatewayAttachment")
    routes = [
        name for name in network.ids("AWS::EC2::Route") if "GatewayId" in network.properties(name)
    ]
    assert routes
    for name in routes:
        assert attachment in network.needs(name)


def test_a_nat_gateway_waits_for_its_way_out(network: Resources) -> None:
    for name in network.ids("AWS::EC2::NatGateway"):
        subnet = network.properties(name)["SubnetId"]
        (association,) = (
            other
            for other in network.ids("AWS::EC2::SubnetRouteTableAssociation")
            if network.properties(other)["SubnetId"] == subnet
        )
        table = network.properties(association)["RouteTableId"]
        (route,) = (
            other
            for other in network.ids("AWS::EC2::Route")
            if network.properties(other)["RouteTableId"] == table
        )
        assert {association, route} <= network.needs(name)


def applied(graph: DependencyGraph, kind: str, namespace: str | None, name: str) -> Node:
    """Return the resource that applies a Kubernetes object."""
    # A name may end in what only a deployment knows.
    known = name.partition("<<")[0]
    (found,) = [
        node
        for node, m in graph.objects(kind)
        if m["metadata"].get("namespace") == namespace
        and (m["metadata"]["name"] == name or known != name)
        and m["metadata"]["name"].startswith(known)
    ]
    return found


def test_a_chart_waits_for_all_of_the_charts_before_it(
    graph: DependencyGraph, default_charts: tuple[RenderedChart, ...]
) -> None:
    nodes = {
        chart.name: {
            applied(graph, m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"])
            for m in chart.manifests
        }
        for chart in default_charts
    }
    for chart in default_charts:
        for earlier in chart.after:
            for later_node in nodes[chart.name]:
                for earlier_node in nodes[earlier] - nodes[chart.name]:
                    assert graph.is_after(later_node, earlier_node), (later_node, earlier_node)


def test_every_node_class_outlives_every_pool(graph: DependencyGraph) -> None:
    pools = [node for node, _ in graph.objects("NodePool")]
    classes = [node for node, _ in graph.objects("EC2NodeClass")]
    assert len(pools) == len(classes) == 3
    for pool in pools:
        for node_class in classes:
            assert graph.is_after(pool, node_class)
