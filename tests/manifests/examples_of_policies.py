"""What breaks each house rule of NetworkPolicies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sonic_eks.k8s.render import RenderedChart
from tests.manifests.deployments import charts
from tests.manifests.rules_base import Charts

Edit = Callable[[dict[str, Any]], object]


def edited(kind: str, namespace: str, name: str, edit: Edit) -> Callable[[], Charts]:
    """Return the default deployment with one object changed."""

    def build() -> Charts:
        copies = [
            RenderedChart(c.name, tuple(copy.deepcopy(c.manifests)), c.after)
            for c in charts("default")
        ]
        (target,) = [
            m
            for c in copies
            for m in c.manifests
            if (m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"])
            == (kind, namespace, name)
        ]
        edit(target)
        return copies

    return build


def policy(name: str, edit: Edit, namespace: str = "sonic") -> Callable[[], Charts]:
    """Return the default deployment with the spec of one policy changed."""
    return edited("NetworkPolicy", namespace, name, lambda m: edit(m["spec"]))


def rearranged(edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Charts:
    """Return the default deployment with other policies in their chart."""
    return [
        RenderedChart(c.name, tuple(edit(list(c.manifests))), c.after)
        if c.name == "network-policies"
        else c
        for c in charts("default")
    ]


def without(namespace: str, name: str) -> Charts:
    """Return the default deployment without one policy."""
    key = (namespace, name)
    return rearranged(
        lambda policies: [
            p for p in policies if (p["metadata"]["namespace"], p["metadata"]["name"]) != key
        ]
    )


def after(chart: str, *earlier: str) -> Charts:
    """Return the default deployment with another order."""
    return [
        RenderedChart(c.name, c.manifests, earlier if c.name == chart else c.after)
        for c in charts("default")
    ]


def peer_of(rule: str, peers: str, **parts: Any) -> Edit:
    """Return an edit of the first peer of a policy's first rule."""
    return lambda spec: spec[rule][0][peers][0].update(parts)


def port_of(rule: str, **parts: Any) -> Edit:
    """Return an edit of the first port of a policy's first rule."""
    return lambda spec: spec[rule][0]["ports"][0].update(parts)


PROXY = "license-proxy"
ANYWHERE = {"cidr": "0.0.0.0/0"}
DNS = [{"port": 53, "protocol": "UDP"}]

# (rule, what breaks it)
BROKEN_POLICIES: list[tuple[str, Callable[[], Charts]]] = [
    *(
        ("every_namespace_denies_by_default", lambda n=n: without(n, "default-deny"))
        for n in ("sonic", "monitoring", "keda", "nvidia-device-plugin")
    ),
    (
        "every_namespace_denies_by_default",
        policy("default-deny", lambda s: s.update(policyTypes=["Ingress"])),
    ),
    (
        "every_namespace_denies_by_default",
        policy("default-deny", lambda s: s.update(podSelector={"matchLabels": {"a": "b"}})),
    ),
    ("every_namespace_denies_by_default", policy("default-deny", lambda s: s.update(egress=[{}]))),
    (
        "every_namespace_denies_by_default",
        edited("Deployment", "sonic", "sonic-api", lambda m: m["metadata"].update(namespace="new")),
    ),
    (
        "policies_are_applied_before_the_pods_that_they_select",
        lambda: after("nats", "namespaces"),
    ),
    (
        "policies_are_applied_before_the_pods_that_they_select",
        lambda: after("prometheus", "namespaces"),
    ),
    (
        "policies_are_applied_before_the_pods_that_they_select",
        lambda: after("headroom", "nodes", "namespaces"),
    ),
    (
        "policies_select_pods_that_exist",
        policy("api", lambda s: s.update(podSelector={"matchLabels": {"app": "api"}})),
    ),
    (
        "policies_select_pods_that_exist",
        policy(
            "api",
            peer_of("egress", "to", podSelector={"matchLabels": {"app": "nats"}}),
        ),
    ),
    (
        "policies_select_pods_that_exist",
        policy(
            "api",
            peer_of(
                "egress",
                "to",
                namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "nats"}},
            ),
        ),
    ),
    ("rules_name_their_peers_and_ports", policy("api", lambda s: s.update(egress=[{}]))),
    (
        "rules_name_their_peers_and_ports",
        policy("api", lambda s: s["egress"][0].update(to=[])),
    ),
    (
        "rules_name_their_peers_and_ports",
        policy("api", lambda s: s["egress"][0].pop("ports")),
    ),
    (
        "rules_name_their_peers_and_ports",
        policy("api", peer_of("egress", "to", namespaceSelector={})),
    ),
    (
        "rules_name_their_peers_and_ports",
        policy("api", lambda s: s["egress"][0]["to"][0].pop("podSelector")),
    ),
    ("rules_name_their_peers_and_ports", policy("api", port_of("egress", port="client"))),
    ("rules_name_their_peers_and_ports", policy("api", port_of("egress", endPort=65535))),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy("api", lambda s: s["egress"][0].update(to=[{"ipBlock": ANYWHERE}])),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy("api", peer_of("ingress", "from", ipBlock=ANYWHERE)),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy("api", peer_of("ingress", "from", ipBlock={"cidr": "10.0.0.0/8"})),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy(
            "prometheus",
            peer_of("egress", "to", ipBlock={"cidr": "169.254.169.254/32"}),
            "monitoring",
        ),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy(PROXY, lambda s: s["egress"][0]["to"][0]["ipBlock"].pop("except")),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy(
            PROXY,
            lambda s: s["egress"][0]["to"][0]["ipBlock"]["except"].remove("169.254.0.0/16"),
        ),
    ),
    (
        "only_the_license_proxy_leaves_and_only_to_the_internet",
        policy(PROXY, port_of("egress", port=80)),
    ),
    (
        "policies_follow_services",
        policy(
            "api",
            peer_of(
                "egress",
                "to",
                podSelector={"matchLabels": {"app.kubernetes.io/component": "messaging"}},
            ),
        ),
    ),
    (
        "policies_follow_services",
        edited("Service", "sonic", "nats", lambda m: m["spec"]["ports"][0].update(targetPort="x")),
    ),
    (
        "policies_follow_services",
        edited(
            "Service",
            "monitoring",
            "prometheus",
            lambda m: m["spec"]["ports"][0].update(targetPort="http"),
        ),
    ),
    (
        "pods_have_one_policy_that_says_their_flows",
        edited("NetworkPolicy", "sonic", "api", lambda m: m["metadata"].pop("annotations")),
    ),
    (
        "pods_have_one_policy_that_says_their_flows",
        edited(
            "NetworkPolicy", "sonic", "default-deny", lambda m: m["metadata"].pop("annotations")
        ),
    ),
    (
        "pods_have_one_policy_that_says_their_flows",
        policy("license-proxy", lambda s: s.update(policyTypes=["Egress"])),
    ),
    (
        "pods_have_one_policy_that_says_their_flows",
        policy("api", lambda s: (s.pop("ingress"), s.pop("egress"))),
    ),
    (
        "pods_have_one_policy_that_says_their_flows",
        policy(
            "api",
            lambda s: s.update(podSelector={"matchLabels": {"app.kubernetes.io/name": "nats"}}),
        ),
    ),
    (
        "rules_on_one_range_have_the_same_exceptions",
        policy(PROXY, lambda s: s["egress"].append({"to": [{"ipBlock": ANYWHERE}], "ports": DNS})),
    ),
]
