"""A VPC that is there: its subnets, as the configuration describes them."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from sonic_eks.config.network import ExistingSubnet, ExistingSubnets


class ImportedVpc(Construct):
    """References to a VPC and its subnets; it makes nothing and looks nothing up.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc_id : str
        Id of the VPC.
    vpc_cidr : str
        Its IPv4 range.
    subnets : ExistingSubnets
        Where the nodes go.

    Attributes
    ----------
    vpc : aws_ec2.IVpc
        The VPC.
    system_subnets : list of aws_ec2.ISubnet
        One in each zone, in the configuration's order.
    serving_subnet, gpu_subnet : aws_ec2.ISubnet
        Both in the inference zone.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        vpc_cidr: str,
        subnets: ExistingSubnets,
    ) -> None:
        super().__init__(scope, construct_id)
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=vpc_id,
            vpc_cidr_block=vpc_cidr,
            availability_zones=[subnet.zone for subnet in subnets.system],
        )
        self.gpu_subnet = self._subnet("Gpu", subnets.gpu)
        self.serving_subnet = self._subnet("Serving", subnets.serving)
        self.system_subnets = [
            self._subnet(f"System{position + 1}", subnet)
            for position, subnet in enumerate(subnets.system)
        ]

    @property
    def private_subnets(self) -> list[ec2.ISubnet]:
        """Every subnet that nodes are in."""
        return [self.gpu_subnet, self.serving_subnet, *self.system_subnets]

    def _subnet(self, construct_id: str, subnet: ExistingSubnet) -> ec2.ISubnet:
        return ec2.Subnet.from_subnet_attributes(
            self,
            construct_id,
            subnet_id=subnet.id,
            availability_zone=subnet.zone,
            ipv4_cidr_block=subnet.cidr,
            route_table_id=subnet.route_table_id,
        )
