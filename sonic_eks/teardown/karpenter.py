"""What Karpenter makes in EC2: instances, and the launch templates that it starts them with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from sonic_eks.teardown.aws import batches, call, pages

# Karpenter 1.14, getting-started template: the tags that its policy requires of what it launches,
# and by which it may delete. A managed node group's instances lack the first.
_NODE_POOL = "karpenter.sh/nodepool"
_CLUSTER = "kubernetes.io/cluster/{name}"
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]
# These end by themselves.
_ENDING = ("shutting-down", "terminated")


@dataclass(frozen=True)
class Instance:
    """An instance that Karpenter started.

    Attributes
    ----------
    id : str
        Its id.
    node_pool : str
        The NodePool that it was started for.
    state : str
        Its state in EC2.
    """

    id: str
    node_pool: str
    state: str

    def __str__(self) -> str:
        return f"{self.id} ({self.node_pool}, {self.state})"


def instances(ec2: Any, cluster: str) -> list[Instance]:
    """Return the instances of a cluster's Karpenter that are not terminated.

    Parameters
    ----------
    ec2 : Any
        A boto3 EC2 client.
    cluster : str
        Name of the cluster.
    """
    filters = [*_owned(cluster), {"Name": "instance-state-name", "Values": _ALIVE}]
    reservations = pages(ec2, "describe_instances", "Reservations", Filters=filters)
    found = [
        Instance(item["InstanceId"], _tags(item).get(_NODE_POOL, ""), item["State"]["Name"])
        for reservation in reservations
        for item in reservation["Instances"]
        if _is_owned(item, cluster)
    ]
    return sorted(found, key=lambda instance: instance.id)


def terminate(ec2: Any, found: list[Instance]) -> list[Instance]:
    """Terminate instances, except those that are ending already; return those asked to end."""
    waiting = [instance for instance in found if instance.state not in _ENDING]
    for batch in batches([instance.id for instance in waiting]):
        call(
            f"terminating {', '.join(batch)}",
            partial(ec2.terminate_instances, InstanceIds=batch),
            # Gone since it was listed.
            missing=("InvalidInstanceID.NotFound",),
        )
    return waiting


def delete_launch_templates(ec2: Any, cluster: str) -> list[str]:
    """Delete the launch templates of a cluster's Karpenter; return what was deleted."""
    found = pages(ec2, "describe_launch_templates", "LaunchTemplates", Filters=_owned(cluster))
    deleted = []
    for item in found:
        if not _is_owned(item, cluster):
            continue
        template = item["LaunchTemplateId"]
        call(
            f"deleting launch template {template}",
            partial(ec2.delete_launch_template, LaunchTemplateId=template),
            missing=("InvalidLaunchTemplateId.NotFound",),
        )
        deleted.append(f"launch template {template}")
    return deleted


def _owned(cluster: str) -> list[dict[str, Any]]:
    return [
        {"Name": "tag-key", "Values": [_NODE_POOL]},
        {"Name": f"tag:{_CLUSTER.format(name=cluster)}", "Values": ["owned"]},
    ]


def _is_owned(item: dict[str, Any], cluster: str) -> bool:
    """Look at the tags once more: what follows cannot be undone."""
    tags = _tags(item)
    return _NODE_POOL in tags and tags.get(_CLUSTER.format(name=cluster)) == "owned"


def _tags(item: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", ())}
