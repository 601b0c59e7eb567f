"""Every public image and chart that the cluster reads, named once.

Vendor images are not here: their registry is the customer's secret with the vendor, so they come
from the configuration (`sonic_eks.catalogue`). Versions and places are those of the projects'
own release pages and chart values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For the type alone: the mirror's build ships this module without the configuration.
    from sonic_eks.config import Configuration


class Kind(StrEnum):
    """What an artifact is: the two media types differ, and charts keep their own name."""

    IMAGE = "image"
    CHART = "chart"


@dataclass(frozen=True)
class Need:
    """Which configurations need an artifact.

    Attributes
    ----------
    text : str
        For people: ``always``, or the field and value that ask for it.
    holds : callable
        Tells whether a configuration is one of them.
    """

    text: str
    holds: Callable[[Configuration], bool]


ALWAYS = Need("always", lambda _: True)


@dataclass(frozen=True)
class Upstream:
    """A public image or chart.

    Attributes
    ----------
    name : str
        Name in this project, unique over images and charts.
    kind : Kind
        Image or Helm chart.
    source : str
        Where it is copied from, without the tag: an OCI reference, or the address of a Helm
        repository for charts that their project does not publish as OCI.
    tag : str
        Pinned version.
    component : str
        What needs it.
    need : Need
        Which configurations need it.
    """

    name: str
    kind: Kind
    source: str
    tag: str
    component: str
    need: Need = ALWAYS

    @property
    def repository(self) -> str:
        """Repository path below the deployment's prefix; a chart's ends in the chart's name.

        CDK's Helm handler opens the last path part of the reference.
        """
        return f"{self.kind.value}s/{self.name}"

    @property
    def is_http(self) -> bool:
        """Whether the source is a Helm repository over HTTP rather than a registry."""
        return self.source.startswith("https://")


_DISTRIBUTED = Need("`topology` is distributed", lambda c: c.topology == "distributed")
_HEADROOM = Need("`scaling.headroomGpus` is not 0", lambda c: c.headroom_gpus > 0)

NATS_IMAGE = "nats"
PYTHON_IMAGE = "python"
"""Runs what this project puts into pods: standard library only, so the slim image will do."""

PAUSE_IMAGE = "pause"
"""Does nothing and holds what its pod asks for."""

UPSTREAMS: tuple[Upstream, ...] = (
    Upstream(
        "karpenter-crd",
        Kind.CHART,
        "oci://public.ecr.aws/karpenter/karpenter-crd",
        "1.14.1",
        "karpenter",
    ),
    Upstream(
        "karpenter", Kind.CHART, "oci://public.ecr.aws/karpenter/karpenter", "1.14.1", "karpenter"
    ),
    Upstream(
        "karpenter-controller",
        Kind.IMAGE,
        "public.ecr.aws/karpenter/controller",
        "1.14.1",
        "karpenter",
    ),
    Upstream(
        "aws-load-balancer-controller",
        Kind.CHART,
        "https://aws.github.io/eks-charts",
        "3.5.0",
        "load-balancer-controller",
    ),
    Upstream(
        "load-balancer-controller",
        Kind.IMAGE,
        "public.ecr.aws/eks/aws-load-balancer-controller",
        "v3.5.0",
        "load-balancer-controller",
    ),
    Upstream("keda", Kind.CHART, "https://kedacore.github.io/charts", "2.20.2", "keda"),
    Upstream("keda-operator", Kind.IMAGE, "ghcr.io/kedacore/keda", "2.20.2", "keda"),
    Upstream(
        "keda-metrics-apiserver",
        Kind.IMAGE,
        "ghcr.io/kedacore/keda-metrics-apiserver",
        "2.20.2",
        "keda",
    ),
    Upstream(
        "keda-admission-webhooks",
        Kind.IMAGE,
        "ghcr.io/kedacore/keda-admission-webhooks",
        "2.20.2",
        "keda",
    ),
    Upstream(
        "nvidia-device-plugin",
        Kind.CHART,
        "https://nvidia.github.io/k8s-device-plugin",
        "0.20.0",
        "nvidia-device-plugin",
    ),
    Upstream(
        "k8s-device-plugin",
        Kind.IMAGE,
        "nvcr.io/nvidia/k8s-device-plugin",
        "v0.20.0",
        "nvidia-device-plugin",
    ),
    Upstream("prometheus", Kind.IMAGE, "quay.io/prometheus/prometheus", "v3.13.1", "prometheus"),
    # Docker Hub's image, without its limit on anonymous pulls from a shared address.
    Upstream(
        NATS_IMAGE,
        Kind.IMAGE,
        "public.ecr.aws/docker/library/nats",
        "2.12.8-alpine",
        "sonic",
        _DISTRIBUTED,
    ),
    Upstream(
        PYTHON_IMAGE,
        Kind.IMAGE,
        "public.ecr.aws/docker/library/python",
        "3.13.11-slim-bookworm",
        "stream-gate",
    ),
    Upstream(PAUSE_IMAGE, Kind.IMAGE, "registry.k8s.io/pause", "3.10", "headroom", _HEADROOM),
)
