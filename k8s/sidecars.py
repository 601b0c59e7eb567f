"""How this project's own code gets into a pod: a ConfigMap on the slim Python image."""

from __future__ import annotations

from dataclasses import dataclass

from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.k8s.chart import metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.pods import content_hash
from sonic_eks.sidecar_code import sidecar_code

FOLDER = "/opt/sonic"
"""Working folder of the containers that run it."""


@dataclass(frozen=True)
class PodCode:
    """One package below ``sidecar/`` in the pods.

    Its command line is a contract: the files are those of the newest deployment also in a pod of an
    older one whose container starts anew, with the arguments of its own.

    Attributes
    ----------
    package : str
        The folder's name, such as ``stream_gate``.
    name : str
        Name of the ConfigMap and of the volume.
    """

    package: str
    name: str

    def add_config_map(self, scope: Construct, labels: Labels) -> None:
        """Add the ConfigMap, one key a file."""
        k8s.KubeConfigMap(
            scope,
            self.name,
            metadata=metadata(self.name, labels, namespace=SONIC_NAMESPACE),
            data=sidecar_code(self.package),
        )

    @property
    def command(self) -> list[str]:
        """The command that runs it; the folder cannot be written, and Python need not try."""
        return ["python3", "-B", "-m", f"sidecar.{self.package}"]

    @property
    def volume(self) -> k8s.Volume:
        """The pod's volume."""
        return k8s.Volume(name=self.name, config_map=k8s.ConfigMapVolumeSource(name=self.name))

    @property
    def mount(self) -> k8s.VolumeMount:
        """The container's mount."""
        return k8s.VolumeMount(
            name=self.name, mount_path=f"{FOLDER}/sidecar/{self.package}", read_only=True
        )

    @property
    def annotations(self) -> dict[str, str]:
        """Pod annotations that change with the code, so that pods follow it."""
        return content_hash("".join(sidecar_code(self.package).values()), of=self.name)
