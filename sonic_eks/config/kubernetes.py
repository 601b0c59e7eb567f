"""Kubernetes versions, and what has to be bumped together with `cluster.version`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.upstream import UPSTREAMS

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration

ADDONS = (
    "aws-ebs-csi-driver",
    "aws-fsx-csi-driver",
    "aws-secrets-store-csi-driver-provider",
    "coredns",
    "eks-node-monitoring-agent",
    "eks-pod-identity-agent",
    "kube-proxy",
    "kube-state-metrics",
    "vpc-cni",
)
"""EKS add-ons that the cluster has, by name."""

_MINOR = re.compile(r"v?([0-9]+)\.([0-9]+)")


@dataclass(frozen=True)
class KubernetesRelease:
    """What one Kubernetes version asks of everything around it.

    Attributes
    ----------
    version : str
        Kubernetes version, such as 1.35.
    ami_release : str
        Oldest release of the EKS AL2023 images that has it, as in the alias.
    oldest_charts : dict of str to tuple of int
        Oldest minor release that supports it, by component of the catalogue.
    """

    version: str
    ami_release: str
    oldest_charts: dict[str, tuple[int, int]]

    @property
    def _minor(self) -> str:
        return self.version.partition(".")[2]

    @property
    def kubectl_layer_package(self) -> str:
        """Distribution with the kubectl of this version, for the function that applies manifests.

        The Kubernetes version skew policy admits a kubectl one minor version off; CDK has one
        distribution for each version, and asks for that of the cluster.
        """
        return f"aws-cdk.lambda-layer-kubectl-v{self._minor}"

    @property
    def kubectl_layer(self) -> tuple[str, str]:
        """Module and class of the kubectl layer."""
        return f"aws_cdk.lambda_layer_kubectl_v{self._minor}", f"KubectlV{self._minor}Layer"


# Charts: Karpenter's "Compatibility" page (1.14) and KEDA's "Cluster" page (2.22), tested versions.
# Images: EKS released 1.35 14 months before the end of its standard support, 2027-03-27 (EKS user
# guide, Kubernetes versions); 1.36 stands in the release notes of amazon-eks-ami from v20260610 on.
# Manifests stay those of cdk8s-plus-35: they hold stable APIs alone, which outlive their minor.
RELEASES = {
    release.version: release
    for release in (
        KubernetesRelease("1.35", "v20260127", {"karpenter": (1, 9), "keda": (2, 20)}),
        KubernetesRelease("1.36", "v20260610", {"karpenter": (1, 13), "keda": (2, 21)}),
    )
}
"""What belongs to each Kubernetes version that may be configured."""


def versions_belong_together(c: Configuration) -> None:
    """`cluster.version` has everything around it that it asks for.

    That is: the kubectl layer of that version (a Python package), releases of Karpenter and KEDA
    that support it, an `amiAlias` that has it, and `addonVersions`, if any, looked up for it.
    """
    release = RELEASES[c.cluster.version]
    behind = [*_package(release), *_charts(c, release), *_image(c, release), *_addons(c, release)]
    if behind:
        raise Refusal(
            release.version,
            f"a version that the rest is made for; for {release.version} bump {', '.join(behind)}",
            field="cluster.version",
        )


def _package(release: KubernetesRelease) -> list[str]:
    try:
        metadata.distribution(release.kubectl_layer_package)
    except metadata.PackageNotFoundError:
        return [
            f"the kubectl layer (install {release.kubectl_layer_package}, in requirements.txt too)"
        ]
    return []


def _charts(c: Configuration, release: KubernetesRelease) -> list[str]:
    behind: dict[tuple[str, str], list[str]] = {}
    for upstream in UPSTREAMS:
        oldest = release.oldest_charts.get(upstream.component)
        tag = c.registry.versions.get(upstream.name, upstream.tag)
        found = _MINOR.match(tag)
        # A tag of one's own making says nothing about the release.
        if oldest and found and tuple(map(int, found.groups())) < oldest:
            behind.setdefault((tag, ".".join(map(str, oldest))), []).append(upstream.name)
    return [
        f"registry.versions of {' and '.join(names)} ({tag}) to {least} or newer"
        for (tag, least), names in behind.items()
    ]


def _image(c: Configuration, release: KubernetesRelease) -> list[str]:
    alias = c.cluster.ami_alias
    if alias.rpartition("@")[2] >= release.ami_release:
        return []
    return [f"cluster.amiAlias ({alias}) to al2023@{release.ami_release} or newer"]


def _addons(c: Configuration, release: KubernetesRelease) -> list[str]:
    pinned = c.cluster.addon_versions.get("kube-proxy")
    if pinned is None or pinned.startswith(f"v{release.version}."):
        return []
    lookup = f"aws eks describe-addon-versions --kubernetes-version {release.version}"
    return [f"all of cluster.addonVersions (kube-proxy is {pinned}; {lookup} lists them)"]


def check_addon_versions(versions: dict[str, str]) -> None:
    """Refuse pins of add-ons that are not there, and pins that no Kubernetes version marks.

    kube-proxy alone carries the Kubernetes version in its own: it tells for which one the others
    were looked up.
    """
    for name in versions:
        if name not in ADDONS:
            close = difflib.get_close_matches(name, ADDONS, n=1)
            raise Refusal(
                name, f"add-ons: {', '.join(ADDONS)}", nearest=close[0] if close else None
            )
    if versions and "kube-proxy" not in versions:
        raise Refusal(
            ", ".join(versions),
            "these with a pin of kube-proxy, whose version tells for which Kubernetes version the"
            " others were chosen",
        )
