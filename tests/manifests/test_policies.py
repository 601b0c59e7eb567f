"""The evaluator of NetworkPolicies, by the examples of the Kubernetes documentation.

"Network Policies" (concepts/services-networking/network-policies), section by section; what each
example admits is what its text says.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.manifests.policies import Endpoint, Network, Port, selects, types_of

NAMESPACES: dict[str, dict[str, str]] = {
    "default": {},
    "other": {},
    "project": {"project": "myproject"},
    "frontend": {"namespace": "frontend"},
}

DB = Endpoint("db", "10.1.0.1", "default", {"role": "db"})
WEB = Endpoint("web", "10.1.0.2", "default", {"role": "web"})
FRONTEND = Endpoint("frontend", "10.1.0.3", "default", {"role": "frontend"})
FRONTEND_ELSEWHERE = Endpoint("frontend2", "10.1.0.4", "other", {"role": "frontend"})
PROJECT = Endpoint("project", "10.1.0.5", "project", {"role": "anything"})
CLIENT_IN_ALICE = Endpoint("client", "10.1.0.6", "alice", {"role": "client"})

REDIS = Port(6379)


def policy(text: str) -> dict[str, Any]:
    """Return the policy of an example's spec, in the namespace default."""
    return {"metadata": {"name": "example", "namespace": "default"}, "spec": yaml.safe_load(text)}


def network(*specs: str, namespaces: dict[str, dict[str, str]] | None = None) -> Network:
    """Return a network with the policies of examples."""
    return Network([policy(spec) for spec in specs], NAMESPACES | (namespaces or {}))


def outside(address: str) -> Endpoint:
    """Return an address that is no pod's."""
    return Endpoint(address, address)


# "The NetworkPolicy resource": test-network-policy.
THE_EXAMPLE = """
podSelector: {matchLabels: {role: db}}
policyTypes: [Ingress, Egress]
ingress:
  - from:
      - ipBlock: {cidr: 172.17.0.0/16, except: [172.17.1.0/24]}
      - namespaceSelector: {matchLabels: {project: myproject}}
      - podSelector: {matchLabels: {role: frontend}}
    ports: [{protocol: TCP, port: 6379}]
egress:
  - to:
      - ipBlock: {cidr: 10.0.0.0/24}
    ports: [{protocol: TCP, port: 5978}]
"""


@pytest.mark.parametrize(
    ("source", "admitted"),
    [
        (FRONTEND, True),
        (FRONTEND_ELSEWHERE, False),
        (PROJECT, True),
        (WEB, False),
        # "172.17.0.0-172.17.0.255 and 172.17.2.0-172.17.255.255"
        (outside("172.17.0.0"), True),
        (outside("172.17.0.255"), True),
        (outside("172.17.1.0"), False),
        (outside("172.17.1.255"), False),
        (outside("172.17.2.0"), True),
        (outside("172.17.255.255"), True),
        (outside("172.18.0.0"), False),
    ],
)
def test_the_example_admits_to_the_database(source: Endpoint, admitted: bool) -> None:
    assert network(THE_EXAMPLE).admits(source, DB, REDIS) is admitted


def test_the_example_admits_on_its_port_alone() -> None:
    assert not network(THE_EXAMPLE).admits(FRONTEND, DB, Port(6380))
    assert not network(THE_EXAMPLE).admits(FRONTEND, DB, Port(6379, "UDP"))


def test_the_example_lets_out_to_its_range_alone() -> None:
    there = network(THE_EXAMPLE)
    assert there.admits(DB, outside("10.0.0.7"), Port(5978))
    assert not there.admits(DB, outside("10.0.0.7"), Port(5979))
    assert not there.admits(DB, outside("10.0.1.7"), Port(5978))


def test_the_example_leaves_other_pods_alone() -> None:
    assert network(THE_EXAMPLE).admits(outside("192.0.2.1"), WEB, Port(80))
    assert network(THE_EXAMPLE).admits(FRONTEND, WEB, Port(80))


# "Behavior of to and from selectors": one element with both selectors, or two elements.
BOTH = """
podSelector: {}
ingress:
  - from:
      - namespaceSelector: {matchLabels: {user: alice}}
        podSelector: {matchLabels: {role: client}}
"""
EITHER = """
podSelector: {}
ingress:
  - from:
      - namespaceSelector: {matchLabels: {user: alice}}
      - podSelector: {matchLabels: {role: client}}
"""


@pytest.mark.parametrize(
    ("spec", "namespace", "role", "admitted"),
    [
        (BOTH, "alice", "client", True),
        (BOTH, "alice", "other", False),
        (BOTH, "default", "client", False),
        (EITHER, "alice", "client", True),
        (EITHER, "alice", "other", True),
        (EITHER, "default", "client", True),
        (EITHER, "other", "client", False),
    ],
)
def test_selectors_in_one_element_are_both_asked(
    spec: str, namespace: str, role: str, admitted: bool
) -> None:
    source = Endpoint("source", "10.1.0.9", namespace, {"role": role})
    there = network(spec, namespaces={"alice": {"user": "alice"}})
    assert there.admits(source, DB, REDIS) is admitted


# "Default policies".
DENY_INGRESS = "{podSelector: {}, policyTypes: [Ingress]}"
ALLOW_INGRESS = "{podSelector: {}, ingress: [{}], policyTypes: [Ingress]}"
DENY_EGRESS = "{podSelector: {}, policyTypes: [Egress]}"
ALLOW_EGRESS = "{podSelector: {}, egress: [{}], policyTypes: [Egress]}"
DENY_BOTH = "{podSelector: {}, policyTypes: [Ingress, Egress]}"


@pytest.mark.parametrize(
    ("specs", "comes_in", "goes_out"),
    [
        ((), True, True),
        ((DENY_INGRESS,), False, True),
        ((DENY_INGRESS, ALLOW_INGRESS), True, True),
        ((DENY_EGRESS,), True, False),
        ((DENY_EGRESS, ALLOW_EGRESS), True, True),
        ((DENY_BOTH,), False, False),
        # "policies do not conflict; they are additive": the order does not matter.
        ((ALLOW_EGRESS, DENY_BOTH), False, True),
        ((DENY_BOTH, ALLOW_EGRESS), False, True),
    ],
)
def test_default_policies(specs: tuple[str, ...], comes_in: bool, goes_out: bool) -> None:
    there = network(*specs)
    assert there.admits(FRONTEND_ELSEWHERE, WEB, Port(80)) is comes_in
    assert there.admits(WEB, FRONTEND_ELSEWHERE, Port(80)) is goes_out


def test_both_ends_must_admit() -> None:
    """ "both the egress policy on the source pod and the ingress policy ... need to allow"."""
    out = "{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{}]}"
    in_ = "{podSelector: {matchLabels: {role: db}}, policyTypes: [Ingress], ingress: [{}]}"
    assert not network(DENY_BOTH).admits(WEB, DB, REDIS)
    assert not network(DENY_BOTH, out).admits(WEB, DB, REDIS)
    assert not network(DENY_BOTH, in_).admits(WEB, DB, REDIS)
    assert network(DENY_BOTH, out, in_).admits(WEB, DB, REDIS)
    assert not network(DENY_BOTH, out, in_).admits(DB, WEB, REDIS)


# "Targeting a range of ports".
RANGE = """
podSelector: {matchLabels: {role: db}}
policyTypes: [Egress]
egress:
  - to: [{ipBlock: {cidr: 10.0.0.0/24}}]
    ports: [{protocol: TCP, port: 32000, endPort: 32768}]
"""


@pytest.mark.parametrize(
    ("port", "admitted"), [(31999, False), (32000, True), (32768, True), (32769, False)]
)
def test_a_range_of_ports(port: int, admitted: bool) -> None:
    assert network(RANGE).admits(DB, outside("10.0.0.7"), Port(port)) is admitted


# "Targeting multiple namespaces by label", and one by its name.
@pytest.mark.parametrize(
    ("selector", "namespace", "admitted"),
    [
        ("{matchExpressions: [{key: namespace, operator: In, values: [frontend, backend]}]}",
         "frontend", True),
        ("{matchExpressions: [{key: namespace, operator: In, values: [frontend, backend]}]}",
         "other", False),
        ("{matchLabels: {kubernetes.io/metadata.name: other}}", "other", True),
        ("{matchLabels: {kubernetes.io/metadata.name: other}}", "frontend", False),
        ("{}", "other", True),
    ],
)  # fmt: skip
def test_namespaces_by_label_and_by_name(selector: str, namespace: str, admitted: bool) -> None:
    spec = f"""
    podSelector: {{matchLabels: {{role: db}}}}
    policyTypes: [Egress]
    egress: [{{to: [{{namespaceSelector: {selector}}}]}}]
    """
    target = Endpoint("target", "10.1.0.9", namespace, {})
    assert network(spec).admits(DB, target, Port(80)) is admitted
    # Selectors select pods: an address that is none of theirs is no peer.
    assert not network(spec).admits(DB, outside("10.1.0.9"), Port(80))


def test_directions_that_a_policy_is_about() -> None:
    """API reference, NetworkPolicySpec, policyTypes: what it defaults to."""
    assert types_of(policy("{podSelector: {}}")) == {"Ingress"}
    assert types_of(policy("{podSelector: {}, egress: [{}]}")) == {"Ingress", "Egress"}
    assert types_of(policy("{podSelector: {}, egress: []}")) == {"Ingress"}
    assert types_of(policy("{podSelector: {}, policyTypes: [Egress]}")) == {"Egress"}


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ["a", "b"], {"x": "a"}, True),
        ("In", ["a", "b"], {}, False),
        ("NotIn", ["a"], {"x": "b"}, True),
        ("NotIn", ["a"], {}, True),
        ("NotIn", ["a"], {"x": "a"}, False),
        ("Exists", [], {"x": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {}, True),
        ("DoesNotExist", [], {"x": "a"}, False),
    ],
)
def test_expressions(
    operator: str, values: list[str], labels: dict[str, str], matches: bool
) -> None:
    """Kubernetes documentation, "Labels and Selectors", set-based requirements."""
    expression = {"key": "x", "operator": operator, "values": values}
    assert selects({"matchExpressions": [expression]}, labels) is matches


@pytest.mark.parametrize(
    "spec",
    [
        "{podSelector: {}, ingress: [{ports: [{port: http}]}]}",
        "{podSelector: {}, ingress: [{from: [{service: x}]}]}",
        "{podSelector: {fields: {}}}",
        "{podSelector: {matchExpressions: [{key: x, operator: Gt, values: ['1']}]}}",
    ],
)
def test_what_it_does_not_know_is_an_error(spec: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|by name"):
        network(spec).admits(FRONTEND, DB, REDIS)
