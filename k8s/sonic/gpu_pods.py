"""The pods that hold a GPU: workers, and servers that stand alone."""

from __future__ import annotations

from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.k8s.chart import metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.nodes import NODE_START_SECONDS
from sonic_eks.k8s.placement import Placement, spread_over_nodes
from sonic_eks.k8s.pods import disruption_budget, one_by_one, pod_template, resources
from sonic_eks.k8s.sonic.license_proxy import LICENSE_URL
from sonic_eks.k8s.sonic.secrets import PodSecrets
from sonic_eks.k8s.stream_gate import GATE_CODE
from sonic_eks.k8s.weights import weights_volume
from sonic_eks.nodes.pools import Pool

STARTUP_PERIOD_SECONDS = 5


def gpu_deployment(
    scope: Construct,
    construct_id: str,
    *,
    name: str,
    labels: Labels,
    config: Configuration,
    model: Model,
    container: k8s.Container,
    gate: k8s.Container,
    secrets: PodSecrets,
    volumes: tuple[k8s.Volume, ...] = (),
    annotations: dict[str, str] | None = None,
) -> None:
    """Add the Deployment of a model's pods and its disruption budget.

    The number of pods belongs to a scaler.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The chart, and the Deployment's id in it.
    name, labels : str, Labels
        Of the Deployment.
    config, model : Configuration, Model
        The deployment, and what the pods serve.
    container, gate : Container
        The server, and the stream gate beside it.
    secrets : PodSecrets
        The secrets that the server mounts.
    volumes : tuple of Volume
        Volumes beside the weights and the gate's code.
    annotations : dict, optional
        Annotations of the pods beside the gate's.
    """
    grace = config.drain.grace_seconds
    # On nodes of one GPU the rule costs nothing. On larger ones it must not be strict: a node
    # whose GPUs another model has, or that has not registered any yet, would count as empty
    # and hold back pods that fit elsewhere.
    spread = spread_over_nodes(labels, required=config.nodes.gpu.workers_per_node == 1, min_nodes=2)
    k8s.KubeDeployment(
        scope,
        construct_id,
        metadata=metadata(name, labels, namespace=SONIC_NAMESPACE),
        spec=k8s.DeploymentSpec(
            selector=k8s.LabelSelector(match_labels=labels.selector),
            strategy=one_by_one(surge=config.scaling.rollout == "surge"),
            min_ready_seconds=10,
            # A pod of the new revision may wait for a node, and that for a drain.
            progress_deadline_seconds=grace + NODE_START_SECONDS + model.load_seconds,
            revision_history_limit=3,
            template=pod_template(
                labels,
                container=container,
                placement=Placement(Pool.GPU, spread=spread),
                grace_seconds=grace,
                init_containers=[gate],
                service_account=secrets.service_account,
                annotations=GATE_CODE.annotations | secrets.annotations | (annotations or {}),
                volumes=[
                    GATE_CODE.volume,
                    weights_volume(),
                    *secrets.volumes,
                    *volumes,
                ],
            ),
        ),
    )
    disruption_budget(scope, f"{model.name}-budget", labels, name=name, namespace=SONIC_NAMESPACE)


def gpu_share(config: Configuration, model: Model) -> k8s.ResourceRequirements:
    """Return what a server requests: its GPU, if the node has any, and a share of the node."""
    # No CPU limit: it would throttle audio.
    return resources(
        cpu_millicores=config.worker_cpu_millicores(model),
        memory_mib=config.worker_memory_mib(model),
        ephemeral_mib=1024,
        gpus=1 if config.gpu_type.gpus else 0,
    )


def model_environment(config: Configuration, model: Model) -> list[tuple[str | None, str]]:
    """Return what a server is told, each value with the name that the vendor gave it, or None."""
    generations = config.generations_per_gpu
    return [
        (model.concurrency_env, str(model.max_concurrent_streams or generations)),
        (model.batch_size_env, str(model.max_batch_size or generations)),
        (model.weights_path_env, config.weights.mount_path),
        (model.license_url_env, LICENSE_URL),
    ]
