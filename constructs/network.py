"""The VPC: its subnets and way out."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from sonic_eks.config.address_plan import AddressPlan
from sonic_eks.constructs.acknowledgements import acknowledge

_NAMED_ZONE = "zones are configuration: GPUs, weights and API pods share one, nothing is looked up"


class SonicVpc(Construct):
    """A VPC with system subnets in every zone, and serving and GPU subnets in one.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc_cidr : str
        IPv4 range, /16 to /22.
    zones : sequence of str
        Names of the two or three zones of the system subnets.
    gpu_zone : str
        The one of `zones` that holds the serving and the GPU subnet.
    nat : bool
        Whether system and serving subnets reach the internet through a NAT gateway. Without it
        the VPC has no internet gateway and no public subnet. The GPU subnet never has a route.

    Attributes
    ----------
    vpc : aws_ec2.Vpc
        The VPC.
    system_subnets : list of aws_ec2.PrivateSubnet
        One in each zone, in their order.
    serving_subnet, gpu_subnet : aws_ec2.PrivateSubnet
        Both in `gpu_zone`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_cidr: str,
        zones: Sequence[str],
        gpu_zone: str,
        nat: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = AddressPlan(vpc_cidr)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(vpc_cidr),
            availability_zones=list(zones),
            # The plan below makes the subnets: the construct's own cannot be in one zone alone.
            subnet_configuration=[],
            nat_gateways=0,
            restrict_default_security_group=True,
        )
        self.gpu_subnet = self._private("Gpu", gpu_zone, self._plan.gpu)
        self.serving_subnet = self._private("Serving", gpu_zone, self._plan.serving)
        self.system_subnets = [
            self._private(f"System{position + 1}", zone, self._plan.system(position))
            for position, zone in enumerate(zones)
        ]
        if nat:
            self._add_nat(gpu_zone, list(zones).index(gpu_zone))

    @property
    def private_subnets(self) -> list[ec2.PrivateSubnet]:
        """Every subnet but the NAT gateway's."""
        return [self.gpu_subnet, self.serving_subnet, *self.system_subnets]

    def _private(self, construct_id: str, zone: str, cidr: str) -> ec2.PrivateSubnet:
        subnet = ec2.PrivateSubnet(
            self, construct_id, vpc_id=self.vpc.vpc_id, availability_zone=zone, cidr_block=cidr
        )
        acknowledge(subnet, _NAMED_ZONE, "CloudFormation-Validate::W3010")
        return subnet

    def _add_nat(self, zone: str, position: int) -> None:
        """Give system and serving subnets a NAT gateway in the inference zone.

        One, since only the license proxy goes out, and it runs in that zone with all that serves
        a stream: a gateway in another zone would outlive what it is there for. (Beside servers
        that stand alone it may run on a system node of another zone, and goes out from here.)
        """
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self,
            "InternetGatewayAttachment",
            vpc_id=self.vpc.vpc_id,
            internet_gateway_id=gateway.ref,
        )
        public = ec2.PublicSubnet(
            self,
            "Public",
            vpc_id=self.vpc.vpc_id,
            availability_zone=zone,
            cidr_block=self._plan.public(position),
            map_public_ip_on_launch=False,
        )
        acknowledge(public, _NAMED_ZONE, "CloudFormation-Validate::W3010")
        public.add_default_internet_route(gateway.ref, attachment)
        nat = public.add_nat_gateway()
        for subnet in (self.serving_subnet, *self.system_subnets):
            subnet.add_default_nat_route(nat.ref)
