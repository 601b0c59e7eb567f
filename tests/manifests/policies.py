"""What NetworkPolicies admit: an evaluator of networking.k8s.io/v1, and nothing of the product.

After the Kubernetes documentation, "Network Policies". A connection needs the leave of its source
(egress) and of its target (ingress). A pod that no policy selects for a direction gives leave;
one that some do gives it if a rule of one of them does. Not evaluated, as no policy can change it:
traffic between a pod and its own node, probes among it, a pod's traffic to itself, and replies.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Policy = Mapping[str, Any]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Endpoint:
    """One end of a connection.

    Attributes
    ----------
    name : str
        What it is called.
    address : str
        Its IPv4 address.
    namespace : str or None
        Namespace of a pod; None for what is no pod.
    labels : mapping
        Labels of a pod.
    """

    name: str
    address: str
    namespace: str | None = None
    labels: Labels = field(default_factory=dict)

    @cached_property
    def kind(self) -> tuple[str | None, frozenset[tuple[str, str]]]:
        """What selectors tell it by."""
        return self.namespace, frozenset(self.labels.items())


@dataclass(frozen=True)
class Port:
    """A port of a connection's target."""

    number: int
    protocol: str = "TCP"


class Network:
    """Policies and the labels of namespaces.

    Parameters
    ----------
    policies : sequence of mapping
        NetworkPolicy objects.
    namespaces : mapping of str to mapping
        Labels by namespace; the API server adds each one's name to them.
    """

    def __init__(self, policies: Sequence[Policy], namespaces: Mapping[str, Labels]) -> None:
        self.policies = policies
        self.namespaces = {
            name: {**labels, "kubernetes.io/metadata.name": name}
            for name, labels in namespaces.items()
        }
        self._isolating: dict[Any, list[Policy]] = {}
        self._between: dict[Any, list[Mapping[str, Any]]] = {}

    def admits(self, source: Endpoint, target: Endpoint, port: Port) -> bool:
        """Tell whether a connection is possible."""
        return self._leave(source, target, port, "Egress", "egress", "to") and self._leave(
            target, source, port, "Ingress", "ingress", "from"
        )

    def policies_of(self, pod: Endpoint, direction: str) -> list[Policy]:
        """Return the policies that isolate a pod for ``Ingress`` or ``Egress``."""
        key = (pod.kind, direction)
        if key not in self._isolating:
            self._isolating[key] = [
                policy
                for policy in self.policies
                if policy["metadata"]["namespace"] == pod.namespace
                and direction in types_of(policy)
                and selects(policy["spec"].get("podSelector", {}), pod.labels)
            ]
        return self._isolating[key]

    def _leave(
        self, pod: Endpoint, other: Endpoint, port: Port, direction: str, rules: str, peers: str
    ) -> bool:
        isolating = self.policies_of(pod, direction)
        # The same for every port.
        key = (pod.kind, direction, other.kind, other.address)
        if key not in self._between:
            self._between[key] = [
                rule
                for policy in isolating
                for rule in policy["spec"].get(rules, [])
                if self._is_peer(policy, rule.get(peers), other)
            ]
        return not isolating or any(
            _on_port(rule.get("ports"), port) for rule in self._between[key]
        )

    def _is_peer(
        self, policy: Policy, peers: Sequence[Mapping[str, Any]] | None, other: Endpoint
    ) -> bool:
        # No list and an empty list both stand for every peer.
        return not peers or any(self._matches(policy, peer, other) for peer in peers)

    def _matches(self, policy: Policy, peer: Mapping[str, Any], other: Endpoint) -> bool:
        if unknown := peer.keys() - {"ipBlock", "namespaceSelector", "podSelector"}:
            raise ValueError(f"unknown peer: {unknown}")
        if "ipBlock" in peer:
            return _in_block(peer["ipBlock"], other.address)
        if other.namespace is None:
            return False
        if "namespaceSelector" in peer:
            here = selects(peer["namespaceSelector"], self.namespaces[other.namespace])
        else:
            here = other.namespace == policy["metadata"]["namespace"]
        return here and selects(peer.get("podSelector", {}), other.labels)


def types_of(policy: Policy) -> set[str]:
    """Return the directions that a policy is about: by default ingress, and egress with rules."""
    spec = policy["spec"]
    default = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return set(spec.get("policyTypes") or default)


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Tell whether a label selector matches; an empty one matches everything."""
    if unknown := selector.keys() - {"matchLabels", "matchExpressions"}:
        raise ValueError(f"unknown selector: {unknown}")
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        _fits(expression, labels) for expression in selector.get("matchExpressions", [])
    )


def _fits(expression: Mapping[str, Any], labels: Labels) -> bool:
    value = labels.get(expression["key"])
    values: Iterable[str] = expression.get("values", ())
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"unknown operator: {expression['operator']}")


def _on_port(ports: Sequence[Mapping[str, Any]] | None, port: Port) -> bool:
    if not ports:
        return True
    for entry in ports:
        first = entry.get("port")
        if first is not None and not isinstance(first, int):
            raise ValueError(f"a port by name: {first}")
        if entry.get("protocol", "TCP") != port.protocol:
            continue
        if first is None or first <= port.number <= entry.get("endPort", first):
            return True
    return False


def _in_block(block: Mapping[str, Any], address: str) -> bool:
    where = ipaddress.ip_address(address)
    return where in ipaddress.ip_network(block["cidr"]) and not any(
        where in ipaddress.ip_network(left_out) for left_out in block.get("except", [])
    )
