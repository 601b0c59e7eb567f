"""NATS: the bus between API pods and workers, three servers that leave one by one."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.placement import Placement, one_per_node
from sonic_eks.k8s.pods import (
    container_security,
    content_hash,
    disruption_budget,
    pod_template,
    resources,
)
from sonic_eks.k8s.probes import http_probe, patient_liveness
from sonic_eks.nodes.pools import Pool

NATS = "nats"
_PEERS = "nats-peers"
_REPLICAS = 3

CLIENT_PORT = 4222
CLUSTER_PORT = 6222
_MONITOR_PORT = 8222

NATS_URL = f"nats://{NATS}.{SONIC_NAMESPACE}.svc.cluster.local:{CLIENT_PORT}"

# NATS documentation, "Lame Duck Mode": after the grace period the server asks its clients, spread
# over the duration, to connect elsewhere. The server accepts no duration below 30 seconds.
_LAME_DUCK_GRACE_SECONDS = 10
_LAME_DUCK_SECONDS = 30
_GRACE_SECONDS = _LAME_DUCK_GRACE_SECONDS + _LAME_DUCK_SECONDS + 20

_CONFIG_FOLDER = "/etc/nats"
_CONFIG_FILE = "nats.conf"
_RUN_FOLDER = "/var/run/nats"
_PID_FILE = f"{_RUN_FOLDER}/nats.pid"

# Any user but root: the image's binary is world-executable and writes only the pid file.
_USER = 1000


class Nats(DeploymentChart):
    """The NATS cluster; core NATS only, so it keeps nothing on disk."""

    def build(self) -> None:
        """Add configuration, Services, StatefulSet and disruption budget."""
        labels = Labels.of(self.config, NATS, component="messaging")
        config = _server_config()
        k8s.KubeConfigMap(
            self,
            "Config",
            metadata=metadata(NATS, labels, namespace=SONIC_NAMESPACE),
            data={_CONFIG_FILE: config},
        )
        self._services(labels)
        k8s.KubeStatefulSet(
            self,
            "Servers",
            metadata=metadata(NATS, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.StatefulSetSpec(
                replicas=_REPLICAS,
                service_name=_PEERS,
                pod_management_policy="Parallel",
                min_ready_seconds=10,
                selector=k8s.LabelSelector(match_labels=labels.selector),
                template=pod_template(
                    labels,
                    container=self._container(),
                    placement=Placement(Pool.SERVING, affinity=one_per_node(labels)),
                    grace_seconds=_GRACE_SECONDS,
                    user=_USER,
                    fs_group=_USER,
                    annotations=content_hash(config),
                    volumes=[
                        k8s.Volume(name="config", config_map=k8s.ConfigMapVolumeSource(name=NATS)),
                        k8s.Volume(
                            name="run",
                            empty_dir=k8s.EmptyDirVolumeSource(
                                size_limit=k8s.Quantity.from_string("1Mi")
                            ),
                        ),
                    ],
                ),
            ),
        )
        disruption_budget(self, "Budget", labels, name=NATS, namespace=SONIC_NAMESPACE)

    def _services(self, labels: Labels) -> None:
        client = k8s.ServicePort(
            name="client",
            port=CLIENT_PORT,
            # A number: see `sonic_eks.k8s.network_policies`.
            target_port=k8s.IntOrString.from_number(CLIENT_PORT),
        )
        k8s.KubeService(
            self,
            "Clients",
            metadata=metadata(NATS, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.ServiceSpec(type="ClusterIP", selector=labels.selector, ports=[client]),
        )
        k8s.KubeService(
            self,
            "Peers",
            metadata=metadata(_PEERS, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.ServiceSpec(
                cluster_ip="None",
                selector=labels.selector,
                # Servers find each other before any of them is ready.
                publish_not_ready_addresses=True,
                ports=[
                    k8s.ServicePort(
                        name="cluster",
                        port=CLUSTER_PORT,
                        target_port=k8s.IntOrString.from_string("cluster"),
                    )
                ],
            ),
        )

    def _container(self) -> k8s.Container:
        return k8s.Container(
            name=NATS,
            image=self.catalogue.image(NATS),
            command=["nats-server"],
            args=["--config", f"{_CONFIG_FOLDER}/{_CONFIG_FILE}"],
            env=[
                k8s.EnvVar(
                    name="POD_NAME",
                    value_from=k8s.EnvVarSource(
                        field_ref=k8s.ObjectFieldSelector(field_path="metadata.name")
                    ),
                )
            ],
            ports=[
                k8s.ContainerPort(name="client", container_port=CLIENT_PORT),
                k8s.ContainerPort(name="cluster", container_port=CLUSTER_PORT),
                k8s.ContainerPort(name="monitor", container_port=_MONITOR_PORT),
            ],
            # No CPU limit: every chunk of audio passes through here.
            resources=resources(cpu_millicores=250, memory_mib=512, ephemeral_mib=64),
            security_context=container_security(read_only_root=True),
            startup_probe=http_probe("/healthz", "monitor", period_seconds=2, failures=30),
            readiness_probe=http_probe("/healthz", "monitor", period_seconds=5, failures=3),
            liveness_probe=patient_liveness("monitor"),
            lifecycle=k8s.Lifecycle(
                # The server ignores the SIGTERM that follows while it is in lame duck mode, and
                # exits by itself when its clients are gone.
                pre_stop=k8s.LifecycleHandler(
                    exec=k8s.ExecAction(command=["nats-server", "--signal", f"ldm={_PID_FILE}"])
                )
            ),
            volume_mounts=[
                k8s.VolumeMount(name="config", mount_path=_CONFIG_FOLDER, read_only=True),
                k8s.VolumeMount(name="run", mount_path=_RUN_FOLDER),
            ],
        )


def _server_config() -> str:
    routes = "\n".join(
        f"    nats://{NATS}-{i}.{_PEERS}.{SONIC_NAMESPACE}.svc.cluster.local:{CLUSTER_PORT}"
        for i in range(_REPLICAS)
    )
    return f"""\
server_name: $POD_NAME
port: {CLIENT_PORT}
http_port: {_MONITOR_PORT}
pid_file: "{_PID_FILE}"
lame_duck_grace_period: "{_LAME_DUCK_GRACE_SECONDS}s"
lame_duck_duration: "{_LAME_DUCK_SECONDS}s"
cluster {{
  name: sonic
  port: {CLUSTER_PORT}
  connect_retries: 120
  routes: [
{routes}
  ]
}}
"""
