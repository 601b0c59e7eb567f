"""The network section: a VPC to make, or one that is there.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from sonic_eks.config.address_plan import AddressPlan
from sonic_eks.config.aws import is_zone_id, is_zone_name
from sonic_eks.config.base import Bool, Refusal, Section, Str
from sonic_eks.config.endpoint_services import (
    ENDPOINT_SERVICES,
    INTERFACE_SERVICES,
    endpoint_service,
)
from sonic_eks.config.values import LogRetentionDays, ipv4_range

_ZONE = "a zone name such as us-east-1a"
# Zone ids name the same zone in every account, zone names do not: only AWS can translate.
_NOT_A_ZONE_ID = f"{_ZONE}, not a zone id (aws ec2 describe-availability-zones shows both)"

_ID = r"[0-9a-f]{8}(?:[0-9a-f]{9})?$"
_VPC_ID = rf"^vpc-{_ID}"
_SUBNET_ID = rf"^subnet-{_ID}"
_ROUTE_TABLE_ID = rf"^rtb-{_ID}"

_DEFAULT_VPC_CIDR = "10.42.0.0/16"
# Amazon VPC user guide, "VPC CIDR blocks" and "Subnet CIDR blocks": /16 to /28.
_PREFIX_LENGTHS = range(16, 29)


def _zone_name(value: str, *, field: str | None = None) -> str:
    if not is_zone_name(value):
        raise Refusal(value, _NOT_A_ZONE_ID if is_zone_id(value) else _ZONE, field=field)
    return value


def _range_that_exists(value: str) -> str:
    if ipv4_range(value).prefixlen not in _PREFIX_LENGTHS:
        raise Refusal(value, "a prefix length from /16 to /28")
    return value


class ExistingSubnet(Section):
    """A subnet that is there."""

    id: Annotated[Str, Field(pattern=_SUBNET_ID)]
    """Id of the subnet."""
    zone: Str
    """Name of the zone that it is in."""
    cidr: Str
    """IPv4 range of the subnet, inside `vpcCidr`."""
    route_table_id: Annotated[Str, Field(pattern=_ROUTE_TABLE_ID)]
    """Id of its route table; a missing S3 endpoint adds its route there."""

    @field_validator("zone")
    @classmethod
    def _zone(cls, value: str) -> str:
        """`zone` is a zone name, not a zone id."""
        return _zone_name(value)

    @field_validator("cidr")
    @classmethod
    def _cidr(cls, value: str) -> str:
        """`cidr` is from /16 to /28."""
        return _range_that_exists(value)


class ExistingSubnets(Section):
    """Where the nodes go in a VPC that is there."""

    system: Annotated[tuple[ExistingSubnet, ...], Field(min_length=2, max_length=3)]
    """Subnets of system nodes, control plane and endpoints: one in each of `network.zones`."""
    serving: ExistingSubnet
    """Subnet of serving nodes and load balancer, in the inference zone."""
    gpu: ExistingSubnet
    """Subnet of GPU nodes and weights, in the inference zone; no route to the internet."""

    def by_field(self) -> dict[str, ExistingSubnet]:
        """Return every subnet by its field, as a dotted path."""
        system = {f"system.{index}": subnet for index, subnet in enumerate(self.system)}
        return {**system, "serving": self.serving, "gpu": self.gpu}

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """Subnets are different ones, and their ranges do not overlap."""
        seen: dict[str, ExistingSubnet] = {}
        for field, subnet in self.by_field().items():
            for other_field, other in seen.items():
                if subnet.id == other.id:
                    raise Refusal(
                        subnet.id, f"each subnet once (this is {other_field})", field=f"{field}.id"
                    )
                if _network(subnet.cidr).overlaps(_network(other.cidr)):
                    raise Refusal(
                        subnet.cidr,
                        f"a range that does not overlap {other_field}.cidr ({other.cidr})",
                        field=f"{field}.cidr",
                    )
            seen[field] = subnet
        return self


class ExistingVpc(Section):
    """A VPC that is there; unset: one is made. Only missing endpoints and flow logs are added.

    Nothing is looked up: its owner sees to it that routes are as `egress` says.
    """

    vpc_id: Annotated[Str, Field(pattern=_VPC_ID)]
    """Id of the VPC; DNS support and DNS host names must be on."""
    vpc_cidr: Str
    """Its IPv4 range, which holds all subnets below."""
    endpoints: tuple[Str, ...] = ()
    """Services whose endpoints are there, by the end of their names, such as s3 or ecr.api."""
    flow_logs: Bool = False
    """Whether the VPC has flow logs already."""
    subnets: ExistingSubnets
    """The subnets to use."""

    @field_validator("vpc_cidr")
    @classmethod
    def _vpc_cidr(cls, value: str) -> str:
        """`vpcCidr` is from /16 to /28."""
        return _range_that_exists(value)

    @field_validator("endpoints")
    @classmethod
    def _endpoints(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`endpoints` are services that the deployment calls, each once."""
        for index, service in enumerate(value):
            endpoint_service(service, ENDPOINT_SERVICES, field=str(index))
            if service in value[:index]:
                raise Refusal(service, "each service once", field=str(index))
        return value

    @model_validator(mode="after")
    def _inside(self) -> Self:
        """Every subnet's `cidr` lies in `vpcCidr`."""
        for field, subnet in self.subnets.by_field().items():
            if not _network(subnet.cidr).subnet_of(_network(self.vpc_cidr)):
                raise Refusal(
                    subnet.cidr,
                    f"a range inside vpcCidr ({self.vpc_cidr})",
                    field=f"subnets.{field}.cidr",
                )
        return self


def _network(cidr: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(cidr)


class Network(Section):
    """The VPC and its ways out."""

    zones: Annotated[tuple[Str, ...], Field(min_length=2, max_length=3)]
    """Names of the 2 or 3 zones of the system subnets; EKS needs two."""
    inference_zone: Str | None = None
    """Name of the zone of GPUs, API pods, weights and load balancer; unset: the first zone."""
    vpc_cidr: Str | None = None
    """IPv4 range of the VPC to make, /16 to /22; unset: 10.42.0.0/16."""
    egress: Literal["system", "none"] = "system"
    """Which subnets lead to the internet: system and serving ones (NAT), or none."""
    endpoint_zones: dict[Str, tuple[Str, ...]] = Field(default={})
    """Zones of a service's endpoint where it has none in some; unset: every zone of `zones`."""
    flow_log_retention_days: LogRetentionDays = 90
    """Days that VPC flow logs are kept."""
    existing: ExistingVpc | None = None
    """A VPC that is there: only missing endpoints and flow logs are made; unset: one is made."""

    @field_validator("zones")
    @classmethod
    def _zones(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`zones` are zone names, not zone ids, each once."""
        for index, zone in enumerate(value):
            _zone_name(zone, field=str(index))
            if zone in value[:index]:
                raise Refusal(zone, "each zone once", field=str(index))
        return value

    @field_validator("inference_zone")
    @classmethod
    def _inference_zone(cls, value: str | None) -> str | None:
        """`inferenceZone` is a zone name, not a zone id."""
        if value is not None and is_zone_id(value):
            raise Refusal(value, _NOT_A_ZONE_ID)
        return value

    @field_validator("vpc_cidr")
    @classmethod
    def _vpc_cidr(cls, value: str | None) -> str | None:
        """`vpcCidr` is a private range, or one of 100.64.0.0/10, from /16 to /22."""
        if value is None:
            return None
        network = ipv4_range(value)
        if not 16 <= network.prefixlen <= 22:
            raise Refusal(value, "a prefix length from /16 to /22")
        private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
        if not any(network.subnet_of(ipaddress.IPv4Network(p)) for p in private):
            raise Refusal(value, f"a range inside {', '.join(private)}")
        return value

    @field_validator("endpoint_zones")
    @classmethod
    def _endpoint_services(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Keys of `endpointZones` are services with an interface endpoint."""
        for service in value:
            endpoint_service(service, INTERFACE_SERVICES, field=service)
        return value

    @model_validator(mode="after")
    def _endpoint_zones(self) -> Self:
        """`endpointZones` names one or more of `zones` for a service whose endpoint is made."""
        there = self.existing.endpoints if self.existing else ()
        for service, zones in self.endpoint_zones.items():
            field = f"endpointZones.{service}"
            if service in there:
                raise Refusal(
                    service, "services that existing.endpoints does not hold", field="endpointZones"
                )
            known = ", ".join(self.zones)
            if not zones:
                raise Refusal(list(zones), f"one or more of zones ({known})", field=field)
            for index, zone in enumerate(zones):
                if zone not in self.zones or zone in zones[:index]:
                    raise Refusal(zone, f"one of zones ({known}), once", field=f"{field}.{index}")
        return self

    @model_validator(mode="after")
    def _existing_zones(self) -> Self:
        """With `existing`, `vpcCidr` is unset, and subnets are in the zones that they serve.

        Each of `zones` has one system subnet; the serving and the GPU subnet are in
        `inferenceZone`.
        """
        if self.existing is None:
            return self
        if self.vpc_cidr is not None:
            raise Refusal(self.vpc_cidr, "nothing, as existing.vpcCidr is given", field="vpcCidr")
        subnets = self.existing.subnets
        expected = {"serving": (self.gpu_zone,), "gpu": (self.gpu_zone,)}
        served: set[str] = set()
        for name, subnet in subnets.by_field().items():
            field = f"existing.subnets.{name}.zone"
            zones = expected.get(name, self.zones)
            if subnet.zone not in zones:
                what = "inferenceZone" if name in expected else "one of zones"
                raise Refusal(subnet.zone, f"{what} ({', '.join(zones)})", field=field)
            if name not in expected and subnet.zone in served:
                raise Refusal(subnet.zone, "one system subnet in each zone", field=field)
            if name not in expected:
                served.add(subnet.zone)
        if missing := [zone for zone in self.zones if zone not in served]:
            given = [subnet.zone for subnet in subnets.system]
            raise Refusal(
                given,
                f"a subnet in each of zones; none is in {', '.join(missing)}",
                field="existing.subnets.system",
            )
        return self

    @model_validator(mode="after")
    def _existing_routes(self) -> Self:
        """With `egress: system`, the existing GPU subnet's route table is that of no other."""
        if self.existing is None or self.egress == "none":
            return self
        subnets = self.existing.subnets
        for name, subnet in subnets.by_field().items():
            if name != "gpu" and subnet.route_table_id == subnets.gpu.route_table_id:
                raise Refusal(
                    subnet.route_table_id,
                    f"another table than {name} has, which leads to the internet with"
                    " egress: system",
                    field="existing.subnets.gpu.routeTableId",
                )
        return self

    @property
    def cidr(self) -> str:
        """IPv4 range of the VPC, made or existing."""
        return self.existing.vpc_cidr if self.existing else self.vpc_cidr or _DEFAULT_VPC_CIDR

    @property
    def serving_cidr(self) -> str:
        """IPv4 range of the serving subnet, which holds the load balancer's addresses."""
        if self.existing:
            return self.existing.subnets.serving.cidr
        return AddressPlan(self.cidr).serving

    @property
    def system_cidrs(self) -> tuple[str, ...]:
        """IPv4 ranges of the system subnets, which hold the control plane's interfaces."""
        if self.existing:
            return tuple(subnet.cidr for subnet in self.existing.subnets.system)
        plan = AddressPlan(self.cidr)
        return tuple(plan.system(position) for position in range(len(self.zones)))

    @property
    def gpu_zone(self) -> str:
        """The zone that holds GPUs, API pods, weights and the load balancer."""
        return self.inference_zone or self.zones[0]
