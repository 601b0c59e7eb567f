"""Identity of the AWS Load Balancer Controller."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.constructs.acknowledgements import acknowledge, as_printed
from sonic_eks.constructs.pod_identity import PodIdentityRole

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "aws-load-balancer-controller"

# The controller's installation guide, minimum permissions for TargetGroupBindings that leave
# security groups alone. Describe calls know no resource; the others are held to target groups
# that carry the deployment's tag.
_DESCRIBE = (
    "ec2:DescribeInstances",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
)
_CHANGE = (
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:RegisterTargets",
)


class LoadBalancerControllerRole(PodIdentityRole):
    """A role that registers and deregisters targets of this deployment.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    deployment : str
        Value of the tag ``sonic-eks:deployment`` on the target groups.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: eks.ICluster, deployment: str
    ) -> None:
        target_groups = cdk.Stack.of(scope).format_arn(
            service="elasticloadbalancing", resource="targetgroup", resource_name="*"
        )
        tagged = {"StringEquals": {"aws:ResourceTag/sonic-eks:deployment": deployment}}
        statement = iam.PolicyStatement
        document = iam.PolicyDocument(
            statements=[
                statement(actions=list(_DESCRIBE), resources=["*"]),
                statement(actions=list(_CHANGE), resources=[target_groups], conditions=tagged),
            ]
        )
        super().__init__(
            scope,
            construct_id,
            cluster=cluster,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            inline_policies={"TargetGroups": document},
        )
        acknowledge(
            self,
            "the Describe calls know no resources; target groups are named by CloudFormation in a"
            " later stack, so the deployment's tag decides",
            "AwsSolutions-IAM5[Resource::*]",
            f"AwsSolutions-IAM5[Resource::{as_printed(scope, target_groups)}]",
        )
