"""The pod builder: what every pod of this project has in common."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.k8s.chart import metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.placement import Placement
from sonic_eks.nodes.pools import GPU_RESOURCE


def pod_template(
    labels: Labels,
    *,
    container: k8s.Container,
    placement: Placement,
    grace_seconds: int,
    init_containers: Sequence[k8s.Container] = (),
    volumes: Sequence[k8s.Volume] = (),
    user: int | None = None,
    fs_group: int | None = None,
    service_account: str | None = None,
    mounts_token: bool = False,
    priority_class: str | None = None,
    annotations: Mapping[str, str] | None = None,
) -> k8s.PodTemplateSpec:
    """Return a pod template with secure defaults.

    Parameters
    ----------
    labels : Labels
        Labels of the pods.
    container : Container
        The main container.
    placement : Placement
        Where the pods run.
    grace_seconds : int
        terminationGracePeriodSeconds, in which preStop hooks count.
    init_containers : sequence of Container
        What starts before the main container; with `restartPolicy: Always` it stays as a sidecar.
    volumes : sequence of Volume
        Volumes of the pod.
    user : int or None
        User and group id, for images that are known to run as any; None leaves the image's own.
    fs_group : int or None
        Group that owns the pod's own volumes.
    service_account : str or None
        Service account that the pod runs as; None is the namespace's default one.
    mounts_token : bool
        Whether the containers get the account's token, to call the Kubernetes API.
    priority_class : str or None
        PriorityClass of the pods; None for the usual priority.
    annotations : mapping or None
        Annotations of the pods.
    """
    return k8s.PodTemplateSpec(
        metadata=k8s.ObjectMeta(
            labels=labels.all, annotations=dict(annotations) if annotations else None
        ),
        spec=k8s.PodSpec(
            init_containers=list(init_containers) or None,
            containers=[container],
            volumes=list(volumes) or None,
            node_selector=placement.node_selector,
            tolerations=placement.tolerations or None,
            affinity=placement.affinity,
            topology_spread_constraints=placement.spread or None,
            termination_grace_period_seconds=grace_seconds,
            priority_class_name=priority_class,
            service_account_name=service_account,
            automount_service_account_token=mounts_token,
            # A Service named nats would set NATS_PORT and more in every pod's environment, where
            # a server may take it for its own setting.
            enable_service_links=False,
            security_context=_pod_security(user, fs_group),
        ),
    )


def _pod_security(user: int | None, fs_group: int | None) -> k8s.PodSecurityContext:
    return k8s.PodSecurityContext(
        run_as_non_root=True if user is not None else None,
        run_as_user=user,
        run_as_group=user,
        fs_group=fs_group,
        fs_group_change_policy="OnRootMismatch" if fs_group is not None else None,
        seccomp_profile=k8s.SeccompProfile(type="RuntimeDefault"),
    )


def container_security(*, read_only_root: bool, user: int | None = None) -> k8s.SecurityContext:
    """Return a container's security context: no capability, no way to gain one.

    Parameters
    ----------
    read_only_root : bool
        Whether the container cannot write to its own file system.
    user : int or None
        User and group id, where the pod's own is another; None leaves the pod's.
    """
    return k8s.SecurityContext(
        run_as_non_root=True if user is not None else None,
        run_as_user=user,
        run_as_group=user,
        allow_privilege_escalation=False,
        capabilities=k8s.Capabilities(drop=["ALL"]),
        privileged=False,
        read_only_root_filesystem=read_only_root,
    )


def resources(
    *,
    cpu_millicores: int,
    memory_mib: int,
    ephemeral_mib: int,
    cpu_limit_millicores: int | None = None,
    gpus: int = 0,
) -> k8s.ResourceRequirements:
    """Return a container's requests and limits; the memory limit is the request.

    Parameters
    ----------
    cpu_millicores, memory_mib, ephemeral_mib : int
        Requests: CPU in millicores, memory and node-local disk in MiB.
    cpu_limit_millicores : int or None
        CPU limit. None for whatever audio passes through: the CFS quota stops a container for
        the rest of its 100 ms period, as long as the whole promise on first audio, while shares
        by request already protect its neighbours.
    gpus : int
        Whole GPUs.
    """
    memory = k8s.Quantity.from_string(f"{memory_mib}Mi")
    requests = {
        "cpu": k8s.Quantity.from_string(f"{cpu_millicores}m"),
        "memory": memory,
        # No limit on the disk: passing one evicts the pod, and its streams with it.
        "ephemeral-storage": k8s.Quantity.from_string(f"{ephemeral_mib}Mi"),
    }
    limits = {"memory": memory}
    if cpu_limit_millicores is not None:
        limits["cpu"] = k8s.Quantity.from_string(f"{cpu_limit_millicores}m")
    if gpus:
        limits[GPU_RESOURCE] = requests[GPU_RESOURCE] = k8s.Quantity.from_string(str(gpus))
    return k8s.ResourceRequirements(requests=requests, limits=limits)


def disruption_budget(
    scope: Construct, construct_id: str, labels: Labels, *, name: str, namespace: str
) -> None:
    """Add a workload's budget: one pod at a time, and a broken pod never blocks a drain."""
    k8s.KubePodDisruptionBudget(
        scope,
        construct_id,
        metadata=metadata(name, labels, namespace=namespace),
        spec=k8s.PodDisruptionBudgetSpec(
            max_unavailable=k8s.IntOrString.from_number(1),
            selector=k8s.LabelSelector(match_labels=labels.selector),
            unhealthy_pod_eviction_policy="AlwaysAllow",
        ),
    )


def one_by_one(*, surge: bool = True) -> k8s.DeploymentStrategy:
    """Return the strategy of what carries streams: pods are replaced one at a time.

    Parameters
    ----------
    surge : bool
        Whether a new pod is there before an old one goes; else the old one goes first.
    """
    return k8s.DeploymentStrategy(
        type="RollingUpdate",
        rolling_update=k8s.RollingUpdateDeployment(
            max_surge=k8s.IntOrString.from_number(int(surge)),
            max_unavailable=k8s.IntOrString.from_number(int(not surge)),
        ),
    )


def content_hash(text: str, *, of: str = "config") -> dict[str, str]:
    """Return a pod annotation that changes with a ConfigMap, so that pods follow it.

    Parameters
    ----------
    text : str
        What the ConfigMap holds.
    of : str
        What it is, in the annotation's key.
    """
    return {f"sonic-eks/{of}-sha256": hashlib.sha256(text.encode()).hexdigest()}


def literal(argument: str) -> str:
    """Return an argument that stays as it is: Kubernetes expands ``$(NAME)`` and ``$$``."""
    return argument.replace("$", "$$")
