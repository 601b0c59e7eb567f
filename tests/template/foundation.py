"""The five stacks below and beside the cluster, in apps of their own, and how to read them.

A test that reads one stack makes that one, with what it stands on: a third of the time of all five.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.stacks.data import DataStack
from sonic_eks.stacks.edge import EdgeStack
from sonic_eks.stacks.network import NetworkStack
from sonic_eks.stacks.registry import RegistryStack
from sonic_eks.stacks.weights import WeightsStack
from tests.synth import cdk_context, once

ACCOUNT = "111122223333"
CLUSTER_SECURITY_GROUP = "sg-0c105e00000000000"

Resources = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Foundation:
    """The stacks of one configuration, without the cluster."""

    app: cdk.App
    network: NetworkStack
    registry: RegistryStack
    data: DataStack
    weights: WeightsStack
    edge: EdgeStack

    @property
    def stacks(self) -> tuple[cdk.Stack, ...]:
        return (self.network, self.registry, self.data, self.weights, self.edge)


@once
def network_of(config: Configuration) -> NetworkStack:
    """Return the Network stack of `config` alone."""
    return _network(cdk.App(context=cdk_context()), config)


@once
def registry_of(config: Configuration) -> RegistryStack:
    """Return the Registry stack of `config` alone."""
    return _registry(cdk.App(context=cdk_context()), config)


@once
def data_of(config: Configuration) -> DataStack:
    """Return the Data stack of `config` alone."""
    return _data(cdk.App(context=cdk_context()), config)


@once
def edge_of(config: Configuration) -> EdgeStack:
    """Return the Edge stack of `config` on its Network stack, as in `foundation`."""
    app = cdk.App(context=cdk_context())
    return _edge(app, config, _network(app, config))


def foundation(config: Configuration, *, outdir: Path | None = None) -> Foundation:
    """Return the stacks of `config`, with a security group in place of the cluster's."""
    app = cdk.App(context=cdk_context(), outdir=None if outdir is None else str(outdir))
    network, registry, data = _network(app, config), _registry(app, config), _data(app, config)
    weights = WeightsStack(
        app,
        f"{config.deployment.name}-weights",
        config=config,
        vpc=network.vpc,
        subnet=network.gpu_subnet,
        clients=[network.gpu_subnet, network.serving_subnet],
        bucket=data.bucket,
    )
    return Foundation(app, network, registry, data, weights, _edge(app, config, network))


def _network(app: cdk.App, config: Configuration) -> NetworkStack:
    return NetworkStack(app, f"{config.deployment.name}-network", config=config)


def _registry(app: cdk.App, config: Configuration) -> RegistryStack:
    name = f"{config.deployment.name}-registry"
    return RegistryStack(app, name, config=config, catalogue=Catalogue(config))


def _data(app: cdk.App, config: Configuration) -> DataStack:
    return DataStack(app, f"{config.deployment.name}-data", config=config)


def _edge(app: cdk.App, config: Configuration, network: NetworkStack) -> EdgeStack:
    return EdgeStack(
        app,
        f"{config.deployment.name}-edge",
        config=config,
        vpc=network.vpc,
        subnet=network.serving_subnet,
        cluster_security_group=ec2.SecurityGroup.from_security_group_id(
            network, "Cluster", CLUSTER_SECURITY_GROUP
        ),
    )


def resources(template: Template, resource_type: str) -> Resources:
    """Return the resources of a type by logical id."""
    found: Resources = template.find_resources(resource_type)
    return found


def only(template: Template, resource_type: str) -> dict[str, Any]:
    """Return the one resource of a type."""
    (resource,) = resources(template, resource_type).values()
    return resource


def produced(reference: dict[str, Any], templates: dict[str, Template]) -> Any:
    """Follow a reference to another stack: what that stack's output holds."""
    output = reference["Fn::GetStackOutput"]
    for template in templates.values():
        outputs = template.to_json().get("Outputs", {})
        if output["OutputName"] in outputs:
            return outputs[output["OutputName"]]["Value"]
    raise AssertionError(f"no stack gives out {output['OutputName']}")


def rules(security_group: dict[str, Any], direction: str) -> set[tuple[str, int, int, str]]:
    """Return the inline rules of a security group as (protocol, first port, last port, peer).

    The rule by which the CDK writes "nothing" is left out: it admits no packet.
    """
    found = set()
    for rule in security_group["Properties"].get(f"SecurityGroup{direction}", []):
        peer = rule.get("CidrIp") or str(
            rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
        )
        if peer != "255.255.255.255/32":
            found.add((rule["IpProtocol"], rule["FromPort"], rule["ToPort"], peer))
    return found
