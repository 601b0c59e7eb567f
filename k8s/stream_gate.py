"""The stream gate beside a server: it counts streams and holds SIGTERM back while they last."""

from __future__ import annotations

from collections.abc import Sequence

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import PYTHON_IMAGE, Catalogue
from sonic_eks.config.node_rules import GATE_MIB, GATE_MILLICORES
from sonic_eks.config.service import Drain
from sonic_eks.config.standalone import GATE_PORT
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.pods import container_security, content_hash, resources
from sonic_eks.k8s.probes import http_probe
from sonic_eks.sidecar_code import sidecar_code

GATE = "stream-gate"
GATE_PORT_NAME = "gate"

_PACKAGE = "stream_gate"
_FOLDER = "/opt/sonic"
_MOUNT = f"{_FOLDER}/sidecar/{_PACKAGE}"
_USER = 65534  # nobody
_VOLUME = "stream-gate"


class StreamGate(DeploymentChart):
    """The gate's code, for the sidecars to mount."""

    def build(self) -> None:
        """Add the ConfigMap, one key a file."""
        labels = Labels.of(self.config, GATE, component="drain")
        k8s.KubeConfigMap(
            self,
            "Code",
            metadata=metadata(GATE, labels, namespace=SONIC_NAMESPACE),
            data=sidecar_code(_PACKAGE),
        )


def gate_container(
    catalogue: Catalogue,
    drain: Drain,
    *,
    watch: Sequence[str],
    propagation_seconds: int,
    mounts: Sequence[k8s.VolumeMount] = (),
) -> k8s.Container:
    """Return the gate as a native sidecar.

    It starts before the server and is ended after it, so it is there while the server's preStop
    hook waits for it (Kubernetes documentation, "Sidecar Containers"). It has no hook of its own.

    Parameters
    ----------
    catalogue : Catalogue
        References into the private registry.
    drain : Drain
        How a pod goes.
    watch : sequence of str
        Arguments that say what to look at: ``--watch-port`` or ``--load-url``.
    propagation_seconds : int
        Shortest drain in seconds.
    mounts : sequence of VolumeMount
        Mounts beside the code.
    """
    return k8s.Container(
        name=GATE,
        image=catalogue.image(PYTHON_IMAGE),
        restart_policy="Always",
        # The folder cannot be written, and Python need not try.
        command=["python3", "-B", "-m", f"sidecar.{_PACKAGE}"],
        args=[
            f"--port={GATE_PORT}",
            *watch,
            f"--propagation-seconds={propagation_seconds}",
            f"--budget-seconds={drain.budget_seconds}",
            f"--idle-seconds={drain.idle_seconds}",
        ],
        working_dir=_FOLDER,
        ports=[k8s.ContainerPort(name=GATE_PORT_NAME, container_port=GATE_PORT)],
        # No CPU limit: a look that comes late is a drain that ends late.
        resources=resources(cpu_millicores=GATE_MILLICORES, memory_mib=GATE_MIB, ephemeral_mib=16),
        security_context=container_security(read_only_root=True, user=_USER),
        # Whether it runs: it may be ready only when the server is, which starts after it.
        startup_probe=http_probe("/live", GATE_PORT_NAME, period_seconds=1, failures=60),
        readiness_probe=http_probe("/ready", GATE_PORT_NAME, period_seconds=5, failures=3),
        # It answers while a drain runs whatever else is wrong: a restart would end the drain.
        liveness_probe=http_probe("/live", GATE_PORT_NAME, period_seconds=20, failures=6),
        volume_mounts=[
            k8s.VolumeMount(
                name=_VOLUME, mount_path=f"{_FOLDER}/sidecar/{_PACKAGE}", read_only=True
            ),
            *mounts,
        ],
    )


def gate_volume() -> k8s.Volume:
    """Return the volume with the gate's code."""
    return k8s.Volume(name=_VOLUME, config_map=k8s.ConfigMapVolumeSource(name=GATE))


def gate_annotations() -> dict[str, str]:
    """Return pod annotations that change with the gate's code, so that pods follow it."""
    return content_hash("".join(sidecar_code(_PACKAGE).values()), of=GATE)


def drain_hook() -> k8s.Lifecycle:
    """Return the server's preStop hook: it lasts as long as the gate's drain.

    The port is a number: a name would be one of the server's own container.
    """
    return k8s.Lifecycle(
        pre_stop=k8s.LifecycleHandler(
            http_get=k8s.HttpGetAction(path="/drain", port=k8s.IntOrString.from_number(GATE_PORT))
        )
    )
