"""The API server: HTTP and WebSocket for the callers, NATS to the workers."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import API_IMAGE
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.nats import NATS_URL
from sonic_eks.k8s.placement import Placement, spread_over_nodes
from sonic_eks.k8s.pods import disruption_budget, one_by_one, pod_template, resources
from sonic_eks.k8s.probes import http_probe, patient_liveness, tcp_probe
from sonic_eks.k8s.prometheus import METRICS_PORT_NAME
from sonic_eks.k8s.sonic.front import API, API_PORT, HTTP_PORT_NAME, READY_PATH, front_of
from sonic_eks.k8s.sonic.license_proxy import LICENSE_URL
from sonic_eks.k8s.sonic.pods import METRICS_PORT, environment, vendor_security
from sonic_eks.k8s.sonic.secrets import PodSecrets, pod_secrets
from sonic_eks.k8s.stream_gate import GATE_CODE, drain_hook, gate_container
from sonic_eks.k8s.weights import weights_mount, weights_volume
from sonic_eks.nodes.pools import Pool

# Room in seconds for a start and for the load balancer's first health checks (registration takes
# minutes), beside the drain that a rollout may wait for.
_ROLLOUT_SECONDS = 900


class Api(DeploymentChart):
    """The API Deployment; its number of pods belongs to the scaler."""

    def build(self) -> None:
        """Add the Deployment and its disruption budget."""
        labels = front_of(self.config).labels
        drain = self.config.drain
        files = self.config.api.secret_files
        secrets = pod_secrets(self, self.config, labels, name=API, files=files)
        k8s.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(API, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.DeploymentSpec(
                selector=k8s.LabelSelector(match_labels=labels.selector),
                strategy=one_by_one(),
                min_ready_seconds=10,
                progress_deadline_seconds=drain.grace_seconds + _ROLLOUT_SECONDS,
                revision_history_limit=3,
                template=pod_template(
                    labels,
                    container=self._container(secrets),
                    placement=Placement(
                        Pool.SERVING, spread=spread_over_nodes(labels, required=True)
                    ),
                    grace_seconds=drain.grace_seconds,
                    init_containers=[
                        gate_container(
                            self.catalogue,
                            drain,
                            watch=[f"--watch-port={API_PORT}"],
                            # New streams arrive until the load balancer knows of the removal.
                            propagation_seconds=drain.propagation_seconds,
                        )
                    ],
                    volumes=[
                        GATE_CODE.volume,
                        *([weights_volume()] if self._weights_path else []),
                        *secrets.volumes,
                    ],
                    service_account=secrets.service_account,
                    annotations=GATE_CODE.annotations | secrets.annotations,
                ),
            ),
        )
        disruption_budget(self, "Budget", labels, name=API, namespace=SONIC_NAMESPACE)

    @property
    def _weights_path(self) -> str | None:
        return self.config.api.weights_mount_path

    def _weights_mounts(self) -> list[k8s.VolumeMount]:
        return [weights_mount(self._weights_path)] if self._weights_path else []

    def _container(self, secrets: PodSecrets) -> k8s.Container:
        api = self.config.api
        return k8s.Container(
            name="api",
            image=self.catalogue.image(API_IMAGE),
            env=environment(
                api.env,
                [(api.nats_url_env, NATS_URL), (api.license_url_env, LICENSE_URL)],
            ),
            ports=[
                k8s.ContainerPort(name=HTTP_PORT_NAME, container_port=API_PORT),
                k8s.ContainerPort(name=METRICS_PORT_NAME, container_port=METRICS_PORT),
            ],
            # No CPU limit: it would throttle audio.
            resources=resources(
                cpu_millicores=api.cpu_millicores, memory_mib=api.memory_mib, ephemeral_mib=256
            ),
            security_context=vendor_security(),
            # Whether /status is 200 before a worker is there is not documented: only readiness
            # depends on it, so that an API that waits for workers is not restarted.
            startup_probe=tcp_probe(HTTP_PORT_NAME, period_seconds=5, failures=60),
            readiness_probe=http_probe(READY_PATH, HTTP_PORT_NAME, period_seconds=5, failures=3),
            liveness_probe=patient_liveness(HTTP_PORT_NAME),
            lifecycle=drain_hook(),
            volume_mounts=[*self._weights_mounts(), *secrets.mounts] or None,
        )
