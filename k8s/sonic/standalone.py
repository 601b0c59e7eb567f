"""Servers that stand alone: one container a GPU, HTTP and WebSocket for the callers."""

from __future__ import annotations

import math
from typing import Any

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import PYTHON_IMAGE, worker_image
from sonic_eks.config.service import Model
from sonic_eks.config.values import SECRETS_FOLDER
from sonic_eks.k8s.chart import DeploymentChart
from sonic_eks.k8s.pods import container_security, literal
from sonic_eks.k8s.probes import http_probe, patient_liveness, tcp_probe
from sonic_eks.k8s.prometheus import METRICS_PORT_NAME
from sonic_eks.k8s.sidecars import FOLDER, PodCode
from sonic_eks.k8s.sonic.front import HTTP_PORT_NAME, front_of
from sonic_eks.k8s.sonic.gpu_pods import (
    STARTUP_PERIOD_SECONDS,
    gpu_deployment,
    gpu_share,
    model_environment,
)
from sonic_eks.k8s.sonic.pods import environment, vendor_security
from sonic_eks.k8s.sonic.secrets import PodSecrets, pod_secrets
from sonic_eks.k8s.stream_gate import drain_hook, gate_container
from sonic_eks.k8s.weights import weights_mount

_STAND_IN = PodCode("stand_in", "stand-in")
_USER = 65534  # nobody


class Standalone(DeploymentChart):
    """The Deployment of the servers; its number of pods belongs to the scaler."""

    def build(self) -> None:
        """Add the Deployment and its disruption budget, and the stand-in's code if it serves."""
        front = front_of(self.config)
        (model,) = self.config.models
        secrets = pod_secrets(
            self, self.config, front.labels, name=front.name, files=model.secret_files
        )
        stands_in = self.config.standalone.stand_in
        volumes: tuple[k8s.Volume, ...] = ()
        annotations: dict[str, str] = {}
        if stands_in:
            _STAND_IN.add_config_map(self, front.labels)
            volumes = (_STAND_IN.volume,)
            annotations = _STAND_IN.annotations
        gpu_deployment(
            self,
            "Deployment",
            name=front.name,
            labels=front.labels,
            config=self.config,
            model=model,
            container=(
                self._stand_in(model, secrets) if stands_in else self._server(model, secrets)
            ),
            gate=self._gate(secrets),
            secrets=secrets,
            volumes=volumes,
            annotations=annotations,
        )

    def _gate(self, secrets: PodSecrets) -> k8s.Container:
        settings, warm_up = self.config.standalone, self.config.standalone.warm_up
        watch = [f"--watch-port={settings.port}"]
        if settings.load_metric is not None:
            watch += [
                f"--load-url=http://127.0.0.1:{settings.metrics_port}/metrics",
                f"--load-metric={settings.load_metric}",
            ]
        if warm_up.body is not None:
            watch += [
                literal(f"--warm-up-url=http://127.0.0.1:{settings.port}{warm_up.path}"),
                literal(f"--warm-up-body={warm_up.body}"),
                f"--warm-up-requests={warm_up.requests}",
            ]
        if warm_up.key_file is not None:
            watch.append(f"--warm-up-key-file={SECRETS_FOLDER}/{warm_up.key_file}")
        return gate_container(
            self.catalogue,
            self.config.drain,
            watch=watch,
            mounts=secrets.mounts if warm_up.key_file is not None else (),
            propagation_seconds=self.config.drain.propagation_seconds,
        )

    def _server(self, model: Model, secrets: PodSecrets) -> k8s.Container:
        return k8s.Container(
            name="server",
            image=self.catalogue.image(worker_image(model.name)),
            env=environment(model.env, model_environment(self.config, model)),
            security_context=vendor_security(),
            volume_mounts=[weights_mount(self.config.weights.mount_path), *secrets.mounts],
            **self._common(model),
        )

    def _stand_in(self, model: Model, secrets: PodSecrets) -> k8s.Container:
        settings = self.config.standalone
        return k8s.Container(
            name="server",
            image=self.catalogue.image(PYTHON_IMAGE),
            command=_STAND_IN.command,
            args=[
                "--host=*",
                f"--port={settings.port}",
                f"--metrics-port={settings.metrics_port}",
                "--no-key",
            ],
            working_dir=FOLDER,
            env=environment(model.env),
            security_context=container_security(read_only_root=True, user=_USER),
            volume_mounts=[
                weights_mount(self.config.weights.mount_path),
                *secrets.mounts,
                _STAND_IN.mount,
            ],
            **self._common(model),
        )

    def _common(self, model: Model) -> dict[str, Any]:
        settings = self.config.standalone
        ports = [k8s.ContainerPort(name=HTTP_PORT_NAME, container_port=settings.port)]
        if settings.metrics_port is not None:
            ports.append(
                k8s.ContainerPort(name=METRICS_PORT_NAME, container_port=settings.metrics_port)
            )
        failures = math.ceil(model.load_seconds / STARTUP_PERIOD_SECONDS)
        ready = (
            http_probe(settings.readiness_path, HTTP_PORT_NAME, period_seconds=5, failures=3)
            if settings.readiness_path is not None
            else tcp_probe(HTTP_PORT_NAME, period_seconds=5, failures=3)
        )
        return {
            "ports": ports,
            "resources": gpu_share(self.config, model),
            # The port may be open before the model is loaded: readiness and the warm-up tell.
            "startup_probe": tcp_probe(
                HTTP_PORT_NAME, period_seconds=STARTUP_PERIOD_SECONDS, failures=failures
            ),
            "readiness_probe": ready,
            "liveness_probe": patient_liveness(HTTP_PORT_NAME),
            "lifecycle": drain_hook(),
        }
