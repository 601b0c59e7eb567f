"""The load test as a Kubernetes Job on the CPU nodes, beside the load balancer."""

from __future__ import annotations

import base64
import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

import cdk8s
from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.bench.archive import archive
from sonic_eks.bench.inputs import KEY_VARIABLE
from sonic_eks.bench.measure import Plan
from sonic_eks.catalogue import PYTHON_IMAGE, Catalogue
from sonic_eks.config import Configuration
from sonic_eks.errors import SonicEksError
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.placement import Placement
from sonic_eks.k8s.pods import container_security, pod_template, resources
from sonic_eks.nodes.pools import Pool

BENCH = "sonic-bench"
"""Name of the namespace and of what is in it; none of the deployment's own stacks has it."""

KEY_SECRET = "sonic-bench-key"

_FOLDER = "/opt/bench"
_CODE, _PLAN = "code.zip", "plan.json"
_USER = 65534  # nobody
_MILLICORES = 2000
_MEMORY_MIB = 1024
_MOST_SECONDS = 4 * 3600
_KEPT_SECONDS = 24 * 3600
_DNS_PORT = 53


class BenchJob(DeploymentChart):
    """A namespace with the code, the plan, the flows that are needed, and the Job.

    Parameters
    ----------
    scope, construct_id, config, catalogue
        See `DeploymentChart`.
    plan : Plan
        What to measure.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        catalogue: Catalogue,
        plan: Plan,
    ) -> None:
        self._plan = plan  # the base class builds at once
        super().__init__(scope, construct_id, config=config, catalogue=catalogue)

    def build(self) -> None:
        """Add all of it; the Job last, when what it mounts is there."""
        labels = Labels.of(self.config, BENCH, component="load-test")
        version = f"v{self.config.cluster.version}"
        levels = {
            f"pod-security.kubernetes.io/{mode}{suffix}": value
            for mode in ("enforce", "audit", "warn")
            for suffix, value in (("", "restricted"), ("-version", version))
        }
        k8s.KubeNamespace(self, "Namespace", metadata=metadata(BENCH, labels, extra_labels=levels))
        k8s.KubeConfigMap(
            self,
            "Code",
            metadata=metadata(BENCH, labels, namespace=BENCH),
            binary_data={_CODE: base64.b64encode(archive()).decode()},
            data={_PLAN: json.dumps(self._plan.to_dict(), indent=1)},
        )
        self._flows(labels)
        self._job(labels)

    def _flows(self, labels: Labels) -> None:
        """Admit names and the listener, nothing else, and nobody in."""
        parts = urlsplit(self._plan.target.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        resolver = k8s.NetworkPolicyPeer(
            namespace_selector=k8s.LabelSelector(
                match_labels={"kubernetes.io/metadata.name": "kube-system"}
            ),
            pod_selector=k8s.LabelSelector(match_labels={"k8s-app": "kube-dns"}),
        )
        # The load balancer's addresses are in the serving subnet.
        balancer = k8s.NetworkPolicyPeer(
            ip_block=k8s.IpBlock(cidr=self.config.network.serving_cidr)
        )
        k8s.KubeNetworkPolicy(
            self,
            "Flows",
            metadata=metadata(BENCH, labels, namespace=BENCH),
            spec=k8s.NetworkPolicySpec(
                pod_selector=k8s.LabelSelector(match_labels=labels.selector),
                policy_types=["Ingress", "Egress"],
                egress=[
                    k8s.NetworkPolicyEgressRule(
                        to=[resolver], ports=[_port(_DNS_PORT, p) for p in ("UDP", "TCP")]
                    ),
                    k8s.NetworkPolicyEgressRule(to=[balancer], ports=[_port(port, "TCP")]),
                ],
            ),
        )

    def _job(self, labels: Labels) -> None:
        volume = "code"
        template = pod_template(
            labels,
            container=k8s.Container(
                name="bench",
                image=self.catalogue.image(PYTHON_IMAGE),
                command=["python3", "-B", "-m", "sonic_eks.bench", f"{_FOLDER}/{_PLAN}"],
                env=[
                    k8s.EnvVar(name="PYTHONPATH", value=f"{_FOLDER}/{_CODE}"),
                    k8s.EnvVar(
                        name=KEY_VARIABLE,
                        value_from=k8s.EnvVarSource(
                            secret_key_ref=k8s.SecretKeySelector(name=KEY_SECRET, key="key")
                        ),
                    ),
                ],
                # No CPU limit: being stopped in mid-period is the lag that a run is judged by.
                resources=resources(
                    cpu_millicores=_MILLICORES, memory_mib=_MEMORY_MIB, ephemeral_mib=64
                ),
                security_context=container_security(read_only_root=True, user=_USER),
                volume_mounts=[k8s.VolumeMount(name=volume, mount_path=_FOLDER, read_only=True)],
            ),
            placement=Placement(Pool.SERVING if self.config.has_serving_nodes else Pool.SYSTEM),
            grace_seconds=10,
            user=_USER,
            volumes=[k8s.Volume(name=volume, config_map=k8s.ConfigMapVolumeSource(name=BENCH))],
            # Karpenter, "Disruption", pod-level controls: it would move the pod in mid-run.
            annotations={"karpenter.sh/do-not-disrupt": "true"},
        )
        job = k8s.KubeJob(
            self,
            "Job",
            metadata=metadata(BENCH, labels, namespace=BENCH),
            spec=k8s.JobSpec(
                # A run that failed says why; another one would say it again.
                backoff_limit=0,
                active_deadline_seconds=_MOST_SECONDS,
                ttl_seconds_after_finished=_KEPT_SECONDS,
                template=template,
            ),
        )
        job.add_json_patch(cdk8s.JsonPatch.add("/spec/template/spec/restartPolicy", "Never"))


def _port(number: int, protocol: str) -> k8s.NetworkPolicyPort:
    return k8s.NetworkPolicyPort(port=k8s.IntOrString.from_number(number), protocol=protocol)


def _check_callers(config: Configuration) -> None:
    network = config.network
    ranges = (network.serving_cidr,) if config.has_serving_nodes else network.system_cidrs
    callers = list(ipaddress.collapse_addresses(map(ipaddress.IPv4Network, config.client_cidrs)))
    for text in ranges:
        nodes = ipaddress.IPv4Network(text)
        if not any(nodes.subnet_of(caller) for caller in callers):
            raise SonicEksError(
                f"--job: edge.clientCidrs does not admit {text}, where the Job runs; add {text}"
                " to it and deploy, or the load balancer answers none of its connections"
            )


def render_bench_job(
    config: Configuration, catalogue: Catalogue, plan: Plan
) -> tuple[dict[str, Any], ...]:
    """Render the Job and what it needs, in apply order.

    Parameters
    ----------
    config : Configuration
        The deployment that is measured.
    catalogue : Catalogue
        References into the private registry.
    plan : Plan
        What to measure; its API key is not rendered.

    Raises
    ------
    SonicEksError
        When the load balancer does not admit the nodes on which the Job runs.
    """
    _check_callers(config)
    chart = BenchJob(cdk8s.App(), BENCH, config=config, catalogue=catalogue, plan=plan)
    return tuple(chart.to_json())
