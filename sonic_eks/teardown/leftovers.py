"""What a destroyed deployment leaves behind: made by others than CloudFormation, or kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from sonic_eks.names import Names
from sonic_eks.teardown import stacks
from sonic_eks.teardown.aws import Clients, call, pages

# Amazon VPC CNI, README: tag of the network interfaces that it adds to nodes.
_INTERFACE_CLUSTER = "cluster.k8s.amazonaws.com/name"
# Kubernetes cloud provider: tag of what belongs to a cluster, volumes of the EBS driver included.
_VOLUME_CLUSTER = "kubernetes.io/cluster/{name}"


def delete_interfaces(ec2: Any, cluster: str) -> list[str]:
    """Delete network interfaces of the CNI that no instance uses; return what was deleted.

    A node that ends while the CNI adds an interface leaves it behind, and the interface keeps
    subnet and security group from being deleted.
    """
    filters = [
        {"Name": f"tag:{_INTERFACE_CLUSTER}", "Values": [cluster]},
        {"Name": "status", "Values": ["available"]},
    ]
    deleted = []
    for item in pages(ec2, "describe_network_interfaces", "NetworkInterfaces", Filters=filters):
        interface = item["NetworkInterfaceId"]
        call(
            f"deleting network interface {interface}",
            partial(ec2.delete_network_interface, NetworkInterfaceId=interface),
            missing=("InvalidNetworkInterfaceID.NotFound",),
        )
        deleted.append(f"network interface {interface}")
    return deleted


@dataclass(frozen=True)
class Remains:
    """What is known of stacks of a deployment that are deleted.

    Attributes
    ----------
    resources : tuple of dict
        Their resources, as CloudFormation lists them for 90 days.
    has_cluster : bool
        Whether the cluster or its stack still exists.
    """

    resources: tuple[dict[str, Any], ...]
    has_cluster: bool


def remains(clients: Clients, names: Names) -> Remains:
    """Look up the last deleted stack of each name that has no stack now."""
    cloudformation = clients.cloudformation
    gone = [name for name in names.stacks.values() if stacks.state_of(cloudformation, name) is None]
    resources = [
        resource
        for stack_id in stacks.last_deleted(cloudformation, gone)
        for resource in stacks.resources_of(cloudformation, stack_id)
    ]
    cluster = call(
        f"cluster {names.cluster}",
        lambda: clients.eks.describe_cluster(name=names.cluster),
        missing=("ResourceNotFoundException",),
    )
    return Remains(tuple(resources), cluster is not None or names.stacks["cluster"] not in gone)


def delete_log_groups(logs: Any, names: Names, remains: Remains) -> list[str]:
    """Delete log groups that came back after their stack was deleted; return what was deleted.

    EKS and Lambda write a last time after the group is gone, and make it anew. The next
    deployment could then not create its own.
    """
    functions = [
        f"/aws/lambda/{resource['PhysicalResourceId']}"
        for resource in remains.resources
        if resource["ResourceType"] == "AWS::Lambda::Function"
        and resource.get("PhysicalResourceId")
    ]
    cluster = [] if remains.has_cluster else [f"/aws/eks/{names.cluster}/cluster"]
    deleted = []
    for name in cluster + functions:
        found = pages(logs, "describe_log_groups", "logGroups", logGroupNamePrefix=name)
        if name not in {group["logGroupName"] for group in found}:
            continue
        call(
            f"deleting log group {name}",
            partial(logs.delete_log_group, logGroupName=name),
            missing=("ResourceNotFoundException",),
        )
        deleted.append(f"log group {name}")
    return deleted


def kept(ec2: Any, names: Names, remains: Remains) -> list[str]:
    """Return what deleted stacks kept, and the volumes of a cluster that is gone.

    Volumes hold what a pod wrote, so a person decides about them.
    """
    found = [
        f"{resource['ResourceType']} {resource.get('PhysicalResourceId', '')}".rstrip()
        for resource in remains.resources
        if resource["ResourceStatus"] == "DELETE_SKIPPED"
    ]
    if not remains.has_cluster:
        filters = [
            {"Name": f"tag:{_VOLUME_CLUSTER.format(name=names.cluster)}", "Values": ["owned"]},
            {"Name": "status", "Values": ["available"]},
        ]
        found += [
            f"AWS::EC2::Volume {item['VolumeId']}"
            for item in pages(ec2, "describe_volumes", "Volumes", Filters=filters)
        ]
    return found


def cancel_tasks(clients: Clients, names: Names) -> list[str]:
    """Cancel data repository tasks of the weights' file system; return what was cancelled.

    FSx deletes no file system while a task waits or runs.
    """
    stack = stacks.state_of(clients.cloudformation, names.stacks["weights"])
    if stack is None:
        return []
    file_systems = [
        resource["PhysicalResourceId"]
        for resource in stacks.resources_of(clients.cloudformation, stack.id)
        if resource["ResourceType"] == "AWS::FSx::FileSystem" and "PhysicalResourceId" in resource
    ]
    cancelled = []
    for file_system in file_systems:
        for task in _tasks(clients.fsx, file_system):
            call(
                f"cancelling {task}",
                partial(clients.fsx.cancel_data_repository_task, TaskId=task),
                missing=("DataRepositoryTaskEnded", "DataRepositoryTaskNotFound"),
            )
            cancelled.append(f"data repository task {task}")
    return cancelled


def _tasks(fsx: Any, file_system: str) -> list[str]:
    filters = [
        {"Name": "file-system-id", "Values": [file_system]},
        {"Name": "task-lifecycle", "Values": ["PENDING", "EXECUTING"]},
    ]
    found: list[str] = []
    more: dict[str, str] = {}
    while True:
        page = call(
            f"tasks of {file_system}",
            partial(fsx.describe_data_repository_tasks, Filters=filters, **more),
        )
        found += [task["TaskId"] for task in page["DataRepositoryTasks"]]
        if "NextToken" not in page:
            return found
        more = {"NextToken": page["NextToken"]}
