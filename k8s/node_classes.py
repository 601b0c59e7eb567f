"""Karpenter's EC2NodeClasses: how the instances of a pool are launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType
from sonic_eks.late import Late
from sonic_eks.names import karpenter_instance_profile
from sonic_eks.nodes.node_config import mime_user_data, root_volume_mib_per_second


def node_class_spec(
    config: Configuration,
    *,
    instance_type: InstanceType,
    subnet: Late,
    root_volume_gib: int,
    placement_group: Late | None = None,
    reservations: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the spec of an EC2NodeClass; it sets nodes up as the managed node groups do.

    Parameters
    ----------
    config : Configuration
        The deployment.
    instance_type : InstanceType
        The only type that the class is used with; the AMI's variant follows from it.
    subnet : Late
        The only subnet.
    root_volume_gib : int
        Size of the encrypted root volume in GiB.
    placement_group : Late or None
        Group that every instance of the class is placed in.
    reservations : sequence of str
        Ids of capacity reservations and Capacity Blocks; Karpenter uses no other, open or not.
    """
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": config.cluster.ami_alias}],
        # A role would make Karpenter call IAM, which has no endpoint in a VPC.
        "instanceProfile": karpenter_instance_profile(
            config.deployment.name, config.deployment.region
        ),
        "subnetSelectorTerms": [{"id": subnet.marker}],
        "securityGroupSelectorTerms": [{"id": Late.CLUSTER_SECURITY_GROUP.marker}],
        "associatePublicIPAddress": False,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            # One hop: the node itself, not its pods.
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "blockDeviceMappings": [_root_volume(instance_type, root_volume_gib)],
        # Karpenter adds the cluster's part and its own settings.
        "userData": mime_user_data(instance_type),
        "tags": {"sonic-eks:deployment": config.deployment.name, **config.tags},
    }
    if instance_type.local_nvme_gb:
        # As in the user data; Karpenter then counts the disks as the node's ephemeral storage.
        spec["instanceStorePolicy"] = "RAID0"
    if placement_group is not None:
        spec["placementGroupSelector"] = {"id": placement_group.marker}
    if reservations:
        spec["capacityReservationSelectorTerms"] = [{"id": name} for name in reservations]
    return spec


def _root_volume(instance_type: InstanceType, size_gib: int) -> dict[str, Any]:
    volume = {
        "volumeSize": f"{size_gib}Gi",
        "volumeType": "gp3",
        "throughput": root_volume_mib_per_second(instance_type),
        "encrypted": True,
        "deleteOnTermination": True,
    }
    return {"deviceName": "/dev/xvda", "rootVolume": True, "ebs": volume}
