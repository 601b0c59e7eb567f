"""Prometheus: reads load and latency from the pods every 5 seconds, for scaling and dashboards."""

from __future__ import annotations

from typing import Any

import yaml
from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import PART_OF, Labels
from sonic_eks.k8s.namespaces import MONITORING_NAMESPACE, SONIC_NAMESPACE
from sonic_eks.k8s.placement import Placement
from sonic_eks.k8s.pods import container_security, content_hash, pod_template, resources
from sonic_eks.k8s.probes import http_probe
from sonic_eks.k8s.queries import SCRAPE_SECONDS
from sonic_eks.k8s.stream_gate import GATE_PORT_NAME
from sonic_eks.nodes.pools import Pool

PROMETHEUS = "prometheus"
PROMETHEUS_PORT = 9090
PROMETHEUS_URL = f"http://{PROMETHEUS}.{MONITORING_NAMESPACE}.svc.cluster.local:{PROMETHEUS_PORT}"

METRICS_PORT_NAME = "metrics"
"""Name of the servers' container ports that Prometheus scrapes, beside that of the stream gate."""

_CONFIG_FOLDER = "/etc/prometheus"
_CONFIG_FILE = "prometheus.yml"
_DATA_FOLDER = "/prometheus"
_USER = 65534  # nobody, the user of the upstream image

_VOLUME_GIB = 20
_RETENTION = ["--storage.tsdb.retention.time=7d", "--storage.tsdb.retention.size=15GB"]

_META = "__meta_kubernetes_"


class Prometheus(DeploymentChart):
    """One Prometheus server; while it is away the scalers hold what they have."""

    def build(self) -> None:
        """Add permissions, configuration, Service and StatefulSet."""
        labels = Labels.of(self.config, PROMETHEUS, component="metrics")
        config = yaml.safe_dump(scrape_config(), sort_keys=False)
        self._permissions(labels)
        k8s.KubeConfigMap(
            self,
            "Config",
            metadata=metadata(PROMETHEUS, labels, namespace=MONITORING_NAMESPACE),
            data={_CONFIG_FILE: config},
        )
        k8s.KubeService(
            self,
            "Service",
            metadata=metadata(PROMETHEUS, labels, namespace=MONITORING_NAMESPACE),
            spec=k8s.ServiceSpec(
                type="ClusterIP",
                selector=labels.selector,
                ports=[
                    k8s.ServicePort(
                        name="http",
                        port=PROMETHEUS_PORT,
                        # A number: see `sonic_eks.k8s.network_policies`.
                        target_port=k8s.IntOrString.from_number(PROMETHEUS_PORT),
                    )
                ],
            ),
        )
        k8s.KubeStatefulSet(
            self,
            "Server",
            metadata=metadata(PROMETHEUS, labels, namespace=MONITORING_NAMESPACE),
            spec=k8s.StatefulSetSpec(
                replicas=1,
                service_name=PROMETHEUS,
                selector=k8s.LabelSelector(match_labels=labels.selector),
                # A deleted deployment leaves no disk behind; a week of metrics is no record.
                persistent_volume_claim_retention_policy=(
                    k8s.StatefulSetPersistentVolumeClaimRetentionPolicy(
                        when_deleted="Delete", when_scaled="Retain"
                    )
                ),
                template=pod_template(
                    labels,
                    container=self._container(),
                    placement=Placement(Pool.SYSTEM),
                    grace_seconds=60,
                    user=_USER,
                    fs_group=_USER,
                    service_account=PROMETHEUS,
                    mounts_token=True,
                    annotations=content_hash(config),
                    volumes=[
                        k8s.Volume(
                            name="config", config_map=k8s.ConfigMapVolumeSource(name=PROMETHEUS)
                        )
                    ],
                ),
                volume_claim_templates=[_data_claim(labels)],
            ),
        )

    def _permissions(self, labels: Labels) -> None:
        account = metadata(PROMETHEUS, labels, namespace=MONITORING_NAMESPACE)
        k8s.KubeServiceAccount(
            self, "Account", metadata=account, automount_service_account_token=False
        )
        # Pods of one namespace are all that discovery reads.
        in_sonic = metadata(PROMETHEUS, labels, namespace=SONIC_NAMESPACE)
        k8s.KubeRole(
            self,
            "Role",
            metadata=in_sonic,
            rules=[
                k8s.PolicyRule(api_groups=[""], resources=["pods"], verbs=["get", "list", "watch"])
            ],
        )
        k8s.KubeRoleBinding(
            self,
            "Binding",
            metadata=in_sonic,
            role_ref=k8s.RoleRef(
                api_group="rbac.authorization.k8s.io", kind="Role", name=PROMETHEUS
            ),
            subjects=[
                k8s.Subject(kind="ServiceAccount", name=PROMETHEUS, namespace=MONITORING_NAMESPACE)
            ],
        )

    def _container(self) -> k8s.Container:
        return k8s.Container(
            name=PROMETHEUS,
            image=self.catalogue.image(PROMETHEUS),
            args=[
                f"--config.file={_CONFIG_FOLDER}/{_CONFIG_FILE}",
                f"--storage.tsdb.path={_DATA_FOLDER}",
                *_RETENTION,
                f"--web.listen-address=:{PROMETHEUS_PORT}",
            ],
            ports=[k8s.ContainerPort(name="http", container_port=PROMETHEUS_PORT)],
            resources=resources(
                cpu_millicores=250, memory_mib=1024, ephemeral_mib=64, cpu_limit_millicores=1000
            ),
            security_context=container_security(read_only_root=True),
            # A start after a crash replays the write-ahead log first: ten minutes.
            startup_probe=http_probe("/-/ready", "http", period_seconds=5, failures=120),
            readiness_probe=http_probe("/-/ready", "http", period_seconds=5, failures=3),
            liveness_probe=http_probe("/-/healthy", "http", period_seconds=20, failures=6),
            volume_mounts=[
                k8s.VolumeMount(name="config", mount_path=_CONFIG_FOLDER, read_only=True),
                k8s.VolumeMount(name="data", mount_path=_DATA_FOLDER),
            ],
        )


def _data_claim(labels: Labels) -> k8s.KubePersistentVolumeClaimProps:
    # No class: the cluster's default one is encrypted gp3.
    return k8s.KubePersistentVolumeClaimProps(
        metadata=k8s.ObjectMeta(name="data", labels=labels.all),
        spec=k8s.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=k8s.VolumeResourceRequirements(
                requests={"storage": k8s.Quantity.from_string(f"{_VOLUME_GIB}Gi")}
            ),
        ),
    )


def scrape_config() -> dict[str, Any]:
    """Return the server's configuration.

    Every running pod of the service is a target by its metrics port, ready or not and until it
    is gone, so that a draining or overloaded pod stays visible. Prometheus' own target labels
    win over the scraped ones (`exported_...`), whatever the vendor's metrics carry.
    """
    relabelings: list[dict[str, Any]] = [
        {
            "source_labels": [f"{_META}pod_label_app_kubernetes_io_part_of"],
            "regex": PART_OF,
            "action": "keep",
        },
        {
            "source_labels": [f"{_META}pod_container_port_name"],
            "regex": f"{METRICS_PORT_NAME}|{GATE_PORT_NAME}",
            "action": "keep",
        },
        {
            "source_labels": [f"{_META}pod_phase"],
            "regex": "Succeeded|Failed",
            "action": "drop",
        },
    ]
    for target, source in {
        "namespace": "namespace",
        "pod": "pod_name",
        "node": "pod_node_name",
        "component": "pod_label_app_kubernetes_io_component",
        "model": "pod_label_sonic_eks_model",
    }.items():
        relabelings.append({"source_labels": [f"{_META}{source}"], "target_label": target})
    return {
        "global": {
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "scrape_timeout": f"{SCRAPE_SECONDS - 1}s",
            "evaluation_interval": "15s",
        },
        "scrape_configs": [
            {
                "job_name": "sonic",
                # Prometheus 3 drops a scrape whose Content-Type it does not know; the vendor's is
                # not documented ("Prometheus 3.0 migration guide", scrape protocols).
                "fallback_scrape_protocol": "PrometheusText0.0.4",
                "kubernetes_sd_configs": [
                    {"role": "pod", "namespaces": {"names": [SONIC_NAMESPACE]}}
                ],
                "relabel_configs": relabelings,
            }
        ],
    }
