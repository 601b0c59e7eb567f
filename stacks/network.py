"""The VPC with its endpoints, made or existing."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.config.endpoint_services import ENDPOINT_SERVICES
from sonic_eks.config.network import Network
from sonic_eks.constructs.endpoints import PrivateEndpoints
from sonic_eks.constructs.existing_vpc import ImportedVpc
from sonic_eks.constructs.flow_logs import VpcFlowLogs
from sonic_eks.constructs.network import SonicVpc
from sonic_eks.late import Late
from sonic_eks.stacks.base import DeploymentStack


class NetworkStack(DeploymentStack):
    """The VPC, its subnets and endpoints; of an existing VPC only what it lacks.

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
        existing = settings.existing
        network = self._network(settings)
        self.vpc = network.vpc
        self.system_subnets = list(network.system_subnets)
        self.serving_subnet = network.serving_subnet
        self.gpu_subnet = network.gpu_subnet
        PrivateEndpoints(
            self,
            "Endpoints",
            vpc=self.vpc,
            vpc_cidr=settings.cidr,
            interface_subnets=self.system_subnets,
            s3_subnets=list(network.private_subnets),
            bootstrap_qualifier=config.deployment.bootstrap_qualifier,
            zones_by_service=settings.endpoint_zones,
            there=existing.endpoints if existing else (),
            is_shared=existing is not None,
        )
        if existing is None or not existing.flow_logs:
            VpcFlowLogs(
                self, "FlowLogs", vpc=self.vpc, retention_days=settings.flow_log_retention_days
            )
        elif set(existing.endpoints) >= set(ENDPOINT_SERVICES):
            # CloudFormation makes no stack without a resource, and this one has outputs to give.
            cdk.CfnWaitConditionHandle(self, "NothingMissing")
        self.give_out(Late.VPC, self.vpc.vpc_id)
        self.give_out(Late.GPU_SUBNET, self.gpu_subnet.subnet_id)
        self.give_out(Late.SERVING_SUBNET, self.serving_subnet.subnet_id)
        self.give_out(Late.ACCOUNT, self.account)

    def _network(self, settings: Network) -> SonicVpc | ImportedVpc:
        existing = settings.existing
        if existing is not None:
            return ImportedVpc(
                self,
                "Network",
                vpc_id=existing.vpc_id,
                vpc_cidr=existing.vpc_cidr,
                subnets=existing.subnets,
            )
        return SonicVpc(
            self,
            "Network",
            vpc_cidr=settings.cidr,
            zones=settings.zones,
            gpu_zone=settings.gpu_zone,
            nat=settings.egress == "system",
        )
