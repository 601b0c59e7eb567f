"""Who may talk to whom: the table that becomes NetworkPolicies.

A row names its ends; `ends` says what each is, and which of them a deployment has. A row whose
sources or targets are all missing is left out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sonic_eks.config import Configuration
from sonic_eks.config.standalone import GATE_PORT
from sonic_eks.k8s.namespaces import KEDA_NAMESPACE, MONITORING_NAMESPACE, SONIC_NAMESPACE
from sonic_eks.k8s.nats import CLIENT_PORT, CLUSTER_PORT, NATS
from sonic_eks.k8s.prometheus import PROMETHEUS, PROMETHEUS_PORT
from sonic_eks.k8s.sonic.front import API, STANDALONE, front_of
from sonic_eks.k8s.sonic.license_proxy import LICENSE_PORT, LICENSE_PROXY
from sonic_eks.k8s.sonic.pods import METRICS_PORT
from sonic_eks.k8s.sonic.worker import WORKER

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
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    ports: tuple[int, ...]
    why: str
    protocols: tuple[str, ...] = ("TCP",)


def flows(config: Configuration) -> tuple[Flow, ...]:
    """Return the flows of a deployment, between those of their ends that it has.

    Parameters
    ----------
    config : Configuration
        The deployment.
    """
    return tuple(_between(_table(config), ends(config)))


def _table(config: Configuration) -> Iterator[Flow]:
    yield Flow(
        ("load-balancer",),
        ("api", "standalone"),
        (front_of(config).port,),
        "streams of callers, health checks",
    )
    yield Flow(("api", "worker"), ("nats",), (CLIENT_PORT,), "requests and audio")
    yield Flow(("nats",), ("nats",), (CLUSTER_PORT,), "routes between the servers")
    yield Flow(("api", "worker", "standalone"), ("license-proxy",), (LICENSE_PORT,), "license")
    if config.license.mode == "connected":
        yield Flow(("license-proxy",), ("vendor",), (_HTTPS,), "license, from the vendor")
    yield Flow(("prometheus",), ("api", "worker"), (METRICS_PORT, GATE_PORT), "metrics")
    metrics_port = config.standalone.metrics_port
    yield Flow(
        ("prometheus",),
        ("standalone",),
        (GATE_PORT,) if metrics_port is None else (metrics_port, GATE_PORT),
        "metrics",
    )
    yield Flow(("keda-operator",), ("prometheus",), (PROMETHEUS_PORT,), "queries of the scalers")
    yield Flow(
        ("keda-metrics",), ("keda-operator",), (_KEDA_OPERATOR_PORT,), "values of external metrics"
    )
    yield Flow(("control-plane",), ("keda-metrics",), (_KEDA_METRICS_PORT,), "external metrics API")
    yield Flow(
        ("control-plane",), ("keda-webhooks",), (_KEDA_WEBHOOK_PORT,), "admission of scalers"
    )
    yield Flow(
        ("prometheus", "keda-operator", "keda-metrics", "keda-webhooks"),
        ("kubernetes-api",),
        (_HTTPS,),
        "Kubernetes API",
    )
    # Prometheus and KEDA's webhooks resolve nothing: the Kubernetes API's address is in their
    # environment, and Prometheus asks it for those of its targets.
    resolving: tuple[str, ...] = ("api", "worker", "nats", "keda-operator", "keda-metrics")
    if not config.standalone.stand_in:
        resolving += ("standalone",)
    if config.license.mode == "connected":
        resolving += ("license-proxy",)
    yield Flow(resolving, ("dns",), (53,), "names", ("UDP", "TCP"))


def _between(table: Iterable[Flow], present: Mapping[str, End]) -> Iterator[Flow]:
    for flow in table:
        sources = tuple(name for name in flow.sources if name in present)
        targets = tuple(name for name in flow.targets if name in present)
        if sources and targets:
            yield replace(flow, sources=sources, targets=targets)


def ends(config: Configuration) -> dict[str, End]:
    """Return the ends of flows that a deployment has, by name.

    Parameters
    ----------
    config : Configuration
        The deployment.
    """
    if config.topology == "standalone":
        service = {"standalone": STANDALONE}
    else:
        service = {"api": API, "worker": WORKER, "nats": NATS}
    if config.has_license_proxy:
        service["license-proxy"] = LICENSE_PROXY
    return {
        **{end: _ours(SONIC_NAMESPACE, name) for end, name in service.items()},
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
