"""Sections of the platform: where it lives, its cluster and nodes.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from sonic_eks.config.aws import ACCOUNT, is_region, is_zone_name
from sonic_eks.config.base import Bool, Int, Refusal, Section, Str
from sonic_eks.config.gpu_capacity import GpuOverflow, ReservationId, Reservations
from sonic_eks.config.instances import InstanceType, families, instance_types, nearest_types
from sonic_eks.config.kubernetes import check_addon_versions
from sonic_eks.config.values import IAM_POLICY, IAM_ROLE, LogRetentionDays, arn_of, ipv4_range

Generation = Annotated[Int, Field(ge=1, le=9999)]
AddonName = Annotated[Str, Field(max_length=60)]
AddonVersion = Annotated[Str, Field(pattern=r"^v[0-9]{1,4}(\.[0-9]{1,4}){2}-eksbuild\.[0-9]{1,4}$")]


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


class Cluster(Section):
    """The EKS control plane and what nodes run."""

    version: Literal["1.35", "1.36"] = "1.35"
    """Kubernetes version (quoted); packages, charts, images and add-ons must fit (see Rules)."""
    addon_versions: dict[AddonName, AddonVersion] = Field(default={})
    """Pinned EKS add-on versions by add-on name; unset: EKS's default for the version."""
    service_cidr: Str = "172.20.0.0/16"
    """IPv4 range of Kubernetes Services, /12 to /24, outside the VPC and what it reaches."""
    admin_role_arns: Annotated[tuple[Str, ...], Field(max_length=20)] = ()
    """ARNs of the IAM roles that administer the cluster, beside the deployment's own handler."""
    api_client_cidrs: Annotated[tuple[Str, ...], Field(max_length=20)] = ()
    """IPv4 ranges from where kubectl may reach the API's private endpoint; unset: none."""
    ami_alias: Annotated[Str, Field(pattern=r"^al2023@v[0-9]{8}$")] = "al2023@v20260724"
    """Karpenter AMI alias with a pinned release; the NVIDIA variant follows from the type."""
    log_retention_days: LogRetentionDays = 90
    """Days that control plane logs are kept."""

    @field_validator("addon_versions")
    @classmethod
    def _addon_versions(cls, value: dict[str, str]) -> dict[str, str]:
        """`addonVersions` are of add-ons that the cluster has, kube-proxy's among them."""
        check_addon_versions(value)
        return value

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

    @field_validator("api_client_cidrs")
    @classmethod
    def _api_clients(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`apiClientCidrs` are IPv4 ranges of /8 or smaller, each once."""
        for index, cidr in enumerate(value):
            if ipv4_range(cidr, field=str(index)).prefixlen < 8:
                raise Refusal(cidr, "ranges of /8 or smaller", field=str(index))
            if cidr in value[:index]:
                raise Refusal(cidr, "each range once", field=str(index))
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


_SYSTEM_VCPUS = 4


class CpuPool(Section):
    """A managed node group of CPU nodes; it keeps its size."""

    instance_type: Str = "m7i.xlarge"
    """EC2 instance type, x86_64, without a GPU."""
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

    size: Annotated[Int, Field(ge=2, le=100)] | None = None
    """Nodes that always run, one in each of `network.zones` at least; unset: one in each."""

    @field_validator("instance_type")
    @classmethod
    def _holds_the_controllers(cls, value: str) -> str:
        """`instanceType` of system nodes has 4 vCPUs or more."""
        # With one of two nodes away, the other holds every controller: 2.9 vCPUs with its agents.
        known = instance_types()[value]
        if known.vcpus < _SYSTEM_VCPUS:
            raise Refusal(
                value,
                f"a type with {_SYSTEM_VCPUS} vCPUs or more: one node holds all controllers while"
                " another is replaced",
                nearest=f"{known.family}.xlarge",
            )
        return value


class ServingPool(CpuPool):
    """Nodes of API pods, NATS and license proxy in the inference zone."""

    size: Annotated[Int, Field(ge=3, le=100)] = 3
    """Nodes that always run; three, one for each NATS server."""
    max_nodes: Annotated[Int, Field(ge=3, le=200)] | None = None
    """Nodes at most, `size` included; unset: what `api.maxReplicas` need, one above `size` up."""


class GpuPool(Section):
    """GPU nodes: a managed base in a cluster placement group, Karpenter for more."""

    instance_type: Str = "g6e.2xlarge"
    """EC2 instance type with NVIDIA GPUs of the Ampere generation or newer, 24 GB or more."""
    base_size: Annotated[Int, Field(ge=2, le=50)] = 2
    """Nodes of the managed node group, which always run."""
    max_nodes: Annotated[Int, Field(ge=2, le=500)] | None = None
    """GPU nodes at most, base included; unset: for all workers and spare GPUs."""
    base_reservation_id: ReservationId | None = None
    """Id of the On-Demand Capacity Reservation of the base, which nothing else uses."""
    reservation_ids: Reservations = ()
    """Ids of On-Demand Capacity Reservations that the burst fills first, made in the group."""
    overflow: GpuOverflow = GpuOverflow()
    """GPU nodes outside the placement group."""
    root_volume_gib: Annotated[Int, Field(ge=50, le=2000)] = 200
    """Size of the encrypted gp3 root volume in GiB; worker images carry CUDA."""
    consolidate_after_seconds: Annotated[Int, Field(ge=600, le=86_400)] = 600
    """Seconds that a burst node must be empty before Karpenter removes it."""

    @field_validator("instance_type")
    @classmethod
    def _gpu_type(cls, value: str) -> str:
        """`instanceType` is an x86_64 type with whole NVIDIA GPUs, Ampere or newer, 24 GB up.

        Types without a GPU are for `standalone.standIn`.
        """
        known = instance_types().get(value)
        if known is None or not (known.serves_sonic or known.serves_cpu):
            raise Refusal(
                value,
                "an x86_64 type with whole NVIDIA GPUs, Ampere or newer, 24 GB or more, of the"
                f" families {', '.join(families(gpu=True))}{_what_it_has(known)}",
                nearest=", ".join(nearest_types(value, gpu=True)),
            )
        return value

    @property
    def workers_per_node(self) -> int:
        """Workers that one node is for: one a GPU, and one where a stand-in needs none."""
        return max(instance_types()[self.instance_type].gpus, 1)


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
    upgrade: Literal["rolling", "replaceGroup"] = "rolling"
    """How managed nodes are replaced: in place by EKS, or by a new group beside the old one."""
    generations: Annotated[tuple[Generation, ...], Field(min_length=1, max_length=2)] = (1,)
    """With replaceGroup: numbers of the groups that exist; the last one is the newest."""

    @model_validator(mode="after")
    def _generations(self) -> Self:
        """Numbers of `generations` rise; they are `[1]` unless `upgrade` is `replaceGroup`."""
        given = list(self.generations)
        if self.upgrade == "rolling" and given != [1]:
            raise Refusal(given, "[1] while upgrade is rolling", field="generations")
        if given != sorted(set(given)):
            raise Refusal(given, "rising numbers, each once", field="generations")
        return self
