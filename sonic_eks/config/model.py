"""The configuration of one deployment."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints, ValidationInfo, model_validator

from sonic_eks.config.aws import partition_of
from sonic_eks.config.base import Section, Str
from sonic_eks.config.edge import Edge
from sonic_eks.config.gpu_profile import GpuCapacity, gpu_capacity
from sonic_eks.config.instances import InstanceType, instance_types
from sonic_eks.config.network import Network
from sonic_eks.config.node_rules import serving_nodes_for_api
from sonic_eks.config.platform import Cluster, Deployment, Nodes
from sonic_eks.config.profile import Profile
from sonic_eks.config.rules import RULES
from sonic_eks.config.scaling import Scaling
from sonic_eks.config.secrets import Secrets
from sonic_eks.config.service import (
    Api,
    Drain,
    License,
    Model,
    Observability,
    Registry,
    Slo,
    Weights,
)
from sonic_eks.config.sizes import Sizes
from sonic_eks.config.standalone import Standalone

PROFILE = "profile"
"""Key of the profile that `scaling.profile` names in the context of a validation."""

# Share of a GPU's part of the node that a worker requests when the configuration is silent; the
# rest is for the kubelet's reservation and the DaemonSets.
_WORKER_SHARE = 0.75

# 127 and not 128: AWS::ECR::Repository, Tag, Key.
TagKey = Annotated[Str, StringConstraints(pattern=r"^[A-Za-z0-9 +=._:/@-]{1,127}$")]
TagValue = Annotated[Str, StringConstraints(pattern=r"^[A-Za-z0-9 +=._:/@-]{1,256}$")]


class Configuration(Section):
    """A deployment of Sonic on EKS."""

    deployment: Deployment
    """What the deployment is called and where it lives."""
    network: Network
    """The VPC and its ways out."""
    topology: Literal["distributed", "standalone"] = "distributed"
    """API, NATS and workers as the vendor documents them, or a server on each GPU."""
    cluster: Cluster = Cluster()
    """The EKS control plane."""
    nodes: Nodes = Nodes()
    """The node pools."""
    api: Api = Api()
    """The API server."""
    standalone: Standalone = Standalone()
    """The server of the standalone topology."""
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
    secrets: Secrets = Secrets()
    """What all secrets of the pods share."""
    observability: Observability = Observability()
    """Dashboard and alarms."""
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=40)] = Field(default={})
    """Tags of every resource, beside the deployment's own; 40 at most."""

    _profile: Profile | None = PrivateAttr(default=None)

    @property
    def profile(self) -> Profile | None:
        """What the file of `scaling.profile` says; the model itself reads no file."""
        return self._profile

    @property
    def gpu_capacity(self) -> GpuCapacity:
        """Generations per GPU at the SLO, and what they rest on."""
        return gpu_capacity(self)

    @property
    def generations_per_gpu(self) -> int:
        """Generations per GPU at the SLO: pinned, measured or assumed."""
        return self.gpu_capacity.generations

    @property
    def generations_per_stream(self) -> float:
        """Generations of an active stream, measured or assumed."""
        return self.scaling.generations_per_stream or 1.0

    @property
    def capacity_is_assumed(self) -> bool:
        """Whether neither a measurement nor the operator backs `generations_per_gpu`."""
        return self.gpu_capacity.basis == "assumed"

    def min_replicas(self, model: Model) -> int:
        """Worker pods of a model at least."""
        return Sizes(self).min_replicas(model)

    def max_replicas(self, model: Model) -> int:
        """Worker pods of a model at most."""
        return Sizes(self).max_replicas(model)

    @property
    def reserve_generations(self) -> int:
        """Generations that the workers of each model hold free."""
        return Sizes(self).reserve_generations

    @property
    def headroom_gpus(self) -> int:
        """GPUs that placeholders hold."""
        return Sizes(self).headroom_gpus

    @property
    def api_min_replicas(self) -> int:
        """API pods at least."""
        return Sizes(self).api_min_replicas

    @property
    def api_max_replicas(self) -> int:
        """API pods at most."""
        return Sizes(self).api_max_replicas

    @property
    def gpu_max_nodes(self) -> int:
        """GPU nodes at most, base included."""
        return Sizes(self).gpu_max_nodes

    @property
    def gpu_overflow_nodes(self) -> int:
        """Nodes that Karpenter may add outside the placement group."""
        pool = self.nodes.gpu
        if not pool.overflow.enabled:
            return 0
        half = max(self.gpu_max_nodes - pool.base_size, 0) // 2
        return half if pool.overflow.max_nodes is None else pool.overflow.max_nodes

    @property
    def gpu_burst_nodes(self) -> int:
        """Nodes that Karpenter may add in the placement group: with the rest, `gpu_max_nodes`."""
        return max(self.gpu_max_nodes - self.nodes.gpu.base_size, 0) - self.gpu_overflow_nodes

    @property
    def partition(self) -> str:
        """AWS partition of the region."""
        return partition_of(self.deployment.region)

    @property
    def client_cidrs(self) -> tuple[str, ...]:
        """IPv4 ranges that may call the load balancer."""
        return self.edge.client_cidrs or (self.network.cidr,)

    @property
    def gpu_type(self) -> InstanceType:
        """The GPU nodes' instance type."""
        return instance_types()[self.nodes.gpu.instance_type]

    @property
    def system_nodes(self) -> int:
        """System nodes; at least one in each zone, since a disk stays where it was made."""
        return self.nodes.system.size or len(self.network.zones)

    @property
    def has_serving_nodes(self) -> bool:
        """Whether there are nodes for API pods and NATS."""
        return self.topology == "distributed"

    @property
    def has_license_proxy(self) -> bool:
        """Whether the vendor's license proxy runs."""
        return self.license.mode != "none"

    @property
    def serving_max_nodes(self) -> int:
        """Serving nodes at most; one more than always run, so that a lost one is replaced."""
        pool = self.nodes.serving
        return pool.max_nodes or max(pool.size + 1, serving_nodes_for_api(self))

    def worker_cpu_millicores(self, model: Model) -> int:
        """CPU request of a worker pod in millicores."""
        share = self.gpu_type.vcpus * 1000 / self.nodes.gpu.workers_per_node
        return model.cpu_millicores or int(share * _WORKER_SHARE)

    def worker_memory_mib(self, model: Model) -> int:
        """Memory request and limit of a worker pod in MiB."""
        share = self.gpu_type.memory_mib / self.nodes.gpu.workers_per_node
        return model.memory_mib or int(share * _WORKER_SHARE)

    @model_validator(mode="after")
    def _rules(self, info: ValidationInfo) -> Self:
        self._profile = (info.context or {}).get(PROFILE)
        for rule in RULES:
            rule(self)
        return self
