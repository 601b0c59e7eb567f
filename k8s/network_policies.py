"""NetworkPolicies: every pod is isolated both ways, and has the flows of the table alone.

What the VPC CNI's network policy agent does beyond the API's own definition, and where it is
documented, is in docs/networking.md, "Between pods". It decides the form of the policies:

- It sees a packet before the address of a Service becomes that of a pod. Its controller adds that
  address to a rule on pods only if the Service's selector has every label of the rule, and finds
  the port without a look at pods only if the Service's target port is a number. For the Kubernetes
  API, a Service without pods, the rule names the address itself.
- It does not follow a change of `spec.podSelector` in a policy that is there, so a policy's name
  stands for one selector for ever: that of the end of its name.
- Its controller merges rules of a policy that have a range in common, in older versions with their
  exceptions. Ranges with different exceptions are therefore not in one policy.
- Ports are numbers: names are looked up in ordinary containers alone, not in sidecars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.flows import Addresses, End, Flow, Pods, ends, flows
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import ISOLATED_NAMESPACES

FLOWS_ANNOTATION = "sonic-eks/flows"
"""Annotation that says what a policy allows, flow by flow."""

_DENY = "default-deny"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class NetworkPolicies(DeploymentChart):
    """One policy for the pods of each end, and one for each namespace that allows nothing.

    The policy of an end has all its flows, both ways. With some policies gone, no flow of the
    table is refused, as long as those that allow nothing go first (`sonic_eks.lifecycle.order`).
    """

    def build(self) -> None:
        """Add the policies."""
        present, table = ends(self.config), flows(self.config)
        for name, end in present.items():
            if isinstance(end, Pods) and end.namespace in ISOLATED_NAMESPACES:
                self._allow(name, end, table, present)
        for namespace in ISOLATED_NAMESPACES:
            self._policy(namespace, _DENY, ["none but those of the other policies here"])

    def _allow(
        self, name: str, pods: Pods, table: Iterable[Flow], present: Mapping[str, End]
    ) -> None:
        lines, ingress, egress = [], [], []
        for flow in table:
            if name in flow.targets:
                lines.append(f"from {', '.join(flow.sources)}: {flow.why}")
                peers = _peers(present[source] for source in flow.sources)
                ingress.append(k8s.NetworkPolicyIngressRule(from_=peers, ports=_ports(flow)))
            if name in flow.sources:
                lines.append(f"to {', '.join(flow.targets)}: {flow.why}")
                peers = _peers(present[target] for target in flow.targets)
                egress.append(k8s.NetworkPolicyEgressRule(to=peers, ports=_ports(flow)))
        self._policy(
            pods.namespace, name, lines, selector=_selector(pods), ingress=ingress, egress=egress
        )

    def _policy(
        self,
        namespace: str,
        name: str,
        lines: list[str],
        *,
        selector: k8s.LabelSelector | None = None,
        ingress: list[k8s.NetworkPolicyIngressRule] | None = None,
        egress: list[k8s.NetworkPolicyEgressRule] | None = None,
    ) -> None:
        labels = Labels.of(self.config, name, component="network-policy")
        k8s.KubeNetworkPolicy(
            self,
            f"{namespace}-{name}",
            metadata=metadata(
                name,
                labels,
                namespace=namespace,
                annotations={FLOWS_ANNOTATION: "; ".join(lines)},
            ),
            spec=k8s.NetworkPolicySpec(
                pod_selector=selector or k8s.LabelSelector(),
                policy_types=["Ingress", "Egress"],
                ingress=ingress or None,
                egress=egress or None,
            ),
        )


def _ports(flow: Flow) -> list[k8s.NetworkPolicyPort]:
    return [
        k8s.NetworkPolicyPort(port=k8s.IntOrString.from_number(port), protocol=protocol)
        for port in flow.ports
        for protocol in flow.protocols
    ]


def _selector(pods: Pods) -> k8s.LabelSelector:
    return k8s.LabelSelector(match_labels=dict(pods.labels))


def _peers(others: Iterable[End]) -> list[k8s.NetworkPolicyPeer]:
    return [peer for other in others for peer in _peers_of(other)]


def _peers_of(end: End) -> Iterable[k8s.NetworkPolicyPeer]:
    if isinstance(end, Addresses):
        for cidr in end.cidrs:
            block = k8s.IpBlock(cidr=cidr, except_=list(end.without) or None)
            yield k8s.NetworkPolicyPeer(ip_block=block)
    else:
        # Both selectors in one peer: pods with the labels, in that namespace.
        yield k8s.NetworkPolicyPeer(
            namespace_selector=k8s.LabelSelector(match_labels={_NAMESPACE_LABEL: end.namespace}),
            pod_selector=_selector(end),
        )
