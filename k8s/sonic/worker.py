"""The model workers: one Deployment a model, one GPU a pod."""

from __future__ import annotations

import math

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import worker_image
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.nats import NATS_URL
from sonic_eks.k8s.nodes import NODE_START_SECONDS
from sonic_eks.k8s.placement import Placement, Pool, spread_over_nodes
from sonic_eks.k8s.pods import disruption_budget, one_by_one, pod_template, resources
from sonic_eks.k8s.probes import exec_probe, http_probe, patient_liveness
from sonic_eks.k8s.prometheus import METRICS_PORT_NAME
from sonic_eks.k8s.sonic.license_proxy import LICENSE_URL
from sonic_eks.k8s.sonic.pods import METRICS_PORT, environment, vendor_security
from sonic_eks.k8s.stream_gate import drain_hook, gate_annotations, gate_container, gate_volume
from sonic_eks.k8s.weights import WEIGHTS_CLAIM

_STARTUP_PERIOD_SECONDS = 5

# The vendor's own startup probe polls the metrics until inferno_worker_capacity is above zero
# (Cartesia, "Architecture"): an httpGet probe sees only the status. The image is Ubuntu 22.04, so
# it has bash and need not have curl. HTTP/1.0 asks for a plain body and an end of file.
MODEL_LOADED_SCRIPT = rf"""
capacity='^inferno_worker_capacity(\{{.*\}})?[[:space:]]+0*\.?0*[1-9]'
exec 3<>/dev/tcp/127.0.0.1/{METRICS_PORT} || exit 1
printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
while IFS= read -r line <&3 || [[ -n $line ]]; do
  [[ $line =~ $capacity ]] && exit 0
done
exit 1
""".strip()


def worker_name(model: Model) -> str:
    """Return the name of a model's Deployment."""
    return f"sonic-worker-{model.name}"


def worker_labels(config: Configuration, model: Model) -> Labels:
    """Return the labels of a model's workers."""
    return Labels.of(config, "sonic-worker", component="worker", model=model.name)


class Workers(DeploymentChart):
    """A Deployment and a disruption budget for each model."""

    def build(self) -> None:
        """Add the Deployments; their number of pods belongs to the scalers."""
        for model in self.config.models:
            self._deployment(model)
            disruption_budget(
                self,
                f"{model.name}-budget",
                worker_labels(self.config, model),
                name=worker_name(model),
                namespace=SONIC_NAMESPACE,
            )

    def _deployment(self, model: Model) -> None:
        labels = worker_labels(self.config, model)
        name = worker_name(model)
        grace = self.config.drain.grace_seconds
        # On nodes of one GPU the rule costs nothing. On larger ones it must not be strict: a node
        # whose GPUs another model has, or that has not registered any yet, would count as empty
        # and hold back pods that fit elsewhere.
        spread = spread_over_nodes(
            labels, required=self.config.nodes.gpu.gpus_per_node == 1, min_nodes=2
        )
        k8s.KubeDeployment(
            self,
            f"{model.name}-deployment",
            metadata=metadata(name, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.DeploymentSpec(
                selector=k8s.LabelSelector(match_labels=labels.selector),
                strategy=one_by_one(surge=self.config.scaling.rollout == "surge"),
                min_ready_seconds=10,
                # A pod of the new revision may wait for a node, and that for a drain.
                progress_deadline_seconds=grace + NODE_START_SECONDS + model.load_seconds,
                revision_history_limit=3,
                template=pod_template(
                    labels,
                    container=self._container(model),
                    placement=Placement(Pool.GPU, spread=spread),
                    grace_seconds=grace,
                    init_containers=[
                        gate_container(
                            self.catalogue,
                            self.config.drain,
                            watch=[f"--load-url=http://127.0.0.1:{METRICS_PORT}/metrics"],
                            # No load balancer has to learn of the removal.
                            propagation_seconds=0,
                        )
                    ],
                    annotations=gate_annotations(),
                    volumes=[
                        gate_volume(),
                        k8s.Volume(
                            name="weights",
                            persistent_volume_claim=k8s.PersistentVolumeClaimVolumeSource(
                                claim_name=WEIGHTS_CLAIM, read_only=True
                            ),
                        ),
                    ],
                ),
            ),
        )

    def _container(self, model: Model) -> k8s.Container:
        weights = self.config.weights.mount_path
        generations = self.config.generations_per_gpu
        return k8s.Container(
            name="worker",
            image=self.catalogue.image(worker_image(model.name)),
            env=environment(
                model.env,
                [
                    (model.concurrency_env, str(model.max_concurrent_streams or generations)),
                    (model.batch_size_env, str(model.max_batch_size or generations)),
                    (model.weights_path_env, weights),
                    (model.nats_url_env, NATS_URL),
                    (model.license_url_env, LICENSE_URL),
                ],
            ),
            ports=[k8s.ContainerPort(name=METRICS_PORT_NAME, container_port=METRICS_PORT)],
            # No CPU limit: it would throttle audio.
            resources=resources(
                cpu_millicores=self.config.worker_cpu_millicores(model),
                memory_mib=self.config.worker_memory_mib(model),
                ephemeral_mib=1024,
                gpus=1,
            ),
            security_context=vendor_security(),
            startup_probe=exec_probe(
                ["/bin/bash", "-c", MODEL_LOADED_SCRIPT],
                period_seconds=_STARTUP_PERIOD_SECONDS,
                failures=math.ceil(model.load_seconds / _STARTUP_PERIOD_SECONDS),
            ),
            readiness_probe=http_probe(
                "/metrics", METRICS_PORT_NAME, period_seconds=10, failures=3
            ),
            liveness_probe=patient_liveness(METRICS_PORT_NAME),
            # Work arrives over NATS, where only the worker itself can stop it. One that does so on
            # SIGTERM gets it at once; the grace covers the generations that it has.
            lifecycle=drain_hook() if self.config.drain.worker == "wait-idle" else None,
            volume_mounts=[k8s.VolumeMount(name="weights", mount_path=weights, read_only=True)],
        )
