"""The EKS cluster with its nodes, add-ons and controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.config.instances import instance_types
from sonic_eks.constructs.addons import ClusterAddons, NodeAddons
from sonic_eks.constructs.control_plane import ControlPlane
from sonic_eks.constructs.controllers import Controllers
from sonic_eks.constructs.karpenter import Karpenter
from sonic_eks.constructs.load_balancer_controller import LoadBalancerControllerRole
from sonic_eks.constructs.node_pools import GENERATION_LABEL, ManagedNodePool, node_role
from sonic_eks.k8s.sonic.front import front_of
from sonic_eks.late import Late
from sonic_eks.names import Names, karpenter_instance_profile
from sonic_eks.nodes.pools import FSX_STARTUP_TAINT, GPU_RESOURCE, POOL_LABEL, Pool
from sonic_eks.stacks.base import DeploymentStack
from sonic_eks.upstream import Kind


class ClusterStack(DeploymentStack):
    """Cluster, managed node groups, add-ons, controllers and Karpenter's AWS side.

    Order of creation, and the reverse on deletion: control plane; the add-ons that make a node
    ready; node groups; the other add-ons; identities; controllers.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    catalogue : Catalogue
        Where charts and images are.
    vpc : aws_ec2.IVpc
        The VPC.
    system_subnets : list of aws_ec2.ISubnet
        Subnets of the control plane and of the system nodes, in two zones or more.
    serving_subnet, gpu_subnet : aws_ec2.ISubnet
        Subnets in the zone of the GPUs.

    Attributes
    ----------
    cluster : aws_eks_v2.ICluster
        The cluster.
    cluster_security_group : aws_ec2.ISecurityGroup
        The security group that EKS gives to control plane, nodes and pods.
    placement_group_id : str
        The cluster placement group of the GPU nodes, for Karpenter's as well.
    """

    cluster: eks.ICluster
    cluster_security_group: ec2.ISecurityGroup
    placement_group_id: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        catalogue: Catalogue,
        vpc: ec2.IVpc,
        system_subnets: list[ec2.ISubnet],
        serving_subnet: ec2.ISubnet,
        gpu_subnet: ec2.ISubnet,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: cluster, nodes and controllers",
        )
        names = Names(config.deployment.name)
        control_plane = self._control_plane(config, names, catalogue, vpc, system_subnets)
        control_plane.allow_lustre_from(gpu_subnet.ipv4_cidr_block)
        self.cluster = control_plane.cluster
        self.cluster_security_group = self.cluster.cluster_security_group

        addon_versions = config.cluster.addon_versions
        node_addons = NodeAddons(self, "NodeAddons", cluster=self.cluster, versions=addon_versions)
        # CloudFormation names it: AWS::EC2::PlacementGroup takes no name.
        placement_group = ec2.CfnPlacementGroup(self, "GpuPlacement", strategy="cluster")
        self.placement_group_id = placement_group.attr_group_id
        newest = self._nodes(
            config, placement_group, node_addons, system_subnets, serving_subnet, gpu_subnet
        )
        addons = ClusterAddons(
            self,
            "Addons",
            cluster=self.cluster,
            nodes=newest[Pool.SYSTEM],
            versions=addon_versions,
        )
        controllers = self._controllers(config, names, catalogue, vpc.vpc_id, placement_group)
        controllers.install_after(addons)
        controllers.nvidia_device_plugin.node.add_dependency(newest[Pool.GPU])
        self._outputs()

    def _control_plane(
        self,
        config: Configuration,
        names: Names,
        catalogue: Catalogue,
        vpc: ec2.IVpc,
        subnets: list[ec2.ISubnet],
    ) -> ControlPlane:
        return ControlPlane(
            self,
            "ControlPlane",
            cluster_name=names.cluster,
            version=config.cluster.version,
            vpc=vpc,
            subnets=subnets,
            service_cidr=config.cluster.service_cidr,
            admin_role_arns=config.cluster.admin_role_arns,
            api_client_cidrs=config.cluster.api_client_cidrs,
            chart_repositories=[
                artifact.repository
                for artifact in catalogue.artifacts
                if artifact.kind is Kind.CHART
            ],
            log_retention_days=config.cluster.log_retention_days,
            deletion_protection=config.deployment.termination_protection,
        )

    def _controllers(
        self,
        config: Configuration,
        names: Names,
        catalogue: Catalogue,
        vpc_id: str,
        placement_group: ec2.CfnPlacementGroup,
    ) -> Controllers:
        """Return the controllers, each after its identity."""
        karpenter = Karpenter(
            self,
            "Karpenter",
            cluster=self.cluster,
            cluster_name=names.cluster,
            queue_name=names.karpenter_queue,
            instance_profile_name=karpenter_instance_profile(
                config.deployment.name, config.deployment.region
            ),
        )
        lbc_role = LoadBalancerControllerRole(
            self, "LoadBalancerController", cluster=self.cluster, deployment=config.deployment.name
        )
        lbc_role.associate(self.cluster)
        controllers = Controllers(
            self,
            "Controllers",
            cluster=self.cluster,
            cluster_name=names.cluster,
            catalogue=catalogue,
            vpc_id=vpc_id,
            queue_name=names.karpenter_queue,
            gpus=config.gpu_type.gpus > 0,
            target_labels=front_of(config).labels.selector,
        )
        controllers.karpenter.node.add_dependency(karpenter, placement_group)
        controllers.load_balancer_controller.node.add_dependency(lbc_role)
        return controllers

    def _nodes(
        self,
        config: Configuration,
        placement_group: ec2.CfnPlacementGroup,
        after: IDependable,
        system_subnets: list[ec2.ISubnet],
        serving_subnet: ec2.ISubnet,
        gpu_subnet: ec2.ISubnet,
    ) -> dict[Pool, eks_l1.CfnNodegroup]:
        """Return the node groups of the newest generation, with the older ones beside them."""
        role = node_role(self, "NodeRole")
        pools = [
            pool
            for generation in config.nodes.generations
            for pool in self._pools(
                config,
                self._of_a_generation(config, generation, role),
                placement_group,
                system_subnets,
                serving_subnet,
                gpu_subnet,
            )
        ]
        for pool in pools:
            pool.node_group.node.add_dependency(after)
        return {pool.pool: pool.node_group for pool in pools}

    def _of_a_generation(
        self, config: Configuration, generation: int, role: iam.IRole
    ) -> Callable[..., ManagedNodePool]:
        """Return what makes a managed node group of a generation."""
        # The first generation has the plain ids, so that both ways to upgrade begin alike.
        suffix = "" if generation == 1 else str(generation)
        replaced = config.nodes.upgrade == "replaceGroup"

        def make(construct_id: str, **properties: Any) -> ManagedNodePool:
            return ManagedNodePool(
                self,
                f"{construct_id}{suffix}",
                cluster=self.cluster,
                kubernetes_version=None if replaced else config.cluster.version,
                labels={GENERATION_LABEL: str(generation)} if replaced else {},
                role=role,
                **properties,
            )

        return make

    def _pools(
        self,
        config: Configuration,
        managed: Callable[..., ManagedNodePool],
        placement_group: ec2.CfnPlacementGroup,
        system_subnets: list[ec2.ISubnet],
        serving_subnet: ec2.ISubnet,
        gpu_subnet: ec2.ISubnet,
    ) -> list[ManagedNodePool]:
        """Return the managed node groups of one generation."""
        nodes = config.nodes
        types = instance_types()
        taint = eks_l1.CfnNodegroup.TaintProperty
        pools = [
            managed(
                "SystemNodes",
                pool=Pool.SYSTEM,
                instance_type=types[nodes.system.instance_type],
                size=config.system_nodes,
                root_volume_gib=nodes.system.root_volume_gib,
                subnets=system_subnets,
            ),
            managed(
                "GpuNodes",
                pool=Pool.GPU,
                instance_type=types[nodes.gpu.instance_type],
                size=nodes.gpu.base_size,
                root_volume_gib=nodes.gpu.root_volume_gib,
                subnets=[gpu_subnet],
                taints=[
                    taint(key=GPU_RESOURCE, value="true", effect="NO_SCHEDULE"),
                    taint(key=FSX_STARTUP_TAINT, value="true", effect="NO_EXECUTE"),
                ],
                placement_group=placement_group,
                reservation_id=nodes.gpu.base_reservation_id,
                # A surge would need GPUs, quota and room in the placement group for up to twice
                # the number of zones; where there are none, every update would fail.
                surge=False,
            ),
        ]
        if config.has_serving_nodes:
            pools.append(
                managed(
                    "ServingNodes",
                    pool=Pool.SERVING,
                    instance_type=types[nodes.serving.instance_type],
                    size=nodes.serving.size,
                    root_volume_gib=nodes.serving.root_volume_gib,
                    subnets=[serving_subnet],
                    taints=[taint(key=POOL_LABEL, value=Pool.SERVING.value, effect="NO_SCHEDULE")],
                )
            )
        return pools

    def _outputs(self) -> None:
        self.give_out(Late.CLUSTER_SECURITY_GROUP, self.cluster_security_group.security_group_id)
        self.give_out(Late.PLACEMENT_GROUP, self.placement_group_id)
        name = self.cluster.cluster_name
        cdk.CfnOutput(self, "ClusterName", value=name)
        cdk.CfnOutput(self, "ClusterEndpoint", value=self.cluster.cluster_endpoint)
        cdk.CfnOutput(
            self,
            "KubeconfigCommand",
            description="For an administrator's role, from a host that reaches the VPC",
            value=f"aws eks update-kubeconfig --name {name} --region {self.region}",
        )
