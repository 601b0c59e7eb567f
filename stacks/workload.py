"""What runs in the cluster: every rendered chart, applied in order and deleted in reverse."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from sonic_eks.config import Configuration
from sonic_eks.constructs.node_guard import NodeGuard
from sonic_eks.constructs.secret_readers import SecretReaders
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.render import RenderedChart
from sonic_eks.k8s.sonic.readers import secret_readers
from sonic_eks.late import Late, resolve
from sonic_eks.lifecycle.order import steps_of
from sonic_eks.names import Names
from sonic_eks.stacks.base import DeploymentStack


class WorkloadStack(DeploymentStack):
    """Applies the cdk8s charts, in the steps of `sonic_eks.lifecycle.order`.

    The identities of pods that read secrets are here, beside the pods: they are made before them
    and deleted after them. An update changes what a role may read before it changes the pods.

    Its deletion drains the service: scalers go first, then what they scale, then what that lies
    on; nodes go last, and the guard sees to it that they are gone.

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
        guard = NodeGuard(
            self,
            "NodeGuard",
            cluster_name=Names(config.deployment.name).cluster,
            log_retention_days=config.cluster.log_retention_days,
        )
        readers = SecretReaders(
            self,
            "SecretReaders",
            cluster=cluster,
            namespace=SONIC_NAMESPACE,
            readers=secret_readers(config),
            key_arns=config.secrets.kms_key_arns,
        )
        applied: dict[str, eks.KubernetesManifest] = {}
        for step in steps_of(charts):
            manifest = eks.KubernetesManifest(
                self,
                step.name,
                cluster=cluster,
                manifest=[resolve(manifest, values.__getitem__) for manifest in step.manifests],
                prune=step.prune,
                # A first apply that failed half way left objects behind; create would refuse them.
                overwrite=True,
            )
            # Whatever comes first comes after the guard, which is then deleted last, and after who
            # may read secrets: a pod that starts finds its identity, and keeps it to its end.
            earlier: list[IDependable] = [applied[name] for name in step.after]
            manifest.node.add_dependency(*(earlier or [guard, readers]))
            applied[step.name] = manifest
