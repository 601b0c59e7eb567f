"""The controllers that run in the cluster, installed with Helm from the private registry."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from sonic_eks.catalogue import Catalogue
from sonic_eks.constructs import chart_values
from sonic_eks.constructs import karpenter as karpenter_aws
from sonic_eks.constructs import load_balancer_controller as lbc
from sonic_eks.constructs.chart_values import Values
from sonic_eks.k8s.namespaces import DEVICE_PLUGIN_NAMESPACE, KEDA_NAMESPACE
from sonic_eks.late import Late, resolve
from sonic_eks.upstream import Kind

# CDK's handler gives up after 15 minutes; Helm must end before it, to say what went wrong.
_TIMEOUT = cdk.Duration.minutes(10)


class Controllers(Construct):
    """Karpenter, AWS Load Balancer Controller, KEDA and the NVIDIA device plugin.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    cluster_name : str
        Its name, literal.
    catalogue : Catalogue
        The private registry: charts and every image in them.
    vpc_id : str
        The VPC.
    queue_name : str
        Karpenter's interruption queue.
    gpus : bool
        Whether the nodes of the GPU pool have any; those of a stand-in do not.
    target_labels : mapping
        Labels of the pods that the load balancer leads to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        cluster_name: str,
        catalogue: Catalogue,
        vpc_id: str,
        queue_name: str,
        gpus: bool,
        target_labels: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._catalogue = catalogue
        region = cdk.Stack.of(self).region
        # Helm never updates CRDs that lie in a chart's crds folder: they have a chart of their own.
        crds = self._chart("karpenter-crd", karpenter_aws.NAMESPACE, {})
        self.karpenter = self._chart(
            "karpenter",
            karpenter_aws.NAMESPACE,
            chart_values.karpenter(
                catalogue,
                cluster_name=cluster_name,
                cluster_endpoint=cluster.cluster_endpoint,
                queue_name=queue_name,
                region=region,
                service_account=karpenter_aws.SERVICE_ACCOUNT,
            ),
        )
        self.karpenter.node.add_dependency(crds)
        self.load_balancer_controller = self._chart(
            "aws-load-balancer-controller",
            lbc.NAMESPACE,
            chart_values.load_balancer_controller(
                catalogue,
                cluster_name=cluster_name,
                vpc_id=vpc_id,
                region=region,
                service_account=lbc.SERVICE_ACCOUNT,
                target_labels=target_labels,
            ),
        )
        self._chart("keda", KEDA_NAMESPACE, chart_values.keda(catalogue))
        self.nvidia_device_plugin = self._chart(
            "nvidia-device-plugin",
            DEVICE_PLUGIN_NAMESPACE,
            chart_values.nvidia_device_plugin(catalogue, gpus=gpus),
        )

    def _chart(self, name: str, namespace: str, values: Values) -> eks.HelmChart:
        account = cdk.Stack.of(self).account
        late = {Late.ACCOUNT: account}
        return eks.HelmChart(
            self,
            name,
            cluster=self._cluster,
            repository=resolve(self._catalogue.chart(name), late.__getitem__),
            chart=name,
            version=self._catalogue.tag(Kind.CHART, name),
            release=name,
            namespace=namespace,
            create_namespace=True,
            values=resolve(values, late.__getitem__) or None,
            # Ready before the next resource, and gone before its nodes and its role.
            wait=True,
            timeout=_TIMEOUT,
        )

    def install_after(self, *dependencies: IDependable) -> None:
        """Install every chart after `dependencies`, and delete it before them."""
        self.node.add_dependency(*dependencies)
