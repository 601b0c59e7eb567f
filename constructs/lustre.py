"""The file system that workers read model weights from."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

# FSx for Lustre user guide, "File system access control with Amazon VPC".
LUSTRE_PORTS = ((988, 988), (1018, 1023))

# FSx for Lustre user guide, "Lustre file system and client kernel compatibility": clients on
# Amazon Linux 2023 need 2.12 or newer; CloudFormation's default for PERSISTENT_2 is 2.12.
_LUSTRE_VERSION = "2.15"


class WeightsVolume(Construct):
    """A PERSISTENT_2 file system whose root mirrors a bucket.

    It is a cache: metadata is imported when it is made and whenever the bucket changes, content
    when a file is first read, and nothing is written back. So it may be deleted at any time.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc : aws_ec2.IVpc
        The VPC.
    subnet : aws_ec2.ISubnet
        Where the file servers are; one subnet, in the clients' zone.
    client_cidrs : sequence of str
        IPv4 ranges that mount it. The file servers talk among themselves from `subnet`, whose
        range is admitted, too.
    bucket : aws_s3.IBucket
        What it mirrors, in the same region.
    capacity_gib : int
        1200 or a multiple of 2400.
    throughput_mb_per_s_per_tib : int
        125, 250, 500 or 1000.

    Attributes
    ----------
    file_system : aws_fsx.CfnFileSystem
        The file system.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        client_cidrs: Sequence[str],
        bucket: s3.IBucket,
        capacity_gib: int,
        throughput_mb_per_s_per_tib: int,
    ) -> None:
        super().__init__(scope, construct_id)
        security_group = self._security_group(vpc, {subnet.ipv4_cidr_block, *client_cidrs})
        self.file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=_LUSTRE_VERSION,
            storage_capacity=capacity_gib,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[security_group.security_group_id],
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2",
                per_unit_storage_throughput=throughput_mb_per_s_per_tib,
                # Weights hardly compress, and FSx cannot back up what is linked to a bucket.
                data_compression_type="NONE",
                automatic_backup_retention_days=0,
            ),
        )
        association = fsx.CfnDataRepositoryAssociation(
            self,
            "Association",
            file_system_id=self.file_system.ref,
            file_system_path="/",
            data_repository_path=f"s3://{bucket.bucket_name}",
            batch_import_meta_data_on_create=True,
            s3=fsx.CfnDataRepositoryAssociation.S3Property(
                auto_import_policy=fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty(
                    events=["NEW", "CHANGED", "DELETED"]
                )
            ),
        )
        for resource in (self.file_system, association):
            resource.apply_removal_policy(cdk.RemovalPolicy.DESTROY)

    def _security_group(self, vpc: ec2.IVpc, cidrs: set[str]) -> ec2.SecurityGroup:
        """Make the security group, its rules inline.

        FSx checks them when it makes the file system, so they cannot be resources of their own
        that may come later.
        """
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Lustre: file servers among themselves and with their clients",
            allow_all_outbound=False,
        )
        for cidr in sorted(cidrs):
            for first, last in LUSTRE_PORTS:
                ports = ec2.Port.tcp_range(first, last)
                group.add_ingress_rule(ec2.Peer.ipv4(cidr), ports, "Lustre")
                group.add_egress_rule(ec2.Peer.ipv4(cidr), ports, "Lustre")
        return group
