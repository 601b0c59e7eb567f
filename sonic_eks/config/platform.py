"""Sections of the platform: where it lives, its network, cluster and nodes.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, field_validator

from sonic_eks.config.aws import ACCOUNT, is_region, is_zone_id, is_zone_name
from sonic_eks.config.base import Bool, Int, Refusal, Section, Str, WholeChoice
from sonic_eks.config.instances import InstanceType, families, instance_types, nearest_types
from sonic_eks.config.values import IAM_POLICY, IAM_ROLE, arn_of, ipv4_range

LogRetentionDays = Annotated[
    Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096], WholeChoice
]
_ZONE = "a zone name such as us-east-1a"
# Zone ids name the same zone in every account, zone names do not: only AWS can translate.
_NOT_A_ZONE_ID = f"{_ZONE}, not a zone id (aws ec2 describe-availability-zones shows both)"


class Deployment(Section):
    """What this deployment is called and where it lives."""

    name: Annotated[Str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=100)]
    """Name of the deployment, lower-case letters, digits and single hyphens, 100 at most."""
    region: Str
    """AWS region, such as us-east-1."""
    account: Annotated[Str, Field(pattern=ACCOUNT)] | None = None
    """AWS account id (12 digits, quoted); unset: the account of the credentials at deploy."""
    bootstrap_qualifier: Annotated[Str, Field(pattern=r"^[a-z0-9]{1,10}$")] = "hnb659fds"
    """Qualifier of the CDK bootstrap stack to deploy through."""
    permissions_boundary_arn: Str | None = None
    """ARN of an IAM policy that bounds every role of the deployment."""
    termination_protection: Bool = False
    """Whether CloudFormation refuses to delete the stacks."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        """`name` is not `internal` and does not start with `internal-`."""
        # The load balancer's name starts with it (CreateLoadBalancer, Elastic Load Balancing API).
        if f"{value}-".startswith("internal-"):
            raise Refusal(value, "a name that does not start with internal, as AWS keeps that")
        return value

    @field_validator("region")
    @classmethod
    def _region(cls, value: str) -> str:
        """`region` is a region, not a zone, of the partitions aws, aws-cn and aws-us-gov."""
        if is_zone_name(value):
            raise Refusal(value, "a region, not a zone", nearest=value[:-1])
        if not is_region(value):
            lower = value.lower()
            raise Refusal(
                value,
                "a region name such as us-east-1, of the partitions aws, aws-cn and aws-us-gov",
                nearest=lower if is_region(lower) else None,
            )
        return value

    @field_validator("permissions_boundary_arn")
    @classmethod
    def _boundary(cls, value: str | None) -> str | None:
        """`permissionsBoundaryArn` is the ARN of an IAM policy."""
        return arn_of(value, IAM_POLICY)


class Network(Section):
    """The VPC and its ways out."""

    zones: Annotated[tuple[Str, ...], Field(min_length=2, max_length=3)]
    """Names of the 2 or 3 zones of the system subnets; EKS needs two."""
    inference_zone: Str | None = None
    """Name of the zone of GPUs, API pods, weights and load balancer; unset: the first zone."""
    vpc_cidr: Str = "10.42.0.0/16"
    """IPv4 range of the VPC, /16 to /22."""
    egress: Literal["system", "none"] = "system"
    """Who has a route to the internet: system and serving subnets (NAT), or nobody."""
    flow_log_retention_days: LogRetentionDays = 90
    """Days that VPC flow logs are kept."""

    @field_validator("zones")
    @classmethod
    def _zones(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`zones` are zone names, not zone ids, each once."""
        for index, zone in enumerate(value):
            if not is_zone_name(zone):
                allowed = _NOT_A_ZONE_ID if is_zone_id(zone) else _ZONE
                raise Refusal(zone, allowed, field=str(index))
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
    def _vpc_cidr(cls, value: str) -> str:
        """`vpcCidr` is a private range, or one of 100.64.0.0/10, from /16 to /22."""
        network = ipv4_range(value)
        if not 16 <= network.prefixlen <= 22:
            raise Refusal(value, "a prefix length from /16 to /22")
        private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
        if not any(network.subnet_of(ipaddress.IPv4Network(p)) for p in private):
            raise Refusal(value, f"a range inside {', '.join(private)}")
        return value

    @property
    def gpu_zone(self) -> str:
        """The zone that holds GPUs, API pods, weights and the load balancer."""
        return self.inference_zone or self.zones[0]


class Cluster(Section):
    """The EKS control plane and what nodes run."""

    version: Literal["1.35"] = "1.35"
    """Kubernetes version (quoted); kubectl layer, manifests and add-ons are made for it."""
    service_cidr: Str = "172.20.0.0/16"
    """IPv4 range of Kubernetes Services, /12 to /24, outside the VPC and what it reaches."""
    admin_role_arns: tuple[Str, ...] = ()
    """ARNs of the IAM roles that administer the cluster, beside the deployment's own handler."""
    ami_alias: Annotated[Str, Field(pattern=r"^al2023@v[0-9]{8}$")] = "al2023@v20260724"
    """Karpenter AMI alias with a pinned release; the NVIDIA variant follows from the type."""
    log_retention_days: LogRetentionDays = 90
    """Days that control plane logs are kept."""

    @field_validator("service_cidr")
    @classmethod
    def _service_cidr(cls, value: str) -> str:
        """`serviceCidr` is a private range from /12 to /24."""
        network = ipv4_range(value)
        private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
        inside = any(network.subnet_of(ipaddress.IPv4Network(p)) for p in private)
        if not (inside and 12 <= network.prefixlen <= 24):
            raise Refusal(value, f"a range of /12 to /24 inside {', '.join(private)}")
        return value

    @field_validator("admin_role_arns")
    @classmethod
    def _admins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`adminRoleArns` are ARNs of IAM roles, each once."""
        for index, arn in enumerate(value):
            arn_of(arn, IAM_ROLE, field=str(index))
            if arn in value[:index]:
                raise Refusal(arn, "each role once", field=str(index))
        return value


class CpuPool(Section):
    """A managed node group of CPU nodes; it keeps its size."""

    instance_type: Str = "m7i.xlarge"
    """EC2 instance type, x86_64, without a GPU."""
    size: Annotated[Int, Field(ge=2, le=100)] = 2
    """Nodes that always run."""
    root_volume_gib: Annotated[Int, Field(ge=30, le=1000)] = 80
    """Size of the encrypted gp3 root volume in GiB."""

    @field_validator("instance_type")
    @classmethod
    def _cpu_type(cls, value: str) -> str:
        """`instanceType` is an x86_64 type without a GPU, of a known family, large or above."""
        known = instance_types().get(value)
        if known is None or not known.serves_cpu:
            raise Refusal(
                value,
                f"an x86_64 type, large or above, of the families {', '.join(families(gpu=False))}",
                nearest=", ".join(nearest_types(value, gpu=False)),
            )
        return value


class SystemPool(CpuPool):
    """Nodes of the controllers, spread over all zones."""

    size: Annotated[Int, Field(ge=2, le=100)] = 2
    """Nodes that always run; two, since Karpenter's replicas refuse to share one."""


class ServingPool(CpuPool):
    """Nodes of API pods, NATS and license proxy in the inference zone."""

    size: Annotated[Int, Field(ge=3, le=100)] = 3
    """Nodes that always run; three, one for each NATS server."""


class GpuPool(Section):
    """GPU nodes: a managed base in a cluster placement group, Karpenter for more."""

    instance_type: Str = "g6e.2xlarge"
    """EC2 instance type with NVIDIA GPUs of the Ampere generation or newer, 24 GB or more."""
    base_size: Annotated[Int, Field(ge=2, le=50)] = 2
    """Nodes of the managed node group, which always run."""
    max_nodes: Annotated[Int, Field(ge=2, le=500)] = 9
    """GPU nodes at most, base included; one above the workers' maximum for surge."""
    root_volume_gib: Annotated[Int, Field(ge=50, le=2000)] = 200
    """Size of the encrypted gp3 root volume in GiB; worker images carry CUDA."""
    consolidate_after_seconds: Annotated[Int, Field(ge=600, le=86_400)] = 600
    """Seconds that a burst node must be empty before Karpenter removes it."""

    @field_validator("instance_type")
    @classmethod
    def _gpu_type(cls, value: str) -> str:
        """`instanceType` is an x86_64 type with whole NVIDIA GPUs, Ampere or newer, 24 GB up."""
        known = instance_types().get(value)
        if known is None or not known.serves_sonic:
            raise Refusal(
                value,
                "an x86_64 type with whole NVIDIA GPUs, Ampere or newer, 24 GB or more, of the"
                f" families {', '.join(families(gpu=True))}{_what_it_has(known)}",
                nearest=", ".join(nearest_types(value, gpu=True)),
            )
        return value

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node."""
        return instance_types()[self.instance_type].gpus


def _what_it_has(known: InstanceType | None) -> str:
    if known is None:
        return ""
    if not known.gpu:
        return " (this one has no GPU)"
    part = "" if known.gpus else "a part of one "
    return f" (this one has {part}{known.gpu}, {known.gpu_generation}, on {known.architecture})"


class Nodes(Section):
    """The node pools."""

    system: SystemPool = SystemPool()
    """Managed node group of the controllers."""
    serving: ServingPool = ServingPool()
    """Managed node group of API pods and NATS."""
    gpu: GpuPool = GpuPool()
    """GPU nodes."""
