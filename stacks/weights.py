"""The weights' file system, a cache of the weights bucket."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.lustre import WeightsVolume
from sonic_eks.late import Late
from sonic_eks.stacks.base import DeploymentStack


class WeightsStack(DeploymentStack):
    """FSx for Lustre in the GPUs' subnet, linked to the weights bucket.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    vpc : aws_ec2.IVpc
        The VPC.
    subnet : aws_ec2.ISubnet
        Where the file servers are.
    clients : sequence of aws_ec2.ISubnet
        Subnets whose nodes mount it.
    bucket : aws_s3.IBucket
        The weights bucket.

    Attributes
    ----------
    file_system : aws_fsx.CfnFileSystem
        The file system.
    dns_name : str
        Its DNS name, a token.
    """

    file_system: fsx.CfnFileSystem
    dns_name: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: Sequence[ec2.ISubnet],
        bucket: s3.IBucket,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: weights file system",
        )
        volume = WeightsVolume(
            self,
            "Weights",
            vpc=vpc,
            subnet=subnet,
            client_cidrs=[client.ipv4_cidr_block for client in clients],
            bucket=bucket,
            capacity_gib=config.weights.capacity_gib,
            throughput_mb_per_s_per_tib=config.weights.throughput_mb_per_s_per_tib,
        )
        self.file_system = volume.file_system
        self.dns_name = self.file_system.attr_dns_name
        self.give_out(Late.FILE_SYSTEM, self.file_system.ref)
        self.give_out(Late.FILE_SYSTEM_DNS_NAME, self.dns_name)
        self.give_out(Late.FILE_SYSTEM_MOUNT_NAME, self.file_system.attr_lustre_mount_name)
