"""What runs in the cluster: every rendered chart, applied in order."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.k8s.render import RenderedChart
from sonic_eks.late import Late, resolve
from sonic_eks.stacks.base import DeploymentStack


class WorkloadStack(DeploymentStack):
    """Applies the cdk8s charts.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    charts : tuple of RenderedChart
        The charts in apply order.
    cluster : aws_eks_v2.ICluster
        The cluster.
    values : mapping of Late to str
        CloudFormation tokens for the markers in the charts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        charts: tuple[RenderedChart, ...],
        cluster: eks.ICluster,
        values: Mapping[Late, str],
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: Kubernetes objects",
        )
        applied: dict[str, eks.KubernetesManifest] = {}
        for chart in charts:
            applied[chart.name] = eks.KubernetesManifest(
                self,
                chart.name,
                cluster=cluster,
                manifest=[resolve(manifest, values.__getitem__) for manifest in chart.manifests],
                # A first apply that failed half way left objects behind; create would refuse them.
                overwrite=True,
            )
            for earlier in chart.after:
                applied[chart.name].node.add_dependency(applied[earlier])
