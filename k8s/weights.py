"""The model weights: a static volume on the file system, read-only for all."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.late import Late

# A volume's source and a claim's volume cannot be changed. With the file system's id in both names
# a new file system gets a new volume and claim, and pods move to them by a rolling update.
WEIGHTS_VOLUME = f"sonic-weights-{Late.FILE_SYSTEM.marker}"
WEIGHTS_CLAIM = f"weights-{Late.FILE_SYSTEM.marker}"

_VOLUME_NAME = "weights"

# Kubernetes lets no static claim grow, while the file system may: a claim asks for the least.
_CLAIM_GIB = 1

# The FSx CSI driver (pkg/driver/controller.go, volumeCaps) knows one writer or many and refuses
# to mount what Kubernetes calls ReadOnlyMany. Read-only comes from the mount options, the pod's
# claim and the container's mount instead.
_ACCESS_MODES = ["ReadWriteMany"]


class WeightsVolume(DeploymentChart):
    """A PersistentVolume for the file system, and the claim that workers mount."""

    def build(self) -> None:
        """Add volume and claim, bound to each other and to nothing else."""
        labels = Labels.of(self.config, "sonic-weights", component="weights")
        capacity = {"storage": k8s.Quantity.from_string(f"{self.config.weights.capacity_gib}Gi")}
        k8s.KubePersistentVolume(
            self,
            "Volume",
            metadata=metadata(WEIGHTS_VOLUME, labels),
            spec=k8s.PersistentVolumeSpec(
                capacity=capacity,
                access_modes=_ACCESS_MODES,
                volume_mode="Filesystem",
                persistent_volume_reclaim_policy="Retain",
                storage_class_name="",
                claim_ref=k8s.ObjectReference(
                    api_version="v1",
                    kind="PersistentVolumeClaim",
                    namespace=SONIC_NAMESPACE,
                    name=WEIGHTS_CLAIM,
                ),
                mount_options=["ro", "flock", "noatime"],
                csi=k8s.CsiPersistentVolumeSource(
                    driver="fsx.csi.aws.com",
                    volume_handle=Late.FILE_SYSTEM.marker,
                    volume_attributes={
                        "dnsname": Late.FILE_SYSTEM_DNS_NAME.marker,
                        "mountname": Late.FILE_SYSTEM_MOUNT_NAME.marker,
                    },
                ),
            ),
        )
        k8s.KubePersistentVolumeClaim(
            self,
            "Claim",
            metadata=metadata(WEIGHTS_CLAIM, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.PersistentVolumeClaimSpec(
                access_modes=_ACCESS_MODES,
                storage_class_name="",
                volume_name=WEIGHTS_VOLUME,
                volume_mode="Filesystem",
                resources=k8s.VolumeResourceRequirements(
                    requests={"storage": k8s.Quantity.from_string(f"{_CLAIM_GIB}Gi")}
                ),
            ),
        )


def weights_volume() -> k8s.Volume:
    """Return a pod's volume of the weights."""
    return k8s.Volume(
        name=_VOLUME_NAME,
        persistent_volume_claim=k8s.PersistentVolumeClaimVolumeSource(
            claim_name=WEIGHTS_CLAIM, read_only=True
        ),
    )


def weights_mount(path: str) -> k8s.VolumeMount:
    """Return a container's mount of the weights at `path`."""
    return k8s.VolumeMount(name=_VOLUME_NAME, mount_path=path, read_only=True)
