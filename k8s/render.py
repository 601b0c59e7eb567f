"""Rendering of every chart to plain manifests, in the order in which they apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cdk8s

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.k8s.chart import DeploymentChart
from sonic_eks.k8s.edge import Edge
from sonic_eks.k8s.headroom import Headroom
from sonic_eks.k8s.namespaces import Namespaces
from sonic_eks.k8s.nats import Nats
from sonic_eks.k8s.network_policies import NetworkPolicies
from sonic_eks.k8s.nodes import NodePools, karpenter_pools
from sonic_eks.k8s.prometheus import Prometheus
from sonic_eks.k8s.scaling import Scaling
from sonic_eks.k8s.sonic.api import Api
from sonic_eks.k8s.sonic.license_proxy import LicenseProxy
from sonic_eks.k8s.sonic.standalone import Standalone
from sonic_eks.k8s.sonic.worker import Workers
from sonic_eks.k8s.stream_gate import StreamGate
from sonic_eks.k8s.weights import WeightsVolume

Manifest = dict[str, Any]


@dataclass(frozen=True)
class RenderedChart:
    """The manifests of one chart.

    Attributes
    ----------
    name : str
        Name of the chart, of its file in ``DIR/k8s`` and of its construct.
    manifests : tuple of dict
        Kubernetes objects in apply order; late values are markers (`sonic_eks.late`).
    after : tuple of str
        Names of the charts that must be applied before this one.
    """

    name: str
    manifests: tuple[Manifest, ...]
    after: tuple[str, ...]


# In apply order. What is deleted goes the other way round: scalers before what they scale,
# everything before its namespace, and the nodes last, when no pod needs them to end on.
_CHARTS: tuple[tuple[str, type[DeploymentChart], tuple[str, ...]], ...] = (
    ("nodes", NodePools, ()),
    ("namespaces", Namespaces, ("nodes",)),
    ("weights", WeightsVolume, ("namespaces",)),
    ("network-policies", NetworkPolicies, ("namespaces",)),
    ("prometheus", Prometheus, ("network-policies",)),
    ("nats", Nats, ("network-policies",)),
    ("license-proxy", LicenseProxy, ("network-policies",)),
    ("edge", Edge, ("namespaces",)),
    ("stream-gate", StreamGate, ("namespaces",)),
    ("api", Api, ("weights", "nats", "license-proxy", "edge", "stream-gate")),
    (
        "standalone",
        Standalone,
        ("nodes", "weights", "network-policies", "license-proxy", "edge", "stream-gate"),
    ),
    ("workers", Workers, ("nodes", "weights", "nats", "license-proxy", "stream-gate")),
    ("headroom", Headroom, ("nodes", "network-policies")),
    ("scaling", Scaling, ("prometheus", "api", "workers", "standalone")),
)


def _unwanted(config: Configuration) -> set[str]:
    """Return the charts that a deployment does not need."""
    found = {"nats", "api", "workers"} if config.topology == "standalone" else {"standalone"}
    if not karpenter_pools(config):
        found.add("nodes")
    if not config.has_license_proxy:
        found.add("license-proxy")
    if not config.headroom_gpus:
        found.add("headroom")
    return found


def render_charts(config: Configuration, catalogue: Catalogue) -> tuple[RenderedChart, ...]:
    """Render every chart of a deployment.

    Parameters
    ----------
    config : Configuration
        The deployment.
    catalogue : Catalogue
        References into the private registry.

    Returns
    -------
    tuple of RenderedChart
        The charts in apply order; a chart that the deployment does not need is left out.
    """
    app = cdk8s.App()
    unwanted = _unwanted(config)
    wanted = [chart for chart in _CHARTS if chart[0] not in unwanted]
    names = {name for name, _, _ in wanted}
    return tuple(
        RenderedChart(
            name=name,
            manifests=tuple(chart(app, name, config=config, catalogue=catalogue).to_json()),
            after=tuple(earlier for earlier in after if earlier in names),
        )
        for name, chart, after in wanted
    )
