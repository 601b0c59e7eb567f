"""What a reader of a synthesized deployment should know: assumptions and unset vendor names."""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.capacity.over_capacity import over_capacity_text
from sonic_eks.config import Configuration
from sonic_eks.config.gpu_profile import measured_release
from sonic_eks.config.vendor_images import vendor_images
from sonic_eks.deployment import Deployment

# Families that Karpenter's compiled-in price list (v1.14.1, us-east-1) lacks; in a VPC it asks
# no price service, and launches nothing whose price it does not know.
_WITHOUT_PRICE = ("g7", "p5e", "p6-b300")


@dataclass(frozen=True)
class Notice:
    """One line of the summary.

    Attributes
    ----------
    field : str
        The configuration field that settles it, as a dotted camelCase path.
    text : str
        What is so while it is not settled.
    """

    field: str
    text: str


def warnings(deployment: Deployment) -> list[Notice]:
    """Return what works, but not as one may believe."""
    config = deployment.config
    found = []
    found += _of_capacity(config)
    found += _of_standalone(config)
    found += _of_the_queue(config)
    if not config.cluster.admin_role_arns:
        found.append(
            Notice("cluster.adminRoleArns", "no role may administer the cluster with kubectl")
        )
    if config.edge.certificate_arn is None:
        found.append(Notice("edge.certificateArn", "callers reach the load balancer without TLS"))
    if config.observability.alarm_topic_arn is None:
        found.append(Notice("observability.alarmTopicArn", "alarms notify nobody"))
    if config.deployment.account is None:
        found.append(
            Notice("deployment.account", "any account whose credentials deploy is accepted")
        )
    if config.network.existing is not None:
        table = config.network.existing.subnets.gpu.route_table_id
        found.append(
            Notice(
                "network.existing",
                f"not checked: that {table}, of the GPU subnet, has no route to the internet",
            )
        )
    workers = sum(config.max_replicas(model) for model in config.models)
    if config.scaling.rollout == "replace":
        found.append(
            Notice(
                "scaling.rollout",
                "an update of workers takes one away before its successor is there",
            )
        )
    elif workers + 1 > config.gpu_max_nodes * config.nodes.gpu.workers_per_node:
        found.append(
            Notice(
                "nodes.gpu.maxNodes",
                "no GPU is left for a rolling update's surge when all replicas run",
            )
        )
    found += _of_gpu_nodes(config)
    found += _of_the_registry(config)
    unlocked = sum(1 for artifact in deployment.catalogue.artifacts if artifact.digest is None)
    if unlocked:
        found.append(
            Notice(
                "registry",
                f"{unlocked} images and charts are pinned by tag alone (tags are immutable here);"
                " `sonic-eks mirror lock` pins their digests",
            )
        )
    return found


def _of_capacity(config: Configuration) -> list[Notice]:
    capacity, slo = config.gpu_capacity, config.slo
    field = "scaling.generationsPerGpu"
    if (release := measured_release(config)) is not None:
        text = f"capacity was measured with {release}, and {config.registry.sonic_release} runs"
        return [Notice(field, text)]
    if capacity.basis != "assumed":
        return []
    generations = f"{capacity.generations} generation{'s' if capacity.generations > 1 else ''}"
    found = [
        Notice(
            field,
            f"capacity is assumed, not measured: {generations}"
            f" per {config.gpu_type.gpu or config.gpu_type.name} within"
            f" {slo.ttfb_ms} ms at p{slo.percentile}",
        )
    ]
    if capacity.below_floor:
        found.append(
            Notice(field, f"nothing says that the objective can be kept: {capacity.reason}")
        )
    return found


def _of_gpu_nodes(config: Configuration) -> list[Notice]:
    gpu = config.nodes.gpu
    found = []
    karpenter = config.gpu_max_nodes > gpu.base_size
    if karpenter and config.gpu_type.family in _WITHOUT_PRICE:
        found.append(
            Notice(
                "nodes.gpu.instanceType",
                "Karpenter 1.14.1 has no price for this type and may start no node of it",
            )
        )
    if karpenter and not gpu.overflow.enabled:
        found.append(
            Notice(
                "nodes.gpu.overflow.enabled",
                "pods wait when the placement group has no room for another node",
            )
        )
    if gpu.overflow.spot:
        found.append(
            Notice(
                "nodes.gpu.overflow.spot",
                "streams on Spot nodes are cut when several are taken away at once",
            )
        )
    if gpu.overflow.capacity_block_ids:
        found.append(
            Notice("nodes.gpu.overflow.capacityBlockIds", "these nodes end when the block does")
        )
    return found


def _of_the_queue(config: Configuration) -> list[Notice]:
    queue = config.scaling.queue
    found = []
    if len(config.models) > 1 and queue.counted and queue.model_label is None:
        found.append(
            Notice(
                "scaling.queue.modelLabel",
                "no model's workers are scaled on the queue: nothing says which model it waits for",
            )
        )
    known = config.scaling.over_capacity is not None
    doubt = "" if known else ", if Sonic lets them wait (scaling.overCapacity is not set)"
    for index, model in enumerate(config.models):
        if model.min_replicas == 0:
            found.append(
                Notice(
                    f"models.{index}.minReplicas",
                    f"the first callers of {model.name} wait for a worker,"
                    f" {config.scaling.cold_start_seconds} s or more{doubt}",
                )
            )
    return found


def _of_standalone(config: Configuration) -> list[Notice]:
    if config.topology != "standalone":
        return []
    found = []
    settings = config.standalone
    if settings.stand_in:
        found.append(
            Notice("standalone.standIn", "a stand-in serves: tones, no speech, and any key is good")
        )
    if settings.load_metric is None and config.scaling.generations_per_stream is None:
        found.append(
            Notice(
                "scaling.generationsPerStream",
                "an active stream is assumed to be one generation: not measured",
            )
        )
    if settings.warm_up.body is None:
        found.append(
            Notice(
                "standalone.warmUp.body",
                "a server gets callers without a warm-up: its first generations may be slow",
            )
        )
    return found


def _of_the_registry(config: Configuration) -> list[Notice]:
    found = []
    given = config.registry.vendor_registry is not None or not vendor_images(config)
    if config.registry.mirror_on_deploy and not given:
        found.append(
            Notice(
                "registry.vendorRegistry",
                "a deployment stops at the mirror: nothing says where the Sonic images are; push"
                " them into their repositories by hand, or set this",
            )
        )
    if config.registry.replicate_to:
        found.append(
            Notice(
                "registry.replicateTo",
                f"the account has one list of replication rules in {config.deployment.region}, and"
                " this deployment owns it: it fails where there are rules, and its removal deletes"
                " all of them",
            )
        )
    return found


def unset_vendor_names(config: Configuration) -> list[Notice]:
    """Return the names that only the vendor can give, and that are therefore not rendered."""
    found = []
    if config.registry.vendor_registry is None and vendor_images(config):
        found.append(Notice("registry.vendorRegistry", "where the Sonic images are copied from"))
    if config.standalone.stand_in:
        return found
    alone = config.topology == "standalone"
    for field, name, purpose in (
        ("natsUrlEnv", config.api.nats_url_env, "NATS URL of the API"),
        ("licenseUrlEnv", config.api.license_url_env, "license proxy's URL of the API"),
    ):
        if name is None and not alone:
            found.append(Notice(f"api.{field}", purpose))
    if config.scaling.over_capacity is None:
        found.append(Notice("scaling.overCapacity", over_capacity_text(config)))
    if config.license.mode == "airGapped" and config.license.seed_file is None:
        found.append(
            Notice("license.seedFile", "license file; the first license is loaded by hand")
        )
    for index, model in enumerate(config.models):
        names = [
            ("concurrencyEnv", model.concurrency_env, "concurrency limit"),
            ("batchSizeEnv", model.batch_size_env, "batch size"),
            ("weightsPathEnv", model.weights_path_env, "path of the weights"),
        ]
        if not alone:
            names.append(("natsUrlEnv", model.nats_url_env, "NATS URL"))
        if config.has_license_proxy:
            names.append(("licenseUrlEnv", model.license_url_env, "license proxy's URL"))
        for field, name, purpose in names:
            if name is None:
                found.append(Notice(f"models.{index}.{field}", f"{purpose} of {model.name}"))
    return found
