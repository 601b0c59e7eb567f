"""The pools of nodes, and the labels and taints by which pods find them."""

from __future__ import annotations

from enum import StrEnum

POOL_LABEL = "sonic-eks/pool"
"""Node label (and the serving nodes' taint key) that names the pool."""

GPU_RESOURCE = "nvidia.com/gpu"
"""Extended resource of a GPU, and the key of the GPU nodes' taint."""

FSX_STARTUP_TAINT = "fsx.csi.aws.com/agent-not-ready"
"""AWS FSx CSI driver, "Configure node startup taint": the driver removes it once it can mount."""


class Pool(StrEnum):
    """Value of the node label `sonic-eks/pool`."""

    SYSTEM = "system"
    SERVING = "serving"
    GPU = "gpu"
