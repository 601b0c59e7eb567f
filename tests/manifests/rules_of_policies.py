"""House rules of NetworkPolicies: isolation of every pod, and forms that the VPC CNI enforces.

What admits what is in test_flows.py; here is what a policy must look like on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import yaml

from sonic_eks.k8s.render import Manifest
from tests.manifests.policies import selects, types_of
from tests.manifests.rules_base import Charts, name_of, of_kind, rule, workloads
from tests.manifests.rules_of_objects import HELM_NAMESPACES, before
from tests.synth import ROOT

# Pods that this project does not render, with their labels.
OTHER_PODS = yaml.safe_load((ROOT / "tests/expected/flows.yaml").read_text())["pods"].values()

# The only rule on the internet, and what it must leave out: private, carriers' and link-local
# networks (RFC 1918, RFC 6598, RFC 3927).
OUTWARD = "sonic/license-proxy"
NOT_THE_INTERNET = (
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
)  # fmt: skip

Rule = tuple[str, str, dict[str, Any]]


def policies(charts: Charts) -> dict[str, Manifest]:
    """Return every policy by namespace and name."""
    return {f"{p['metadata']['namespace']}/{p['metadata']['name']}": p
            for p in of_kind(charts, "NetworkPolicy")}  # fmt: skip


def rules(charts: Charts) -> Iterator[Rule]:
    """Give every rule with its policy's name and the key of its peers."""
    for name, policy in policies(charts).items():
        for key, peers in (("ingress", "from"), ("egress", "to")):
            for entry in policy["spec"].get(key, []):
                yield name, peers, entry


def pods(charts: Charts) -> list[tuple[str, dict[str, str]]]:
    """Return namespace and labels of every kind of pod."""
    ours = [
        (w["metadata"]["namespace"], w["spec"]["template"]["metadata"]["labels"])
        for w in workloads(charts)
    ]
    return ours + [(pod["namespace"], pod["labels"]) for pod in OTHER_PODS]


def denies_all(policy: Manifest) -> bool:
    """Tell whether a policy isolates every pod of its namespace both ways and allows nothing."""
    spec = policy["spec"]
    return (
        spec.get("podSelector") == {}
        and types_of(policy) == {"Ingress", "Egress"}
        and not spec.get("ingress")
        and not spec.get("egress")
    )


@rule
def every_namespace_denies_by_default(charts: Charts) -> list[str]:
    denied = {p["metadata"]["namespace"] for p in policies(charts).values() if denies_all(p)}
    made = {n["metadata"]["name"] for n in of_kind(charts, "Namespace")} | HELM_NAMESPACES
    used = {w["metadata"]["namespace"] for w in workloads(charts)}
    return [f"{namespace}: not isolated" for namespace in sorted((made | used) - denied)]


@rule
def policies_are_applied_before_the_pods_that_they_select(charts: Charts) -> list[str]:
    order = before(charts)
    found = []
    for chart in charts:
        for workload in workloads([chart]):
            namespace = workload["metadata"]["namespace"]
            late = [
                other.name
                for other in charts
                for policy in policies([other]).values()
                if policy["metadata"]["namespace"] == namespace
                and other.name not in order[chart.name]
            ]
            found += [f"{name_of(workload)}: not after {name}" for name in sorted(set(late))]
    return found


@rule
def policies_select_pods_that_exist(charts: Charts) -> list[str]:
    everywhere = pods(charts)
    found = []
    for name, policy in policies(charts).items():
        namespace, selector = policy["metadata"]["namespace"], policy["spec"]["podSelector"]
        if not any(ns == namespace and selects(selector, labels) for ns, labels in everywhere):
            found.append(f"{name}: selects no pod")
    for name, peers, entry in rules(charts):
        for peer in entry.get(peers, []):
            if "ipBlock" in peer:
                continue
            chosen = [
                labels
                for namespace, labels in everywhere
                if selects(
                    peer.get("namespaceSelector", {}), {"kubernetes.io/metadata.name": namespace}
                )
                and selects(peer.get("podSelector", {}), labels)
            ]
            if not chosen:
                found.append(f"{name}: a peer that is no pod")
    return found


@rule
def rules_name_their_peers_and_ports(charts: Charts) -> list[str]:
    found = []
    for name, peers, entry in rules(charts):
        if not entry.get(peers):
            found.append(f"{name}: from or to everywhere")
        for peer in entry.get(peers, []):
            selectors = [peer.get(key, {}) for key in ("namespaceSelector", "podSelector")]
            if "ipBlock" not in peer and not all(s.get("matchLabels") for s in selectors):
                found.append(f"{name}: a peer without namespace or labels")
        ports = entry.get("ports", [])
        # Named ports are looked up in ordinary containers alone, so not in sidecars.
        if not ports or not all(isinstance(port.get("port"), int) for port in ports):
            found.append(f"{name}: ports that are not numbers")
        if any("endPort" in port for port in ports):
            found.append(f"{name}: a range of ports")
    return found


@rule
def only_the_license_proxy_leaves_and_only_to_the_internet(charts: Charts) -> list[str]:
    found = []
    for name, peers, entry in rules(charts):
        for block in (peer["ipBlock"] for peer in entry.get(peers, []) if "ipBlock" in peer):
            network = ip_network(block["cidr"])
            left_out = [ip_network(cidr) for cidr in block.get("except", [])]
            if network.is_private and not network.is_link_local and network.prefixlen >= 16:
                continue
            missing = [
                cidr
                for cidr in NOT_THE_INTERNET
                if not any(ip_network(cidr).subnet_of(n) for n in left_out)  # type: ignore[arg-type]
            ]
            on_443 = [port["port"] for port in entry.get("ports", [])] == [443]
            if name != OUTWARD or peers != "to" or missing or not on_443:
                found.append(f"{name}: {block['cidr']}")
    return found


@rule
def policies_follow_services(charts: Charts) -> list[str]:
    """The VPC CNI sees the address of a Service, and adds it to a rule on certain conditions.

    aws/amazon-network-policy-controller-k8s, pkg/resolvers/endpoints.go: the Service's selector
    has all labels of the peer, and its target port is the rule's port. A target port by name needs
    a pod that is there; Amazon EKS user guide, "Limit Pod traffic": port and target port are equal.
    """
    found = []
    for service in of_kind(charts, "Service"):
        spec = service["spec"]
        if spec.get("clusterIP") == "None":
            continue
        behind = [
            labels
            for namespace, labels in pods(charts)
            if namespace == service["metadata"]["namespace"]
            and spec["selector"].items() <= labels.items()
        ]
        for name, peers, entry in rules(charts):
            selectors = [p["podSelector"] for p in entry.get(peers, []) if "podSelector" in p]
            for selector in selectors if peers == "to" else []:
                if not any(selects(selector, labels) for labels in behind):
                    continue
                if not selects(selector, spec["selector"]):
                    found.append(f"{name}: labels that {name_of(service)} does not select by")
                for port in entry.get("ports", []):
                    matching = [p for p in spec["ports"] if p["port"] == port["port"]]
                    if any(p.get("targetPort", p["port"]) != p["port"] for p in matching):
                        found.append(f"{name}: target port of {name_of(service)}")
    return found


@rule
def pods_have_one_policy_that_says_their_flows(charts: Charts) -> list[str]:
    """Of several, one would go before another, and refuse what that one allowed."""
    found = []
    kinds = pods(charts)
    for name, policy in policies(charts).items():
        spec = policy["spec"]
        if not policy["metadata"].get("annotations", {}).get("sonic-eks/flows"):
            found.append(f"{name}: does not say what it allows")
        if types_of(policy) != {"Ingress", "Egress"}:
            found.append(f"{name}: isolates one way")
        if not denies_all(policy) and not (spec.get("ingress") or spec.get("egress")):
            found.append(f"{name}: no rule")
    for namespace, labels in kinds:
        chosen = [
            name
            for name, policy in policies(charts).items()
            if policy["metadata"]["namespace"] == namespace
            and selects(policy["spec"]["podSelector"], labels)
            and not denies_all(policy)
        ]
        if len(chosen) > 1:
            found.append(f"several policies of the same pods: {', '.join(chosen)}")
    return found


@rule
def rules_on_one_range_have_the_same_exceptions(charts: Charts) -> list[str]:
    """aws/amazon-network-policy-controller-k8s, issue 121: a policy's exceptions were merged."""
    found = []
    seen: dict[tuple[str, str, str], list[str]] = {}
    for name, peers, entry in rules(charts):
        for block in (peer["ipBlock"] for peer in entry.get(peers, []) if "ipBlock" in peer):
            left_out = sorted(block.get("except", []))
            if seen.setdefault((name, peers, block["cidr"]), left_out) != left_out:
                found.append(f"{name}: {block['cidr']} with different exceptions")
    return found
