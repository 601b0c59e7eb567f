"""The stream gate beside a server: it counts streams and holds SIGTERM back while they last."""

from __future__ import annotations

from collections.abc import Sequence

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import PYTHON_IMAGE, Catalogue
from sonic_eks.config.node_rules import GATE_MIB, GATE_MILLICORES
from sonic_eks.config.service import Drain
from sonic_eks.config.standalone import BEGIN_DRAIN_PATH, GATE_PORT
from sonic_eks.k8s.chart import DeploymentChart
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.pods import container_security, resources
from sonic_eks.k8s.probes import http_probe
from sonic_eks.k8s.sidecars import FOLDER, PodCode

GATE = "stream-gate"
GATE_PORT_NAME = "gate"

_USER = 65534  # nobody

GATE_CODE = PodCode("stream_gate", GATE)


class StreamGate(DeploymentChart):
    """The gate's code, for the sidecars to mount."""

    def build(self) -> None:
        """Add the ConfigMap, one key a file."""
        GATE_CODE.add_config_map(self, Labels.of(self.config, GATE, component="drain"))


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
        command=GATE_CODE.command,
        args=[
            f"--port={GATE_PORT}",
            *watch,
            f"--propagation-seconds={propagation_seconds}",
            f"--budget-seconds={drain.budget_seconds}",
            f"--idle-seconds={drain.idle_seconds}",
        ],
        working_dir=FOLDER,
        ports=[k8s.ContainerPort(name=GATE_PORT_NAME, container_port=GATE_PORT)],
        # No CPU limit: a look that comes late is a drain that ends late.
        resources=resources(cpu_millicores=GATE_MILLICORES, memory_mib=GATE_MIB, ephemeral_mib=16),
        security_context=container_security(read_only_root=True, user=_USER),
        # Whether it runs: it may be ready only when the server is, which starts after it.
        startup_probe=http_probe("/live", GATE_PORT_NAME, period_seconds=1, failures=60),
        readiness_probe=http_probe("/ready", GATE_PORT_NAME, period_seconds=5, failures=3),
        # It answers while a drain runs whatever else is wrong: a restart would end the drain.
        liveness_probe=http_probe("/live", GATE_PORT_NAME, period_seconds=20, failures=6),
        volume_mounts=[GATE_CODE.mount, *mounts],
    )


def drain_hook(*, waits: bool = True) -> k8s.Lifecycle:
    """Return the server's preStop hook, which begins the gate's drain.

    The port is a number: a name would be one of the server's own container.

    Parameters
    ----------
    waits : bool
        Whether the hook, and with it SIGTERM, waits for the drain's end.
    """
    path = "/drain" if waits else BEGIN_DRAIN_PATH
    return k8s.Lifecycle(
        pre_stop=k8s.LifecycleHandler(
            http_get=k8s.HttpGetAction(path=path, port=k8s.IntOrString.from_number(GATE_PORT))
        )
    )
