"""The configuration of one deployment and the rules that span its sections."""

from __future__ import annotations

import difflib
import ipaddress
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from sonic_eks.config.aws import Arn, partition_of
from sonic_eks.config.base import Refusal, Section, Str
from sonic_eks.config.instances import InstanceType, instance_types
from sonic_eks.config.platform import Cluster, Deployment, Network, Nodes
from sonic_eks.config.service import (
    Api,
    Drain,
    Edge,
    License,
    Model,
    Observability,
    Registry,
    Scaling,
    Slo,
    Weights,
)
from sonic_eks.config.vendor_images import API_IMAGE, LICENSE_PROXY_IMAGE, worker_image
from sonic_eks.upstream import UPSTREAMS

ASSUMED_GENERATIONS_PER_GPU = 2
"""Generations per GPU that no measurement backs: the vendor's H100 table meets 100 ms at p95
only up to two ("Sonic 3.5" benchmark, release sonic-20260503)."""

# Amazon EKS user guide, "Update a managed node group": a pod has 15 minutes to leave a node.
MANAGED_NODE_GROUP_DRAIN_SECONDS = 900

# Share of a GPU's part of the node that a worker requests when the configuration is silent; the
# rest is for the kubelet's reservation and the DaemonSets.
_WORKER_SHARE = 0.75
_LARGEST_SHARE = 0.88

# A resource has at most 50 user tags, and keys in aws: are AWS's (AWS General Reference, "Tag
# naming limits and requirements"); CDK, EKS and Karpenter add some of their own. Karpenter's
# EC2NodeClass refuses those that it sets itself, and a security group that carries
# kubernetes.io/cluster is one that the load balancer controller would edit.
_RESERVED_TAGS = (
    "aws:",
    "sonic-eks:",
    "kubernetes.io/cluster",
    "eks:",
    "karpenter.sh/",
    "karpenter.k8s.aws/",
)

TagKey = Annotated[Str, StringConstraints(pattern=r"^[A-Za-z0-9 +=._:/@-]{1,128}$")]
TagValue = Annotated[Str, StringConstraints(pattern=r"^[A-Za-z0-9 +=._:/@-]{1,256}$")]


class Configuration(Section):
    """A deployment of Sonic on EKS."""

    deployment: Deployment
    """What the deployment is called and where it lives."""
    network: Network
    """The VPC and its ways out."""
    cluster: Cluster = Cluster()
    """The EKS control plane."""
    nodes: Nodes = Nodes()
    """The node pools."""
    api: Api = Api()
    """The API server."""
    models: Annotated[tuple[Model, ...], Field(min_length=1, max_length=20)] = (Model(),)
    """The models, one worker Deployment each."""
    weights: Weights = Weights()
    """Model weights."""
    slo: Slo = Slo()
    """The promise on first audio."""
    drain: Drain = Drain()
    """How a pod goes."""
    scaling: Scaling = Scaling()
    """Scaling on active streams."""
    edge: Edge = Edge()
    """The load balancer."""
    registry: Registry = Registry()
    """The private registry."""
    license: License = License()
    """The license proxy."""
    observability: Observability = Observability()
    """Dashboard and alarms."""
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=40)] = Field(default={})
    """Tags of every resource, beside the deployment's own; 40 at most."""

    @property
    def generations_per_gpu(self) -> int:
        """Generations per GPU at the SLO, measured or assumed."""
        return self.scaling.generations_per_gpu or ASSUMED_GENERATIONS_PER_GPU

    @property
    def capacity_is_assumed(self) -> bool:
        """Whether no measurement backs `generations_per_gpu`."""
        return self.scaling.generations_per_gpu is None

    @property
    def partition(self) -> str:
        """AWS partition of the region."""
        return partition_of(self.deployment.region)

    @property
    def client_cidrs(self) -> tuple[str, ...]:
        """IPv4 ranges that may call the load balancer."""
        return self.edge.client_cidrs or (self.network.vpc_cidr,)

    @property
    def gpu_type(self) -> InstanceType:
        """The GPU nodes' instance type."""
        return instance_types()[self.nodes.gpu.instance_type]

    def worker_cpu_millicores(self, model: Model) -> int:
        """CPU request of a worker pod in millicores."""
        share = self.gpu_type.vcpus * 1000 / self.gpu_type.gpus
        return model.cpu_millicores or int(share * _WORKER_SHARE)

    def worker_memory_mib(self, model: Model) -> int:
        """Memory request and limit of a worker pod in MiB."""
        share = self.gpu_type.memory_mib / self.gpu_type.gpus
        return model.memory_mib or int(share * _WORKER_SHARE)

    @model_validator(mode="after")
    def _rules(self) -> Self:
        for rule in RULES:
            rule(self)
        return self


def _zones_belong_to_region(c: Configuration) -> None:
    """`network.zones` are of `deployment.region`; `network.inferenceZone` is one of them."""
    for index, zone in enumerate(c.network.zones):
        if zone[:-1] != c.deployment.region:
            raise Refusal(
                zone,
                f"a zone of deployment.region ({c.deployment.region})",
                nearest=c.deployment.region + zone[-1],
                field=f"network.zones.{index}",
            )
    if c.network.gpu_zone not in c.network.zones:
        raise Refusal(
            c.network.gpu_zone,
            f"one of network.zones ({', '.join(c.network.zones)})",
            field="network.inferenceZone",
        )


def _arns_belong_here(c: Configuration) -> None:
    """ARNs are of the region's partition; certificate and topic are of the region itself.

    Roles, permissions boundary and certificate are of `deployment.account`, when it is given.
    """
    # (field, ARN, whether the resource is regional, whether it must be in this account)
    named: list[tuple[str, str | None, bool, bool]] = [
        ("deployment.permissionsBoundaryArn", c.deployment.permissions_boundary_arn, False, True),
        ("edge.certificateArn", c.edge.certificate_arn, True, True),
        ("observability.alarmTopicArn", c.observability.alarm_topic_arn, True, False),
    ]
    named += [
        (f"cluster.adminRoleArns.{i}", arn, False, True)
        for i, arn in enumerate(c.cluster.admin_role_arns)
    ]
    named += [
        (f"registry.credentialSecretArns.{host}", arn, False, False)
        for host, arn in c.registry.credential_secret_arns.items()
    ]
    for field, text, regional, own in named:
        arn = Arn.parse(text) if text else None
        if arn is None:
            continue
        if arn.partition != c.partition:
            raise Refusal(
                text,
                f"an ARN of the partition {c.partition} (that of {c.deployment.region})",
                field=field,
            )
        if regional and arn.region != c.deployment.region:
            raise Refusal(text, f"an ARN of deployment.region ({c.deployment.region})", field=field)
        account = c.deployment.account
        if own and account and arn.account not in (account, "aws"):
            raise Refusal(text, f"an ARN of deployment.account ({account})", field=field)


def _ranges_are_apart(c: Configuration) -> None:
    """`cluster.serviceCidr` overlaps neither `network.vpcCidr` nor any of `edge.clientCidrs`."""
    service = ipaddress.IPv4Network(c.cluster.service_cidr)
    taken = [("network.vpcCidr", c.network.vpc_cidr)]
    taken += [(f"edge.clientCidrs.{i}", cidr) for i, cidr in enumerate(c.edge.client_cidrs)]
    for field, cidr in taken:
        if service.overlaps(ipaddress.IPv4Network(cidr)):
            raise Refusal(
                c.cluster.service_cidr,
                f"a range that does not overlap {field} ({cidr})",
                field="cluster.serviceCidr",
            )


def _license_can_work(c: Configuration) -> None:
    """`license.mode: connected` needs `network.egress: system`.

    `airGapped` needs `license.dataPath`.
    """
    if c.license.mode == "connected" and c.network.egress == "none":
        raise Refusal(
            "connected",
            "airGapped while network.egress is none; or set network.egress: system",
            field="license.mode",
        )
    if c.license.mode == "airGapped" and c.license.data_path is None:
        raise Refusal(
            None,
            "the folder where the vendor's license proxy keeps its files (mode is airGapped)",
            field="license.dataPath",
        )


def _models_are_apart(c: Configuration) -> None:
    """Each of `models` has a name of its own."""
    seen: set[str] = set()
    for index, model in enumerate(c.models):
        if model.name in seen:
            raise Refusal(model.name, "each name once", field=f"models.{index}.name")
        seen.add(model.name)


def _workers_fit_their_nodes(c: Configuration) -> None:
    """Workers request at most 88 % of a GPU's share of the node's CPU and memory.

    They accept at least the generations per GPU that scaling counts on.
    """
    gpu = c.gpu_type
    cpu = int(gpu.vcpus * 1000 / gpu.gpus * _LARGEST_SHARE)
    memory = int(gpu.memory_mib / gpu.gpus * _LARGEST_SHARE)
    for index, model in enumerate(c.models):
        for field, given, largest in (
            ("cpuMillicores", c.worker_cpu_millicores(model), cpu),
            ("memoryMib", c.worker_memory_mib(model), memory),
        ):
            if given > largest:
                raise Refusal(
                    given,
                    f"at most {largest}, a GPU's share of a {gpu.name}",
                    field=f"models.{index}.{field}",
                )
        if model.max_concurrent_streams and model.max_concurrent_streams < c.generations_per_gpu:
            raise Refusal(
                model.max_concurrent_streams,
                f"at least {c.generations_per_gpu}, the generations per GPU that scaling counts on",
                nearest=str(c.generations_per_gpu),
                field=f"models.{index}.maxConcurrentStreams",
            )


def _gpus_suffice(c: Configuration) -> None:
    """`nodes.gpu.maxNodes` have a GPU for each of the models' `maxReplicas`.

    `nodes.gpu.baseSize` is at most `nodes.gpu.maxNodes`.
    """
    pool = c.nodes.gpu
    if pool.base_size > pool.max_nodes:
        raise Refusal(
            pool.base_size,
            f"at most nodes.gpu.maxNodes ({pool.max_nodes})",
            nearest=str(pool.max_nodes),
            field="nodes.gpu.baseSize",
        )
    wanted = sum(model.max_replicas for model in c.models)
    nodes = -(-wanted // pool.gpus_per_node)
    if nodes > pool.max_nodes:
        raise Refusal(
            pool.max_nodes,
            f"at least {nodes}: the models' maxReplicas add up to {wanted} workers, a GPU each",
            nearest=str(nodes),
            field="nodes.gpu.maxNodes",
        )


def _drains_end_in_time(c: Configuration) -> None:
    """`drain.propagationSeconds`, `maxStreamSeconds` and `marginSeconds` are 900 at most.

    Together, that is: a managed node group's update gives pods 15 minutes to leave.
    """
    rest = c.drain.propagation_seconds + c.drain.margin_seconds
    longest = MANAGED_NODE_GROUP_DRAIN_SECONDS - rest
    if longest < 0:
        raise Refusal(
            c.drain.margin_seconds,
            f"at most {MANAGED_NODE_GROUP_DRAIN_SECONDS - c.drain.propagation_seconds}: a managed"
            " node group's update gives pods 15 minutes to leave, propagationSeconds included",
            field="drain.marginSeconds",
        )
    if c.drain.max_stream_seconds > longest:
        raise Refusal(
            c.drain.max_stream_seconds,
            f"at most {longest}: a managed node group's update gives pods 15 minutes to leave,"
            f" of which propagationSeconds and marginSeconds take {rest}",
            nearest=str(longest),
            field="drain.maxStreamSeconds",
        )


def _credentials_are_of_upstreams(c: Configuration) -> None:
    """Keys of `registry.credentialSecretArns` are hosts that images come from."""
    known = {u.source.removeprefix("oci://").split("/")[0] for u in UPSTREAMS if not u.is_http}
    if c.registry.vendor_registry:
        known.add(c.registry.vendor_registry.split("/")[0])
    for host in c.registry.credential_secret_arns:
        if host not in known:
            close = difflib.get_close_matches(host, sorted(known), n=1)
            raise Refusal(
                host,
                f"hosts of upstream registries: {', '.join(sorted(known))}",
                nearest=close[0] if close else None,
                field="registry.credentialSecretArns",
            )


def _versions_are_of_artifacts(c: Configuration) -> None:
    """Keys of `registry.versions` are names of artifacts."""
    known = [upstream.name for upstream in UPSTREAMS]
    known += [API_IMAGE, LICENSE_PROXY_IMAGE, *(worker_image(m.name) for m in c.models)]
    for name in c.registry.versions:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise Refusal(
                name,
                f"names of artifacts: {', '.join(known)}",
                nearest=close[0] if close else None,
                field="registry.versions",
            )


def _tags_are_free(c: Configuration) -> None:
    """Keys of `tags` start with neither `aws:` nor `sonic-eks:`."""
    for key in c.tags:
        if key.lower().startswith(_RESERVED_TAGS):
            raise Refusal(
                key, f"keys that do not start with {' or '.join(_RESERVED_TAGS)}", field="tags"
            )


# The docstrings are the words of the generated reference.
RULES = (
    _zones_belong_to_region,
    _arns_belong_here,
    _ranges_are_apart,
    _license_can_work,
    _models_are_apart,
    _workers_fit_their_nodes,
    _gpus_suffice,
    _drains_end_in_time,
    _credentials_are_of_upstreams,
    _versions_are_of_artifacts,
    _tags_are_free,
)
