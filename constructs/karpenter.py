"""The AWS side of Karpenter: identity, interruption queue, and the role of its nodes."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_eks
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from sonic_eks.constructs.acknowledgements import acknowledge, as_printed
from sonic_eks.constructs.karpenter_policy import KarpenterStatements
from sonic_eks.constructs.node_pools import node_role
from sonic_eks.constructs.pod_identity import PodIdentityRole

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"

# Karpenter 1.14, "Interruption": what it listens to.
_INTERRUPTIONS = {
    "Health": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceState": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservation": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
_QUEUE_RETENTION_SECONDS = 300


class Karpenter(Construct):
    """Everything that Karpenter's controller and nodes need of AWS.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    cluster_name : str
        Its name, literal: it is part of IAM condition keys.
    queue_name : str
        Name of the interruption queue.
    instance_profile_name : str
        Name of the nodes' instance profile, which EC2NodeClasses refer to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        cluster_name: str,
        queue_name: str,
        instance_profile_name: str,
    ) -> None:
        super().__init__(scope, construct_id)
        nodes = node_role(self, "NodeRole")
        iam.CfnInstanceProfile(
            self,
            "InstanceProfile",
            instance_profile_name=instance_profile_name,
            roles=[nodes.role_name],
        )
        # Without it an instance launches and never joins. EKS makes it for managed node groups.
        aws_eks.CfnAccessEntry(
            self,
            "NodeAccess",
            cluster_name=cluster.cluster_name,
            principal_arn=nodes.role_arn,
            type="EC2_LINUX",
        )
        queue = self._queue(queue_name)
        stack = cdk.Stack.of(self)
        statements = KarpenterStatements(
            cluster_name=cluster_name, partition=stack.partition, region=stack.region
        )
        controller = PodIdentityRole(
            self,
            "ControllerRole",
            cluster=cluster,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
        )
        self._policy("NodeLifecycle", controller, statements.node_lifecycle())
        self._policy(
            "Integration",
            controller,
            statements.integration(
                node_role_arn=nodes.role_arn,
                cluster_arn=cluster.cluster_arn,
                queue_arn=queue.queue_arn,
            ),
        )
        controller.associate(cluster)

    def _policy(
        self, construct_id: str, role: iam.Role, statements: list[iam.PolicyStatement]
    ) -> None:
        # Two policies: a long cluster name, repeated in nine conditions, would bring one policy
        # close to IAM's limit of 6,144 characters.
        policy = iam.ManagedPolicy(self, construct_id, roles=[role], statements=statements)
        wildcards = sorted(
            {
                resource
                for statement in statements
                for resource in statement.resources
                if resource.endswith("*")
            }
        )
        acknowledge(
            policy,
            "Karpenter chooses images, subnets and instances at run time: what it launches must"
            " carry this cluster's tags, what it tags or terminates must have them, and reading"
            " is limited to the region",
            *(
                f"AwsSolutions-IAM5[Resource::{as_printed(self, resource)}]"
                for resource in wildcards
            ),
        )

    def _queue(self, name: str) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Interruptions",
            queue_name=name,
            retention_period=cdk.Duration.seconds(_QUEUE_RETENTION_SECONDS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        acknowledge(
            queue,
            "a warning that Karpenter did not read within minutes is about an instance that is"
            " gone: there is nothing to replay",
            "AwsSolutions-SQS3",
        )
        for construct_id, (source, detail_type) in _INTERRUPTIONS.items():
            events.Rule(
                self,
                construct_id,
                event_pattern=events.EventPattern(source=[source], detail_type=[detail_type]),
                targets=[targets.SqsQueue(queue)],
            )
        return queue
