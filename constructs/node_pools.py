"""Managed node groups: fixed sets of nodes that EKS updates one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.config.instances import InstanceType
from sonic_eks.constructs.acknowledgements import acknowledge_managed_policies
from sonic_eks.nodes.node_config import mime_user_data, root_volume_mib_per_second
from sonic_eks.nodes.pools import POOL_LABEL, Pool

GENERATION_LABEL = "sonic-eks/generation"
"""Label of nodes that are replaced group by group: the group's number."""

# Of a launch template: what it was made with.
_FIRST_VERSION = "1"

_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")


def node_role(scope: Construct, construct_id: str) -> iam.Role:
    """Return a role for nodes: join the cluster, pull images, nothing else.

    The VPC CNI has a role of its own, and Session Manager none: nodes are reached with
    ``kubectl debug node``, and the GPU subnet has no endpoint for it.
    """
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in _NODE_POLICIES
        ],
    )
    acknowledge_managed_policies(
        role,
        "the two policies that the EKS user guide requires of a node role; AWS keeps them in step"
        " with what kubelet and the Pod Identity agent call",
        *_NODE_POLICIES,
    )
    return role


class ManagedNodePool(Construct):
    """A managed node group and its launch template.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    kubernetes_version : str, optional
        Version of the kubelet; follows the cluster's, or nodes would stay on the old one. None
        for a group that stays as it was made until another one takes its place: EKS then never
        updates it, whatever else changes.
    pool : Pool
        Value of the label `POOL_LABEL`.
    instance_type : InstanceType
        Type of every node. It stands in the launch template: in the node group, CDK would hold
        it against a list of GPU families that lags behind EC2.
    size : int
        Nodes that always run; the group has no room to grow.
    root_volume_gib : int
        Size of the encrypted root volume in GiB.
    subnets : sequence of aws_ec2.ISubnet
        Where the nodes are.
    role : aws_iam.IRole
        The nodes' role.
    taints : sequence of aws_eks.CfnNodegroup.TaintProperty
        Taints of every node.
    placement_group : aws_ec2.CfnPlacementGroup, optional
        Group that the nodes are placed in; needs exactly one subnet.
    reservation_id : str, optional
        On-Demand Capacity Reservation that every node is launched into, and nowhere else: where
        it is full, a launch fails rather than run beside it.
    surge : bool
        Whether an update may start a new node before it drains an old one.
    labels : mapping of str to str, optional
        Labels of the nodes beside `POOL_LABEL`.

    Attributes
    ----------
    node_group : aws_eks.CfnNodegroup
        The node group, for dependencies.
    pool : Pool
        As given.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: aws_eks_v2.ICluster,
        kubernetes_version: str | None,
        pool: Pool,
        instance_type: InstanceType,
        size: int,
        root_volume_gib: int,
        subnets: Sequence[ec2.ISubnet],
        role: iam.IRole,
        taints: Sequence[eks.CfnNodegroup.TaintProperty] = (),
        placement_group: ec2.CfnPlacementGroup | None = None,
        reservation_id: str | None = None,
        surge: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.pool = pool
        template = _launch_template(self, instance_type, root_volume_gib, placement_group)
        if reservation_id is not None:
            _target(template, reservation_id)
        # Instances and volumes take their Name from the template's.
        cdk.Tags.of(template).add("Name", f"{cluster.cluster_name}-{pool.value}")
        self.node_group = eks.CfnNodegroup(
            self,
            "NodeGroup",
            cluster_name=cluster.cluster_name,
            version=kubernetes_version,
            node_role=role.role_arn,
            subnets=[subnet.subnet_id for subnet in subnets],
            ami_type="AL2023_x86_64_NVIDIA" if instance_type.gpus else "AL2023_x86_64_STANDARD",
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=template.launch_template_id,
                version=template.latest_version_number if kubernetes_version else _FIRST_VERSION,
            ),
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=size, desired_size=size, max_size=size
            ),
            labels={POOL_LABEL: pool.value, **(labels or {})},
            taints=list(taints) or None,
            update_config=eks.CfnNodegroup.UpdateConfigProperty(
                max_unavailable=1, update_strategy="DEFAULT" if surge else "MINIMAL"
            ),
            # Never: a forced update evicts pods that still stream.
            force_update_enabled=False,
            node_repair_config=eks.CfnNodegroup.NodeRepairConfigProperty(
                enabled=True, max_parallel_nodes_repaired_count=1
            ),
        )


def _launch_template(
    scope: Construct,
    instance_type: InstanceType,
    root_volume_gib: int,
    placement_group: ec2.CfnPlacementGroup | None,
) -> ec2.LaunchTemplate:
    """Return the launch template; its tags go to instances and volumes as well."""
    root = ec2.BlockDeviceVolume.ebs(
        root_volume_gib,
        volume_type=ec2.EbsDeviceVolumeType.GP3,
        encrypted=True,
        delete_on_termination=True,
        throughput=root_volume_mib_per_second(instance_type),
    )
    return ec2.LaunchTemplate(
        scope,
        "LaunchTemplate",
        instance_type=ec2.InstanceType(instance_type.name),
        block_devices=[ec2.BlockDevice(device_name="/dev/xvda", volume=root)],
        # With a limit of 1 no pod reaches the node's credentials; controllers get region and VPC
        # as values, credentials from Pod Identity.
        http_tokens=ec2.LaunchTemplateHttpTokens.REQUIRED,
        http_put_response_hop_limit=1,
        placement_group=placement_group,
        user_data=ec2.UserData.custom(mime_user_data(instance_type)),
    )


def _target(template: ec2.LaunchTemplate, reservation_id: str) -> None:
    """Launch into one capacity reservation; `ec2.LaunchTemplate` has no property for it."""
    resource = template.node.default_child
    assert isinstance(resource, ec2.CfnLaunchTemplate)
    resource.add_property_override(
        "LaunchTemplateData.CapacityReservationSpecification",
        {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}},
    )
