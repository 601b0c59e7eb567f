"""Karpenter's GPU nodes: burst capacity beside the managed base, in the same placement group."""

from __future__ import annotations

from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.constructs.node_config import mime_user_data
from sonic_eks.k8s.chart import DeploymentChart, custom_object
from sonic_eks.k8s.labels import POOL_LABEL, Labels
from sonic_eks.k8s.placement import FSX_STARTUP_TAINT, GPU_RESOURCE, Pool
from sonic_eks.late import Late
from sonic_eks.names import Names

NODE_CLASS = "gpu"
NODE_POOL = "gpu-burst"

NODE_START_SECONDS = 600
"""Assumed bound in seconds from a launch to a ready node that has pulled a worker image."""


def has_burst(config: Configuration) -> bool:
    """Return whether Karpenter may add GPU nodes to the managed base."""
    return config.nodes.gpu.max_nodes > config.nodes.gpu.base_size


class BurstNodes(DeploymentChart):
    """The EC2NodeClass and the NodePool of GPU nodes that come and go with the load."""

    def build(self) -> None:
        """Add both; the chart is left out where the base is all there may be."""
        labels = Labels.of(self.config, NODE_POOL, component="nodes")
        custom_object(
            self,
            "NodeClass",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
            name=NODE_CLASS,
            labels=labels,
            spec=_node_class(self.config),
        )
        custom_object(
            self,
            "NodePool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            name=NODE_POOL,
            labels=labels,
            spec=_node_pool(self.config),
        )


def _node_class(config: Configuration) -> dict[str, Any]:
    names = Names(config.deployment.name)
    volume = {
        "volumeSize": f"{config.nodes.gpu.root_volume_gib}Gi",
        "volumeType": "gp3",
        "encrypted": True,
        "deleteOnTermination": True,
    }
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": config.cluster.ami_alias}],
        # A role would make Karpenter call IAM, which has no endpoint in a VPC.
        "instanceProfile": names.karpenter_instance_profile,
        "subnetSelectorTerms": [{"id": Late.GPU_SUBNET.marker}],
        "securityGroupSelectorTerms": [{"id": Late.CLUSTER_SECURITY_GROUP.marker}],
        "placementGroupSelector": {"id": Late.PLACEMENT_GROUP.marker},
        "associatePublicIPAddress": False,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            # One hop: the node itself, not its pods.
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": volume}],
        # The same as in the managed base; Karpenter adds the cluster's part and its own settings.
        "userData": mime_user_data(config.gpu_type),
        "tags": {"sonic-eks:deployment": config.deployment.name, **config.tags},
    }
    if config.gpu_type.local_nvme_gb:
        # As in the user data; Karpenter then counts the disks as the node's ephemeral storage.
        spec["instanceStorePolicy"] = "RAID0"
    return spec


def _node_pool(config: Configuration) -> dict[str, Any]:
    pool = config.nodes.gpu
    return {
        "template": {
            "metadata": {"labels": {POOL_LABEL: Pool.GPU.value}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": NODE_CLASS,
                },
                "requirements": [
                    {"key": key, "operator": "In", "values": values}
                    for key, values in _requirements(config).items()
                ],
                "taints": [{"key": GPU_RESOURCE, "value": "true", "effect": "NoSchedule"}],
                # Until the driver can mount the weights; it removes the taint itself.
                "startupTaints": [{"key": FSX_STARTUP_TAINT, "effect": "NoExecute"}],
                # Expiry is forceful: it heeds no budget and brings no replacement first.
                "expireAfter": "Never",
                "terminationGracePeriod": f"{termination_seconds(config)}s",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{pool.consolidate_after_seconds}s",
            "budgets": [{"nodes": "1"}],
        },
        "limits": {GPU_RESOURCE: str((pool.max_nodes - pool.base_size) * pool.gpus_per_node)},
    }


def _requirements(config: Configuration) -> dict[str, list[str]]:
    return {
        # A cluster placement group lies in one zone, which Karpenter does not look up.
        "topology.kubernetes.io/zone": [config.network.gpu_zone],
        "node.kubernetes.io/instance-type": [config.nodes.gpu.instance_type],
        "karpenter.sh/capacity-type": ["reserved", "on-demand"],
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }


def termination_seconds(config: Configuration) -> int:
    """Return how long a drain of a burst node may take in seconds: a backstop, rarely met.

    The workers' budget lets one pod go at a time, the next when a replacement is ready. So a
    node takes as many node starts and model loads as it has GPUs, and one drain.
    """
    longest_load = max(model.load_seconds for model in config.models)
    one_by_one = config.nodes.gpu.gpus_per_node * (NODE_START_SECONDS + longest_load)
    return config.drain.grace_seconds + one_by_one
