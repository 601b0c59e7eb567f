"""The stacks of one deployment and what they take from each other."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk

from sonic_eks.config import Configuration
from sonic_eks.deployment import Deployment
from sonic_eks.k8s.render import RenderedChart
from sonic_eks.late import Late
from sonic_eks.names import Names
from sonic_eks.stacks.base import DeploymentStack
from sonic_eks.stacks.cluster import ClusterStack
from sonic_eks.stacks.data import DataStack
from sonic_eks.stacks.edge import EdgeStack
from sonic_eks.stacks.mirror import MirrorStack
from sonic_eks.stacks.network import NetworkStack
from sonic_eks.stacks.observability import ObservabilityStack
from sonic_eks.stacks.registry import RegistryStack
from sonic_eks.stacks.weights import WeightsStack
from sonic_eks.stacks.workload import WorkloadStack


@dataclass(frozen=True)
class Stacks:
    """The stacks of a deployment, in the order in which they deploy.

    There is no mirror where `registry.mirrorOnDeploy` is false.
    """

    network: NetworkStack
    registry: RegistryStack
    mirror: MirrorStack | None
    data: DataStack
    weights: WeightsStack
    cluster: ClusterStack
    edge: EdgeStack
    workload: WorkloadStack
    observability: ObservabilityStack

    @property
    def by_name(self) -> dict[str, DeploymentStack]:
        """The stacks that there are, by the names of their attributes."""
        return {name: stack for name, stack in vars(self).items() if stack is not None}


def add_stacks(app: cdk.App, deployment: Deployment, charts: tuple[RenderedChart, ...]) -> Stacks:
    """Add every stack of a deployment to `app`.

    Parameters
    ----------
    app : aws_cdk.App
        The app, or a stage.
    deployment : Deployment
        The configuration, and the catalogue of its images and charts.
    charts : tuple of RenderedChart
        What runs in the cluster (`sonic_eks.k8s.render.render_charts`).

    Returns
    -------
    Stacks
        The stacks, for tests and for tags.
    """
    config = deployment.config
    ids = Names(config.deployment.name).stacks
    network = NetworkStack(app, ids["network"], config=config)
    registry = RegistryStack(app, ids["registry"], config=config, catalogue=deployment.catalogue)
    mirror = _mirror(app, ids["mirror"], config, registry)
    data = DataStack(app, ids["data"], config=config)
    weights = _weights(app, ids["weights"], config, network, data)
    cluster = _cluster(app, ids["cluster"], deployment, network)
    # The charts and images that the cluster pulls are there before it asks for them, and so are the
    # endpoints: in an existing VPC no reference to the network's stack says so.
    cluster.add_stack_dependency(mirror or registry)
    cluster.add_stack_dependency(network)
    edge = EdgeStack(
        app,
        ids["edge"],
        config=config,
        vpc=network.vpc,
        subnet=network.serving_subnet,
        cluster_security_group=cluster.cluster_security_group,
    )
    workload = WorkloadStack(
        app,
        ids["workload"],
        config=config,
        charts=charts,
        cluster=cluster.cluster,
        values=_late_values(network, weights, cluster, edge),
    )
    observability = ObservabilityStack(
        app,
        ids["observability"],
        config=config,
        load_balancer=edge.load_balancer,
        target_group=edge.target_group,
        file_system_id=weights.file_system.ref,
    )
    stacks = Stacks(
        network, registry, mirror, data, weights, cluster, edge, workload, observability
    )
    _tag(stacks, config)
    return stacks


def _mirror(
    app: cdk.App, construct_id: str, config: Configuration, registry: RegistryStack
) -> MirrorStack | None:
    if registry.mirror is None:
        return None
    mirror = MirrorStack(app, construct_id, config=config, build=registry.mirror)
    # A weak reference leaves the order of an update open, and the build must be the new one.
    mirror.add_stack_dependency(registry)
    return mirror


def _weights(
    app: cdk.App, construct_id: str, config: Configuration, network: NetworkStack, data: DataStack
) -> WeightsStack:
    return WeightsStack(
        app,
        construct_id,
        config=config,
        vpc=network.vpc,
        subnet=network.gpu_subnet,
        clients=[network.gpu_subnet, network.serving_subnet],
        bucket=data.bucket,
    )


def _cluster(
    app: cdk.App, construct_id: str, deployment: Deployment, network: NetworkStack
) -> ClusterStack:
    return ClusterStack(
        app,
        construct_id,
        config=deployment.config,
        catalogue=deployment.catalogue,
        vpc=network.vpc,
        system_subnets=network.system_subnets,
        serving_subnet=network.serving_subnet,
        gpu_subnet=network.gpu_subnet,
    )


def _late_values(
    network: NetworkStack, weights: WeightsStack, cluster: ClusterStack, edge: EdgeStack
) -> dict[Late, str]:
    """Return what the manifests wait for, from the stacks that make it."""
    return {
        Late.ACCOUNT: cluster.account,
        Late.VPC: network.vpc.vpc_id,
        Late.CLUSTER_SECURITY_GROUP: cluster.cluster_security_group.security_group_id,
        Late.GPU_SUBNET: network.gpu_subnet.subnet_id,
        Late.SERVING_SUBNET: network.serving_subnet.subnet_id,
        Late.PLACEMENT_GROUP: cluster.placement_group_id,
        Late.FILE_SYSTEM: weights.file_system.ref,
        Late.FILE_SYSTEM_DNS_NAME: weights.dns_name,
        Late.FILE_SYSTEM_MOUNT_NAME: weights.file_system.attr_lustre_mount_name,
        Late.TARGET_GROUP: edge.target_group.target_group_arn,
    }


def _tag(stacks: Stacks, config: Configuration) -> None:
    for stack in stacks.by_name.values():
        cdk.Tags.of(stack).add("sonic-eks:deployment", config.deployment.name)
        for key, value in config.tags.items():
            # A placement group cannot be tagged anew: it would be replaced, nodes and all.
            cdk.Tags.of(stack).add(key, value, exclude_resource_types=["AWS::EC2::PlacementGroup"])
