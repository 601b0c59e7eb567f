"""The VPC with its endpoints."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.endpoints import PrivateEndpoints
from sonic_eks.constructs.network import SonicVpc
from sonic_eks.late import Late
from sonic_eks.stacks.base import DeploymentStack


class NetworkStack(DeploymentStack):
    """The VPC, its subnets and endpoints.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.

    Attributes
    ----------
    vpc : aws_ec2.IVpc
        The VPC.
    system_subnets : list of aws_ec2.ISubnet
        One in each zone.
    serving_subnet, gpu_subnet : aws_ec2.ISubnet
        In the inference zone.
    """

    vpc: ec2.IVpc
    system_subnets: list[ec2.ISubnet]
    serving_subnet: ec2.ISubnet
    gpu_subnet: ec2.ISubnet

    def __init__(self, scope: Construct, construct_id: str, *, config: Configuration) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: VPC and endpoints",
        )
        settings = config.network
        network = SonicVpc(
            self,
            "Network",
            vpc_cidr=settings.vpc_cidr,
            zones=settings.zones,
            gpu_zone=settings.gpu_zone,
            nat=settings.egress == "system",
            flow_log_retention_days=settings.flow_log_retention_days,
        )
        PrivateEndpoints(
            self,
            "Endpoints",
            vpc=network.vpc,
            vpc_cidr=settings.vpc_cidr,
            interface_subnets=network.system_subnets,
            s3_subnets=network.private_subnets,
            bootstrap_qualifier=config.deployment.bootstrap_qualifier,
        )
        self.vpc = network.vpc
        self.system_subnets = list(network.system_subnets)
        self.serving_subnet = network.serving_subnet
        self.gpu_subnet = network.gpu_subnet
        self.give_out(Late.VPC, self.vpc.vpc_id)
        self.give_out(Late.GPU_SUBNET, self.gpu_subnet.subnet_id)
        self.give_out(Late.ACCOUNT, self.account)
