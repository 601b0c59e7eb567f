"""The way from the load balancer to the pods that serve."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, custom_object, metadata
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.sonic.front import HTTP_PORT_NAME, front_of
from sonic_eks.late import Late


class Edge(DeploymentChart):
    """The Service of the pods that serve, and its binding to the target group.

    Both are applied before the pods: the load balancer controller gives a pod its readiness
    gate only when it is created, and only for bindings that are there by then.
    """

    def build(self) -> None:
        """Add the Service and the TargetGroupBinding."""
        front = front_of(self.config)
        labels = front.labels
        k8s.KubeService(
            self,
            "Service",
            metadata=metadata(front.name, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.ServiceSpec(
                type="ClusterIP",
                selector=labels.selector,
                ports=[
                    k8s.ServicePort(
                        name=HTTP_PORT_NAME,
                        port=front.port,
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
            name=front.name,
            namespace=SONIC_NAMESPACE,
            labels=labels,
            spec={
                "serviceRef": {"name": front.name, "port": front.port},
                "targetGroupARN": Late.TARGET_GROUP.marker,
                "targetGroupProtocol": "TCP",
                "targetType": "ip",
                "ipAddressType": "ipv4",
                "vpcID": Late.VPC.marker,
            },
        )
