"""Sections of the service: models, weights, objectives, draining, scaling, registry.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from sonic_eks.config.aws import ACCOUNT, is_region
from sonic_eks.config.base import Bool, Int, Refusal, Section, Str, WholeChoice
from sonic_eks.config.secrets import RelativePath, SecretFiles, secret_arn
from sonic_eks.config.traffic import Traffic
from sonic_eks.config.values import (
    SECRET,
    TOPIC,
    arn_of,
    environment_value,
    image_tag,
    mount_folder,
)
from sonic_eks.mirror.reference import is_registry

_KUBERNETES_NAME = r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
_REPOSITORY = r"^[a-z0-9]+([._/-][a-z0-9]+)*$"
_ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_ABSOLUTE_PATH = r"^/[A-Za-z0-9_-][A-Za-z0-9._/-]{0,199}$"

_MAX_GIB = 2_400_000

# The instance types that nodes.gpu takes all have x86-64 processors.
_NODE_PLATFORM = "linux/amd64"
_LABEL_VALUE = r"^[A-Za-z0-9][A-Za-z0-9 ._:/@+-]{0,99}$"
_HOST = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$"

Platform = Annotated[Str, Field(pattern=r"^[a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?$", max_length=40)]
AccountId = Annotated[Str, Field(pattern=ACCOUNT)]
RegistryHost = Annotated[Str, Field(pattern=_HOST, max_length=200)]
EnvName = Annotated[Str, Field(pattern=_ENV_NAME)]
ImageRepository = Annotated[Str, Field(pattern=_REPOSITORY, max_length=100)]
EnvValue = Annotated[Str, Field(max_length=4096), AfterValidator(environment_value)]
Environment = Annotated[dict[EnvName, EnvValue], Field(max_length=100)]
MountPath = Annotated[Str, Field(pattern=_ABSOLUTE_PATH), AfterValidator(mount_folder)]


def _environment_once(env: Environment, **names: str | None) -> None:
    """Refuse an environment name that two settings would give a value."""
    taken = dict.fromkeys(env, "env")
    for field, name in names.items():
        if name is None:
            continue
        if name in taken:
            raise Refusal(name, f"a name that {taken[name]} does not set too", field=field)
        taken[name] = field


class Model(Section):
    """A Sonic model: one worker Deployment, one GPU a pod."""

    name: Annotated[Str, Field(pattern=_KUBERNETES_NAME)] = "sonic-3"
    """Name of the model; Kubernetes objects carry it."""
    image: ImageRepository = "cartesia-sonic-rosy-dragon"
    """Repository of the worker image in the vendor's registry."""
    traffic: Traffic | None = None
    """What callers ask of it; unset: not known."""
    min_replicas: Annotated[Int, Field(ge=0, le=500)] | None = None
    """Worker pods at least, so that one may be lost; unset: from the traffic, else 2; 0: none."""
    max_replicas: Annotated[Int, Field(ge=2, le=500)] | None = None
    """Worker pods at most; unset: from the traffic, else 8."""
    max_concurrent_streams: Annotated[Int, Field(ge=1, le=1024)] | None = None
    """Generations that a worker accepts at once; unset: the generations per GPU at the SLO."""
    max_batch_size: Annotated[Int, Field(ge=1, le=1024)] | None = None
    """Generations that a worker batches; unset: the generations per GPU at the SLO."""
    concurrency_env: EnvName | None = None
    """Environment name, given by the vendor, of the concurrency limit; unset: not rendered."""
    batch_size_env: EnvName | None = None
    """Environment name, given by the vendor, of the batch size; unset: not rendered."""
    weights_path_env: EnvName | None = None
    """Environment name, given by the vendor, of the weights' path; unset: not rendered."""
    nats_url_env: EnvName | None = None
    """Environment name, given by the vendor, of the NATS URL; unset: not rendered."""
    license_url_env: EnvName | None = None
    """Environment name, given by the vendor, of the license proxy's URL; unset: not rendered."""
    env: Environment = Field(default={})
    """Further environment of the worker; never a secret."""
    queue_label_value: Annotated[Str, Field(pattern=_LABEL_VALUE)] | None = None
    """Value of `scaling.queue.modelLabel` that stands for this model; unset: its name."""
    secret_files: SecretFiles = Field(default={})
    """Secrets Manager ARNs by file name, 10 at most: files in /mnt/secrets of the worker."""
    load_seconds: Annotated[Int, Field(ge=30, le=3600)] = 600
    """Seconds that a worker may take to load its model before the kubelet restarts it."""
    cpu_millicores: Annotated[Int, Field(ge=100, le=192_000)] | None = None
    """CPU request of a worker pod in millicores; unset: 3/4 of the node's share of one GPU."""
    memory_mib: Annotated[Int, Field(ge=1024, le=4_194_304)] | None = None
    """Memory request and limit of a worker in MiB; unset: 3/4 of the node's share of one GPU."""

    @field_validator("min_replicas")
    @classmethod
    def _not_one(cls, value: int | None) -> int | None:
        """`minReplicas` is not 1."""
        if value == 1:
            raise Refusal(
                value,
                "a whole number, 2 to 500, as one worker goes with its node; or 0, for none while"
                " nobody calls",
                nearest="2",
            )
        return value

    @model_validator(mode="after")
    def _environment(self) -> Self:
        """Each environment name is set once."""
        _environment_once(
            self.env,
            concurrencyEnv=self.concurrency_env,
            batchSizeEnv=self.batch_size_env,
            weightsPathEnv=self.weights_path_env,
            natsUrlEnv=self.nats_url_env,
            licenseUrlEnv=self.license_url_env,
        )
        return self


class Api(Section):
    """The API server: HTTP and WebSocket on port 5000."""

    image: ImageRepository = "cartesia-api"
    """Repository of the API image in the vendor's registry."""
    min_replicas: Annotated[Int, Field(ge=2, le=200)] | None = None
    """API pods at least; unset: from the models' traffic, 3 or more."""
    max_replicas: Annotated[Int, Field(ge=2, le=200)] | None = None
    """API pods at most; unset: from the models' traffic, 6 or more."""
    weights_mount_path: MountPath | None = None
    """Where API pods see the bucket of weights and voices, read-only; unset: they do not."""
    nats_url_env: EnvName | None = None
    """Environment name, given by the vendor, of the NATS URL; unset: not rendered."""
    license_url_env: EnvName | None = None
    """Environment name, given by the vendor, of the license proxy's URL; unset: not rendered."""
    env: Environment = Field(default={})
    """Further environment of the API; never a secret."""
    secret_files: SecretFiles = Field(default={})
    """Secrets Manager ARNs by file name, 10 at most: files in /mnt/secrets of the API."""
    cpu_millicores: Annotated[Int, Field(ge=100, le=48_000)] = 1000
    """CPU request of an API pod in millicores (assumed: the vendor publishes none)."""
    memory_mib: Annotated[Int, Field(ge=128, le=256_000)] = 2048
    """Memory request and limit of an API pod in MiB (assumed: the vendor publishes none)."""

    @model_validator(mode="after")
    def _environment(self) -> Self:
        """Each environment name is set once."""
        _environment_once(
            self.env, natsUrlEnv=self.nats_url_env, licenseUrlEnv=self.license_url_env
        )
        return self


class Weights(Section):
    """Model weights: a kept S3 bucket, read through FSx for Lustre."""

    capacity_gib: Int = 1200
    """Capacity of the file system in GiB: 1200 or a multiple of 2400 (FSx, PERSISTENT_2 SSD)."""
    throughput_mb_per_s_per_tib: Annotated[Literal[125, 250, 500, 1000], WholeChoice] = 250
    """Throughput of the file system in MB/s for each TiB."""
    mount_path: MountPath = "/mnt/weights"
    """Where workers see the weights, read-only."""

    @field_validator("capacity_gib", mode="before")
    @classmethod
    def _capacity(cls, value: object) -> object:
        """`capacityGib` is 1200 or a multiple of 2400, up to 2400000."""
        # FSx API reference, CreateFileSystem, StorageCapacity; a file system's quota is far below.
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and (value == 1200 or value in range(2400, _MAX_GIB + 1, 2400)):
            return value
        raise Refusal(
            value,
            f"1200 or a multiple of 2400 up to {_MAX_GIB}, a whole number of GiB",
            nearest=" or ".join(str(n) for n in _nearest_capacities(value)),
        )


def _nearest_capacities(value: object) -> list[int]:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return [1200]
    if value <= 1200:
        return [1200]
    if value < 2400:
        return [1200, 2400]
    below = int(min(value, _MAX_GIB)) // 2400 * 2400
    return [below] if below >= _MAX_GIB else [below, below + 2400]


class Slo(Section):
    """The promise on first audio, as the caller measures it (TTFB)."""

    ttfb_ms: Annotated[Int, Field(ge=10, le=10_000)] = 100
    """Time to first byte of audio in milliseconds."""
    percentile: Annotated[Literal[50, 90, 95, 99], WholeChoice] = 95
    """Percentile of generations that keeps it."""
    path_budget_ms: Annotated[Int, Field(ge=0, le=5_000)] = 20
    """Share of it in milliseconds for network, API and NATS; the worker has the rest."""

    @model_validator(mode="after")
    def _budget(self) -> Self:
        """`pathBudgetMs` is less than `ttfbMs`."""
        if self.path_budget_ms >= self.ttfb_ms:
            raise Refusal(
                self.path_budget_ms, f"less than ttfbMs ({self.ttfb_ms})", field="pathBudgetMs"
            )
        return self


class Drain(Section):
    """How long a pod that goes keeps serving what it has."""

    max_stream_seconds: Annotated[Int, Field(ge=0, le=3600)] = 600
    """Longest life of a client's connection in seconds."""
    propagation_seconds: Annotated[Int, Field(ge=120, le=600)] = 120
    """Seconds until the load balancer surely sends nothing new to a target that goes."""
    margin_seconds: Annotated[Int, Field(ge=10, le=600)] = 60
    """Seconds between the end of the drain and the kill."""
    idle_seconds: Annotated[Int, Field(ge=1, le=60)] = 2
    """Seconds without payload after which a connection is not an active stream any more."""
    worker: Literal["sigterm", "wait-idle"] = "sigterm"
    """Whether a worker gets SIGTERM at once, or when it has had no generation for idleSeconds."""

    @property
    def budget_seconds(self) -> int:
        """Longest duration of a drain (the preStop hook) in seconds."""
        return self.propagation_seconds + self.max_stream_seconds

    @property
    def grace_seconds(self) -> int:
        """The pods' terminationGracePeriodSeconds."""
        return self.budget_seconds + self.margin_seconds


class Registry(Section):
    """The private registry, a copy of every upstream image and chart."""

    vendor_registry: Annotated[Str, Field(max_length=200)] | None = None
    """Host and path of the vendor's registry, no scheme, given by the vendor; unset: not known."""
    sonic_release: Str = "sonic-20260503"
    """Vendor release tag of API, license proxy and workers together."""
    versions: dict[Str, Str] = Field(default={})
    """Tags that replace those of the catalogue, by artifact name (see `make synth`)."""
    platforms: Annotated[tuple[Platform, ...], Field(max_length=10)] = ()
    """Platforms to copy of each image, such as linux/amd64; empty: all, exactly as upstream."""
    credential_secret_arns: dict[RegistryHost, Str] = Field(default={})
    """Secrets Manager secrets with upstream credentials, by registry host, such as ghcr.io."""
    mirror_on_deploy: Bool = True
    """Whether a deployment fills the registry; if not, `sonic-eks mirror run` must, before it."""
    pull_account_ids: Annotated[tuple[AccountId, ...], Field(max_length=50)] = ()
    """Ids of further accounts (12 digits, quoted) that may pull; 50 at most."""
    replicate_to: Annotated[tuple[Str, ...], Field(max_length=25)] = ()
    """Regions to copy new images to, by the account's one list of rules (see docs/mirror.md)."""

    @field_validator("vendor_registry")
    @classmethod
    def _vendor(cls, value: str | None) -> str | None:
        """`vendorRegistry` is a host name with a dot or a port, and a path if there is one."""
        if value is not None and not is_registry(value):
            bare = value.rpartition("://")[2].rstrip("/").lower()
            raise Refusal(
                value,
                "HOST[:PORT][/PATH] in lower case, such as registry.example.com/sonic",
                nearest=bare if is_registry(bare) else None,
            )
        return value

    @field_validator("platforms")
    @classmethod
    def _platforms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`platforms`, when given, hold that of the nodes: linux/amd64."""
        if value and _NODE_PLATFORM not in value:
            raise Refusal(value, f"platforms with {_NODE_PLATFORM}, which every node runs, or none")
        return value

    @field_validator("credential_secret_arns")
    @classmethod
    def _secrets(cls, value: dict[str, str]) -> dict[str, str]:
        """`credentialSecretArns` are ARNs of Secrets Manager secrets."""
        for host, arn in value.items():
            arn_of(arn, SECRET, field=host)
        return value

    @field_validator("pull_account_ids", "replicate_to")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`pullAccountIds` and `replicateTo` name each account and each region once."""
        for index, name in enumerate(value):
            if name in value[:index]:
                raise Refusal(name, "each once", field=str(index))
        return value

    @field_validator("replicate_to")
    @classmethod
    def _regions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`replicateTo` are regions."""
        for index, region in enumerate(value):
            if not is_region(region):
                lower = region.lower()
                raise Refusal(
                    region,
                    "a region name such as us-west-2",
                    nearest=lower if is_region(lower) else None,
                    field=str(index),
                )
        return value

    @field_validator("sonic_release")
    @classmethod
    def _release(cls, value: str) -> str:
        """`sonicRelease` is an image tag and not `latest`."""
        return image_tag(value)

    @field_validator("versions")
    @classmethod
    def _versions(cls, value: dict[str, str]) -> dict[str, str]:
        """`versions` are image tags, and none is `latest`."""
        for name, tag in value.items():
            image_tag(tag, field=name)
        return value


class License(Section):
    """The license proxy, the only Sonic pod that may leave the VPC."""

    mode: Literal["connected", "airGapped", "none"] = "connected"
    """Whether the proxy reports to the vendor, works from an offline license file, or is not."""
    image: ImageRepository = "cartesia-license-proxy"
    """Repository of the license proxy's image in the vendor's registry."""
    env: Environment = Field(default={})
    """Environment of the license proxy; never a secret."""
    secret_files: SecretFiles = Field(default={})
    """Secrets Manager ARNs by file name, 10 at most: files in /mnt/secrets of the proxy."""
    volume_gib: Annotated[Int, Field(ge=1, le=100)] = 5
    """Size in GiB of the volume that keeps license and usage logs (air-gapped only)."""
    data_path: MountPath | None = None
    """Where the proxy keeps its files, given by the vendor; required when air-gapped."""
    seed_file: RelativePath | None = None
    """Path of the license file below `dataPath`, given by the vendor; unset: not seeded."""
    seed_secret_arn: Str | None = None
    """Secrets Manager ARN of the first license, copied to `seedFile` if nothing is there."""

    @field_validator("seed_secret_arn")
    @classmethod
    def _seed(cls, value: str | None) -> str | None:
        """`seedSecretArn` is the complete ARN of a Secrets Manager secret."""
        return secret_arn(value)


class Observability(Section):
    """Dashboard and alarms."""

    alarm_topic_arn: Str | None = None
    """ARN of the SNS topic that alarms notify; unset: alarms only change state."""

    @field_validator("alarm_topic_arn")
    @classmethod
    def _topic(cls, value: str | None) -> str | None:
        """`alarmTopicArn` is the ARN of an SNS topic."""
        return arn_of(value, TOPIC)
