"""Every pair of pods and addresses, on every port: what is listed is admitted, the rest is not."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.k8s.render import Manifest
from tests.manifests.deployments import DOCUMENTS, EVERY, charts, configuration
from tests.manifests.policies import Endpoint, Network, Port
from tests.synth import ROOT, charts_of

EXPECTED: dict[str, Any] = yaml.safe_load((ROOT / "tests/expected/flows.yaml").read_text())
# What deployments.py has no document of: other ranges, three zones, subnets that are there, ports.
FILES = tuple(
    f"config/{name}.yaml" for name in ("existing-vpc", "production", "standalone", "smoke")
)
NAME = "app.kubernetes.io/name"

Connection = tuple[str, str, str, int]


@cache
def deployed(name: str) -> tuple[Configuration, list[Manifest]]:
    """Return a deployment's configuration and manifests."""
    if name in DOCUMENTS:
        config, rendered = configuration(name), charts(name)
    else:
        config = load_configuration(ROOT / name)
        rendered = charts_of(config)
    return config, [manifest for chart in rendered for manifest in chart.manifests]


def workloads(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Give the name, the pod template and the namespace of every workload."""
    for manifest in manifests:
        if manifest["kind"] in ("DaemonSet", "Deployment", "Job", "StatefulSet"):
            template = manifest["spec"]["template"]
            yield template["metadata"]["labels"][NAME], template, manifest["metadata"]["namespace"]


class World:
    """The ends of all connections of a deployment, and its policies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.config, manifests = deployed(name)
        self.subnets: dict[str, str] = EXPECTED["networks"][self.config.network.cidr]
        self.places: dict[str, str] = EXPECTED["subnets"][self.config.topology]
        self.ends: list[Endpoint] = []
        self.ports = set(EXPECTED["ports"])
        for group, template, namespace in workloads(manifests):
            spec = template["spec"]
            for container in spec["containers"] + spec.get("initContainers", []):
                self.ports |= {port["containerPort"] for port in container.get("ports", [])}
            # Two replicas: a pod may always talk to itself, not to the next one.
            for _ in range(2):
                self._pod(group, namespace, template["metadata"]["labels"], self.places[group])
        self.names = {end.name for end in self.ends}
        for group, pod in EXPECTED["pods"].items():
            self._pod(group, pod["namespace"], pod["labels"], pod["subnet"])
            self.ports |= set(pod["ports"])
        for group, address in (self.subnets | EXPECTED["addresses"]).items():
            self.ends.append(Endpoint(group, address))
        spaces = {
            m["metadata"]["name"]: m["metadata"] for m in manifests if m["kind"] == "Namespace"
        }
        others = {end.namespace for end in self.ends if end.namespace} - spaces.keys()
        self.network = Network(
            [m for m in manifests if m["kind"] == "NetworkPolicy"],
            {n: m.get("labels", {}) for n, m in spaces.items()} | {n: {} for n in others},
        )

    def _pod(self, group: str, namespace: str, labels: dict[str, str], subnet: str) -> None:
        base = ipaddress.ip_address(self.subnets[subnet])
        address = str(base + 20 + len(self.ends))
        self.ends.append(Endpoint(group, address, namespace, labels))

    def admitted(self) -> set[Connection]:
        """Return every connection that is possible and has an end in an isolated namespace."""
        return {
            (source.name, target.name, protocol, port)
            for source in self.ends
            for target in self.ends
            if source != target and {source.namespace, target.namespace} & set(EXPECTED["isolated"])
            for protocol in ("TCP", "UDP")
            for port in self.ports
            if self.network.admits(source, target, Port(port, protocol))
        }

    def expected(self) -> set[Connection]:
        """Return the connections that flows.yaml lists for what is here."""
        here = {end.name for end in self.ends}
        return {
            (source, target, protocol.upper(), port)
            for flow in EXPECTED["flows"]
            if flow.get("license", self.config.license.mode) == self.config.license.mode
            and self.name in flow.get("in", [self.name])
            for source in flow["from"]
            for target in flow["to"]
            if {source, target} <= here
            for protocol in ("tcp", "udp")
            for port in flow.get(protocol, [])
        }


@pytest.mark.parametrize("name", [*EVERY, *FILES])
def test_exactly_the_listed_flows_are_admitted(name: str) -> None:
    world = World(name)
    admitted, expected = world.admitted(), world.expected()
    assert admitted - expected == set(), "admitted, not listed"
    assert expected - admitted == set(), "listed, not admitted"


@pytest.mark.parametrize("name", [*EVERY, *FILES])
def test_every_workload_and_address_is_in_the_matrix(name: str) -> None:
    world = World(name)
    absent = set(world.places) - world.names
    assert absent <= {"sonic-headroom", "sonic-license-proxy"}
    assert ("sonic-headroom" in absent) == (world.config.headroom_gpus == 0)
    assert ("sonic-license-proxy" in absent) == (world.config.license.mode == "none")
    service = ipaddress.ip_network(world.config.cluster.service_cidr)
    assert ipaddress.ip_address(EXPECTED["addresses"]["kubernetes-api"]) in service
    assert len({end.address for end in world.ends}) == len(world.ends)


def test_every_listed_flow_is_of_a_known_end_and_deployment() -> None:
    known = {*EXPECTED["pods"], *EXPECTED["addresses"]}
    for section in ("subnets", "networks"):
        known |= {name for part in EXPECTED[section].values() for name in part}
    listed = {end for flow in EXPECTED["flows"] for end in (*flow["from"], *flow["to"])}
    assert listed <= known
    named = {name for flow in EXPECTED["flows"] for name in flow.get("in", ())}
    assert named <= {*DOCUMENTS, *FILES}


@pytest.mark.parametrize("address", ["instance-metadata", "pod-identity-agent"])
def test_no_pod_reaches_a_link_local_address(address: str, deployment: str) -> None:
    world = World(deployment)
    (target,) = (end for end in world.ends if end.name == address)
    for pod in world.ends:
        if pod.namespace in EXPECTED["isolated"]:
            assert not world.network.admits(pod, target, Port(80)), pod.name


@pytest.mark.parametrize("name", ["default", "standalone"])
@pytest.mark.parametrize(
    "part", [("default-deny", None), ("license-proxy", "egress"), ("license-proxy", "ingress")]
)
def test_the_matrix_notices_what_is_missing(name: str, part: tuple[str, str | None]) -> None:
    world = World(name)
    policy, rules = part
    left = [copy.deepcopy(p) for p in world.network.policies]
    for broken in [p for p in left if p["metadata"]["name"] == policy]:
        if rules:
            del broken["spec"][rules]
        else:
            left.remove(broken)
    assert left != list(world.network.policies)
    world.network = Network(left, world.network.namespaces)
    assert world.admitted() != world.expected()


@pytest.mark.parametrize("name", ["default", "standalone"])
def test_no_flow_is_refused_while_policies_go(name: str) -> None:
    """Pods drain while their policies are deleted: one by one, the denials first."""
    world = World(name)
    left = sorted(world.network.policies, key=lambda p: p["metadata"]["name"] != "default-deny")
    expected = world.expected()
    while left:
        left.pop(0)
        world.network = Network(left, world.network.namespaces)
        assert expected - world.admitted() == set(), [p["metadata"]["name"] for p in left]
