"""What Karpenter's controller may do, statement by statement.

The statements and their ids are those of Karpenter 1.14's getting-started template
(aws/karpenter-provider-aws, getting-started-with-karpenter/cloudformation.yaml), less what a
controller with ``isolatedVPC`` and ``spec.instanceProfile`` never calls: instance profiles are
not made, tagged or listed, and prices are not looked up.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import aws_iam as iam

_LAUNCH = ["ec2:RunInstances", "ec2:CreateFleet"]
_CREATED = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
_DESCRIBED = (
    "CapacityReservations",
    "Images",
    "Instances",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
)

_NODE_POOL = "karpenter.sh/nodepool"
_CLUSTER_NAME = "eks:eks-cluster-name"


class KarpenterStatements:
    """The statements for one cluster.

    Parameters
    ----------
    cluster_name : str
        Name of the cluster; literal, since it is part of condition keys.
    partition : str
        Partition of the ARNs, a token or literal.
    region : str
        Region of the cluster.
    """

    def __init__(self, *, cluster_name: str, partition: str, region: str) -> None:
        self._name = cluster_name
        self._ec2 = f"arn:{partition}:ec2:{region}"
        self._ssm = f"arn:{partition}:ssm:{region}"
        self._region = region
        self._owner = f"kubernetes.io/cluster/{cluster_name}"

    def node_lifecycle(self) -> list[iam.PolicyStatement]:
        """Launch, tag and terminate instances of this cluster, and no others."""
        requested = {
            "StringEquals": {
                f"aws:RequestTag/{self._owner}": "owned",
                f"aws:RequestTag/{_CLUSTER_NAME}": self._name,
            },
            "StringLike": {f"aws:RequestTag/{_NODE_POOL}": "*"},
        }
        owned = {
            "StringEquals": {f"aws:ResourceTag/{self._owner}": "owned"},
            "StringLike": {f"aws:ResourceTag/{_NODE_POOL}": "*"},
        }
        created = self._resources(*_CREATED)
        create_action = {"ec2:CreateAction": [*_names(_LAUNCH), "CreateLaunchTemplate"]}
        return [
            _allow("AllowScopedEC2InstanceAccessActions", _LAUNCH, self._launched_with()),
            _allow(
                "AllowScopedEC2LaunchTemplateAccessActions",
                _LAUNCH,
                self._resources("launch-template"),
                owned,
            ),
            _allow(
                "AllowScopedEC2InstanceActionsWithTags",
                [*_LAUNCH, "ec2:CreateLaunchTemplate"],
                created,
                requested,
            ),
            _allow(
                "AllowScopedResourceCreationTagging",
                ["ec2:CreateTags"],
                created,
                {**requested, "StringEquals": {**requested["StringEquals"], **create_action}},
            ),
            _allow(
                "AllowScopedResourceTagging",
                ["ec2:CreateTags"],
                self._resources("instance"),
                {
                    **owned,
                    "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER_NAME}": self._name},
                    "ForAllValues:StringEquals": {
                        "aws:TagKeys": [_CLUSTER_NAME, "karpenter.sh/nodeclaim", "Name"]
                    },
                },
            ),
            _allow(
                "AllowScopedDeletion",
                ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
                self._resources("instance", "launch-template"),
                owned,
            ),
        ]

    def integration(
        self, *, node_role_arn: str, cluster_arn: str, queue_arn: str
    ) -> list[iam.PolicyStatement]:
        """Pass the nodes' role, read the cluster, the queue and what EC2 offers.

        Parameters
        ----------
        node_role_arn : str
            The only role that may be passed.
        cluster_arn : str
            The cluster.
        queue_arn : str
            The interruption queue.
        """
        services = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
        return [
            _allow(
                "AllowPassingInstanceRole",
                ["iam:PassRole"],
                [node_role_arn],
                {"StringEquals": {"iam:PassedToService": services}},
            ),
            _allow("AllowAPIServerEndpointDiscovery", ["eks:DescribeCluster"], [cluster_arn]),
            _allow(
                "AllowInterruptionQueueActions",
                ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                [queue_arn],
            ),
            _allow(
                "AllowRegionalReadActions",
                [f"ec2:Describe{what}" for what in _DESCRIBED],
                ["*"],
                {"StringEquals": {"aws:RequestedRegion": self._region}},
            ),
            _allow(
                "AllowSSMReadActions",
                ["ssm:GetParameter"],
                [f"{self._ssm}::parameter/aws/service/*"],
            ),
        ]

    def _resources(self, *kinds: str) -> list[str]:
        return [f"{self._ec2}:*:{kind}/*" for kind in kinds]

    def _launched_with(self) -> list[str]:
        # Images and snapshots of Amazon carry no account in their ARN.
        owned = ("security-group", "subnet", "capacity-reservation", "placement-group")
        return [f"{self._ec2}::{kind}/*" for kind in ("image", "snapshot")] + self._resources(
            *owned
        )


def _names(actions: list[str]) -> list[str]:
    return [action.partition(":")[2] for action in actions]


def _allow(
    sid: str, actions: list[str], resources: list[str], conditions: dict[str, Any] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid, actions=actions, resources=resources, conditions=conditions or {}
    )
