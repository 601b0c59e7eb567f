"""User data of the nodes: the part of a nodeadm NodeConfig that differs from its defaults.

EKS and Karpenter add the cluster's own part (name, endpoint, certificate, labels, taints), so
nothing here may repeat it. Fields: nodeadm's API reference (awslabs/amazon-eks-ami, nodeadm/doc).
"""

from __future__ import annotations

from typing import Any

import yaml

from sonic_eks.config.instances import InstanceType

# The kubelet's own defaults (5 and 10 a second) queue the pulls of a node that starts with a
# dozen pods at once.
REGISTRY_PULLS_PER_SECOND = 20
REGISTRY_BURST = 40

# Amazon EBS user guide, "General Purpose SSD volumes": 125 MiB/s is included with every gp3
# volume. Nodes whose images lie on the root volume get twice that for pulling and unpacking.
_BASELINE_MIB_PER_SECOND = 125
_IMAGES_ON_ROOT_MIB_PER_SECOND = 250

_BOUNDARY = "==NODECONFIG=="


def root_volume_mib_per_second(instance_type: InstanceType) -> int:
    """Return the throughput of a node's root volume in MiB/s; images lie on local disks if any."""
    if instance_type.local_nvme_gb:
        return _BASELINE_MIB_PER_SECOND
    return _IMAGES_ON_ROOT_MIB_PER_SECOND


def node_config(instance_type: InstanceType) -> dict[str, Any]:
    """Return the partial NodeConfig for nodes of a type.

    Parameters
    ----------
    instance_type : InstanceType
        Decides whether there is local NVMe. Where there is, it holds images and pod storage, and
        image layers are fetched and unpacked in parallel (nodeadm's FastImagePull), which its
        documentation asks fast disks for: a worker image with CUDA is several GB.

    Notes
    -----
    Reserved resources (kubeReserved, systemReserved) stay nodeadm's, which follow from the type:
    Karpenter computes a node's allocatable by the same formula, and figures of our own would part
    the two. Parallel pulls stay unlimited, nodeadm's default.
    """
    spec: dict[str, Any] = {
        "kubelet": {
            "config": {
                "registryPullQPS": REGISTRY_PULLS_PER_SECOND,
                "registryBurst": REGISTRY_BURST,
            }
        }
    }
    if instance_type.local_nvme_gb:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
        spec["featureGates"] = {"FastImagePull": True}
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}


def mime_user_data(instance_type: InstanceType) -> str:
    """Return the NodeConfig as MIME multipart text.

    The form that a managed node group's launch template needs to merge its own part (Amazon EKS
    user guide, "Customize managed nodes with launch templates").
    """
    document = yaml.safe_dump(node_config(instance_type), sort_keys=True)
    return (
        "MIME-Version: 1.0\n"
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"\n'
        "\n"
        f"--{_BOUNDARY}\n"
        "Content-Type: application/node.eks.aws\n"
        "\n"
        f"{document}"
        f"--{_BOUNDARY}--\n"
    )
