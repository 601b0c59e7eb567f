"""NetworkPolicies: every pod is isolated both ways, and has the flows of the table alone.

What the VPC CNI's network policy agent does beyond the API's own definition, and where it is
documented, is in docs/networking.md, "Between pods". It decides the form of the policies:

- It sees a packet before the address of a Service becomes that of a pod. Its controller adds that
  address to a rule on pods only if the Service's selector has every label of the rule, and finds
  the port without a look at pods only if the Service's target port is a number. For the Kubernetes
  API, a Service without pods, the rule names the address itself.
- It does not follow a change of `spec.podSelector` in a policy that is there, so a policy's name
  stands for one selector for ever: that of one end of one flow.
- Ports are numbers: names are looked up in ordinary containers alone, not in sidecars.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.flows import FLOWS, Addresses, End, Flow, Pods, ends
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import ISOLATED_NAMESPACES

FLOW_ANNOTATION = "sonic-eks/flow"
"""Annotation that says which flow a policy allows."""

_DENY = "default-deny"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_BOTH_WAYS = ("Ingress", "Egress")


class NetworkPolicies(DeploymentChart):
    """One policy for each end of each flow, and one for each namespace that allows nothing."""

    def build(self) -> None:
        """Add the policies; those that allow nothing last, so that a deletion begins with them."""
        present = ends(self.config)
        for flow in FLOWS:
            if flow.when(self.config):
                for source, target in flow.pairs(present):
                    self._allow(flow, source, target, present)
        for namespace in ISOLATED_NAMESPACES:
            self._policy(
                namespace,
                _DENY,
                flow="nothing, either way, but what another policy here allows",
                spec=k8s.NetworkPolicySpec(
                    pod_selector=k8s.LabelSelector(), policy_types=list(_BOTH_WAYS)
                ),
            )

    def _allow(self, flow: Flow, source: str, target: str, present: Mapping[str, End]) -> None:
        start, end = present[source], present[target]
        ports = [
            k8s.NetworkPolicyPort(port=k8s.IntOrString.from_number(port), protocol=protocol)
            for port in flow.ports
            for protocol in flow.protocols
        ]
        text = f"{source} to {target}: {flow.why}"
        if isinstance(start, Pods) and start.namespace in ISOLATED_NAMESPACES:
            rule = k8s.NetworkPolicyEgressRule(to=_peers(end), ports=ports)
            self._policy(
                start.namespace,
                f"{source}-to-{target}",
                flow=text,
                spec=k8s.NetworkPolicySpec(
                    pod_selector=_selector(start), policy_types=["Egress"], egress=[rule]
                ),
            )
        if isinstance(end, Pods) and end.namespace in ISOLATED_NAMESPACES:
            entry = k8s.NetworkPolicyIngressRule(from_=_peers(start), ports=ports)
            self._policy(
                end.namespace,
                f"{target}-from-{source}",
                flow=text,
                spec=k8s.NetworkPolicySpec(
                    pod_selector=_selector(end), policy_types=["Ingress"], ingress=[entry]
                ),
            )

    def _policy(self, namespace: str, name: str, *, flow: str, spec: k8s.NetworkPolicySpec) -> None:
        labels = Labels.of(self.config, name, component="network-policy")
        k8s.KubeNetworkPolicy(
            self,
            f"{namespace}-{name}",
            metadata=metadata(
                name, labels, namespace=namespace, annotations={FLOW_ANNOTATION: flow}
            ),
            spec=spec,
        )


def _selector(pods: Pods) -> k8s.LabelSelector:
    return k8s.LabelSelector(match_labels=dict(pods.labels))


def _peers(end: End) -> list[k8s.NetworkPolicyPeer]:
    if isinstance(end, Addresses):
        return [
            k8s.NetworkPolicyPeer(
                ip_block=k8s.IpBlock(cidr=cidr, except_=list(end.without) or None)
            )
            for cidr in end.cidrs
        ]
    # Both selectors in one peer: pods with the labels, in that namespace.
    return [
        k8s.NetworkPolicyPeer(
            namespace_selector=k8s.LabelSelector(match_labels={_NAMESPACE_LABEL: end.namespace}),
            pod_selector=_selector(end),
        )
    ]
