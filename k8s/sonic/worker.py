"""The model workers: one Deployment a model, one GPU a pod."""

from __future__ import annotations

import math

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import worker_image
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.k8s.chart import DeploymentChart
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.nats import NATS_URL
from sonic_eks.k8s.probes import exec_probe, http_probe, patient_liveness
from sonic_eks.k8s.prometheus import METRICS_PORT_NAME
from sonic_eks.k8s.sonic.gpu_pods import (
    STARTUP_PERIOD_SECONDS,
    gpu_deployment,
    gpu_share,
    model_environment,
)
from sonic_eks.k8s.sonic.pods import METRICS_PORT, environment, vendor_security
from sonic_eks.k8s.sonic.secrets import PodSecrets, pod_secrets
from sonic_eks.k8s.stream_gate import drain_hook, gate_container
from sonic_eks.k8s.weights import weights_mount

WORKER = "sonic-worker"

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
    return f"{WORKER}-{model.name}"


def worker_labels(config: Configuration, model: Model) -> Labels:
    """Return the labels of a model's workers."""
    return Labels.of(config, WORKER, component="worker", model=model.name)


class Workers(DeploymentChart):
    """A Deployment and a disruption budget for each model."""

    def build(self) -> None:
        """Add the Deployments; their number of pods belongs to the scalers."""
        for model in self.config.models:
            self._deployment(model)

    def _deployment(self, model: Model) -> None:
        name, labels = worker_name(model), worker_labels(self.config, model)
        secrets = pod_secrets(self, self.config, labels, name=name, files=model.secret_files)
        gate = gate_container(
            self.catalogue,
            self.config.drain,
            watch=[f"--load-url=http://127.0.0.1:{METRICS_PORT}/metrics"],
            # No load balancer has to learn of the removal.
            propagation_seconds=0,
        )
        gpu_deployment(
            self,
            f"{model.name}-deployment",
            name=name,
            labels=labels,
            config=self.config,
            model=model,
            container=self._container(model, secrets),
            gate=gate,
            secrets=secrets,
        )

    def _container(self, model: Model, secrets: PodSecrets) -> k8s.Container:
        return k8s.Container(
            name="worker",
            image=self.catalogue.image(worker_image(model.name)),
            env=environment(
                model.env,
                [*model_environment(self.config, model), (model.nats_url_env, NATS_URL)],
            ),
            ports=[k8s.ContainerPort(name=METRICS_PORT_NAME, container_port=METRICS_PORT)],
            # No CPU limit: it would throttle audio.
            resources=gpu_share(self.config, model),
            security_context=vendor_security(),
            startup_probe=exec_probe(
                ["/bin/bash", "-c", MODEL_LOADED_SCRIPT],
                period_seconds=STARTUP_PERIOD_SECONDS,
                failures=math.ceil(model.load_seconds / STARTUP_PERIOD_SECONDS),
            ),
            readiness_probe=http_probe(
                "/metrics", METRICS_PORT_NAME, period_seconds=10, failures=3
            ),
            liveness_probe=patient_liveness(METRICS_PORT_NAME),
            # Work arrives over NATS, where only the worker itself can stop it. One that does so on
            # SIGTERM gets it at once; the grace covers the generations that it has. Its gate
            # learns of it all the same: scaling does not count what a worker on its way out has.
            lifecycle=drain_hook(waits=self.config.drain.worker == "wait-idle"),
            volume_mounts=[weights_mount(self.config.weights.mount_path), *secrets.mounts],
        )
