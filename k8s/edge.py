"""The way from the load balancer to the API pods."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, custom_object, metadata
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.sonic.api import API, API_PORT, HTTP_PORT_NAME, api_labels
from sonic_eks.late import Late


class Edge(DeploymentChart):
    """The API's Service and its binding to the target group.

    Both are applied before the API pods: the load balancer controller gives a pod its readiness
    gate only when it is created, and only for bindings that are there by then.
    """

    def build(self) -> None:
        """Add the Service and the TargetGroupBinding."""
        labels = api_labels(self.config)
        k8s.KubeService(
            self,
            "Service",
            metadata=metadata(API, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.ServiceSpec(
                type="ClusterIP",
                selector=labels.selector,
                ports=[
                    k8s.ServicePort(
                        name=HTTP_PORT_NAME,
                        port=API_PORT,
                        target_port=k8s.IntOrString.from_string(HTTP_PORT_NAME),
                    )
                ],
            ),
        )
        # Without `networking` the controller edits no security group, and with type, protocol,
        # VPC and address type given its webhook asks AWS nothing.
        custom_object(
            self,
            "Binding",
            api_version="elbv2.k8s.aws/v1beta1",
            kind="TargetGroupBinding",
            name=API,
            namespace=SONIC_NAMESPACE,
            labels=labels,
            spec={
                "serviceRef": {"name": API, "port": API_PORT},
                "targetGroupARN": Late.TARGET_GROUP.marker,
                "targetGroupProtocol": "TCP",
                "targetType": "ip",
                "ipAddressType": "ipv4",
                "vpcID": Late.VPC.marker,
            },
        )
