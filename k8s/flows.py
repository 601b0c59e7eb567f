"""Who may talk to whom: the table that becomes NetworkPolicies.

A row names its ends; `ends` says what each is in a deployment. A row is left out where its
condition does not hold, or an end is missing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from sonic_eks.config import Configuration
from sonic_eks.k8s.namespaces import KEDA_NAMESPACE, MONITORING_NAMESPACE, SONIC_NAMESPACE
from sonic_eks.k8s.nats import CLIENT_PORT, CLUSTER_PORT, NATS
from sonic_eks.k8s.prometheus import PROMETHEUS, PROMETHEUS_PORT
from sonic_eks.k8s.sonic.api import API, API_PORT
from sonic_eks.k8s.sonic.license_proxy import LICENSE_PORT, LICENSE_PROXY
from sonic_eks.k8s.sonic.pods import METRICS_PORT
from sonic_eks.k8s.sonic.worker import WORKER

GATE_PORT = 8090
"""The stream gate's port, in pods that have one."""

_HTTPS = 443
# KEDA's chart, values `service.portHttpsTarget` and `webhooks.port`, and the port in its Service
# keda-operator.
_KEDA_METRICS_PORT = 6443
_KEDA_WEBHOOK_PORT = 9443
_KEDA_OPERATOR_PORT = 9666

# No address of the internet: private networks (RFC 1918), carriers' (RFC 6598) and link-local
# ones (RFC 3927), where the instance metadata service and the Pod Identity agent answer.
_NOT_OUTSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")


@dataclass(frozen=True)
class Pods:
    """The pods of one workload.

    Attributes
    ----------
    namespace : str
        Their namespace.
    labels : mapping
        Labels that select them. Where a Service leads to them, its selector has all of these: see
        `sonic_eks.k8s.network_policies`.
    """

    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Addresses:
    """Addresses that belong to no pod of ours.

    Attributes
    ----------
    cidrs : tuple of str
        IPv4 ranges.
    without : tuple of str
        Ranges inside them that are left out.
    """

    cidrs: tuple[str, ...]
    without: tuple[str, ...] = ()


End = Pods | Addresses


def _always(_: Configuration) -> bool:
    return True


def _connected(config: Configuration) -> bool:
    return config.license.mode == "connected"


@dataclass(frozen=True)
class Flow:
    """Connections that are allowed, from every source to every target.

    Attributes
    ----------
    sources, targets : tuple of str
        Names of ends: who opens the connection, and who accepts it.
    ports : tuple of int
        Ports of the targets.
    why : str
        What passes, for the reader of the policy.
    protocols : tuple of str
        Transport protocols.
    when : callable
        Whether a deployment has the flow.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    ports: tuple[int, ...]
    why: str
    protocols: tuple[str, ...] = ("TCP",)
    when: Callable[[Configuration], bool] = _always

    def pairs(self, present: Mapping[str, End]) -> Iterator[tuple[str, str]]:
        """Give every source with every target, as far as both are present."""
        for source, target in product(self.sources, self.targets):
            if source in present and target in present:
                yield source, target


FLOWS: tuple[Flow, ...] = (
    Flow(("load-balancer",), ("api",), (API_PORT,), "streams of callers, health checks"),
    Flow(("api", "worker"), ("nats",), (CLIENT_PORT,), "requests and audio"),
    Flow(("nats",), ("nats",), (CLUSTER_PORT,), "routes between the servers"),
    Flow(("api", "worker"), ("license-proxy",), (LICENSE_PORT,), "license"),
    Flow(("license-proxy",), ("vendor",), (_HTTPS,), "license, from the vendor", when=_connected),
    Flow(("prometheus",), ("api", "worker"), (METRICS_PORT, GATE_PORT), "metrics"),
    Flow(("keda-operator",), ("prometheus",), (PROMETHEUS_PORT,), "queries of the scalers"),
    Flow(
        ("keda-metrics",), ("keda-operator",), (_KEDA_OPERATOR_PORT,), "values of external metrics"
    ),
    Flow(("control-plane",), ("keda-metrics",), (_KEDA_METRICS_PORT,), "external metrics API"),
    Flow(("control-plane",), ("keda-webhooks",), (_KEDA_WEBHOOK_PORT,), "admission of scalers"),
    Flow(
        ("prometheus", "keda-operator", "keda-metrics", "keda-webhooks"),
        ("kubernetes-api",),
        (_HTTPS,),
        "Kubernetes API",
    ),
    # Prometheus and KEDA's webhooks resolve nothing: the Kubernetes API's address is in their
    # environment, and Prometheus asks it for those of its targets.
    Flow(
        ("api", "worker", "nats", "keda-operator", "keda-metrics"),
        ("dns",),
        (53,),
        "names",
        ("UDP", "TCP"),
    ),
    Flow(("license-proxy",), ("dns",), (53,), "names", ("UDP", "TCP"), when=_connected),
)


def ends(config: Configuration) -> dict[str, End]:
    """Return the ends of flows that a deployment has, by name.

    Parameters
    ----------
    config : Configuration
        The deployment.
    """
    return {
        "api": _ours(SONIC_NAMESPACE, API),
        "worker": _ours(SONIC_NAMESPACE, WORKER),
        "nats": _ours(SONIC_NAMESPACE, NATS),
        "license-proxy": _ours(SONIC_NAMESPACE, LICENSE_PROXY),
        "prometheus": _ours(MONITORING_NAMESPACE, PROMETHEUS),
        # Labels of the charts' pods and of their Services' selectors (kedacore/charts, keda).
        "keda-operator": Pods(KEDA_NAMESPACE, {"app": "keda-operator"}),
        "keda-metrics": Pods(KEDA_NAMESPACE, {"app": "keda-operator-metrics-apiserver"}),
        "keda-webhooks": Pods(KEDA_NAMESPACE, {"app": "keda-admission-webhooks"}),
        # Amazon EKS user guide, "Manage CoreDNS": Deployment coredns, Service kube-dns.
        "dns": Pods("kube-system", {"k8s-app": "kube-dns"}),
        # Network Load Balancers guide, "Edit target group attributes": without client IP
        # preservation the source is the load balancer's private address.
        "load-balancer": Addresses((config.network.serving_cidr,)),
        # Amazon EKS user guide, "VPC and subnet requirements": the control plane's interfaces are
        # in the subnets that the cluster is made with.
        "control-plane": Addresses(config.network.system_cidrs),
        "kubernetes-api": Addresses((f"{_first_address(config.cluster.service_cidr)}/32",)),
        "vendor": Addresses(("0.0.0.0/0",), _inside(config)),
    }


def _ours(namespace: str, name: str) -> Pods:
    return Pods(namespace, {"app.kubernetes.io/name": name})


def _first_address(cidr: str) -> str:
    """Return the first usable address of a range: in that of Services, the Kubernetes API's.

    kubernetes/kubernetes, pkg/controlplane/services.go, ServiceIPRange.
    """
    return str(ipaddress.IPv4Network(cidr)[1])


def _inside(config: Configuration) -> tuple[str, ...]:
    """Return all that is not the internet; a VPC that is there may have public addresses."""
    ranges = (*_NOT_OUTSIDE, config.network.cidr, config.cluster.service_cidr)
    collapsed = ipaddress.collapse_addresses(ipaddress.IPv4Network(r) for r in ranges)
    return tuple(str(network) for network in collapsed)
