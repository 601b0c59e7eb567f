"""House rules of pods and containers."""

from __future__ import annotations

import re
from typing import Any

from tests.manifests.rules_base import (
    Charts,
    containers,
    gives_way,
    name_of,
    of_kind,
    pod_of,
    rule,
    stands_in,
    workloads,
)

# Node pools and the taints that stay on their nodes.
POOL_TAINTS: dict[str, dict[str, str] | None] = {
    "system": None,
    "serving": {"key": "sonic-eks/pool", "value": "serving", "effect": "NoSchedule"},
    "gpu": {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
}

# Private ECR, by account and region; the account may be known only after deployment.
PRIVATE_IMAGE = re.compile(
    r"^(\d{12}|<<known-after-deploy:AccountId>>)\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?"
    r"/[a-z0-9/-]+:[A-Za-z0-9_.-]+$"
)


# A version with its parts, or a day: what a name such as stable, or 2 alone, is not.
FIXED_TAG = re.compile(r"\d+\.\d+|\d{8}")


@rule
def images_are_fixed_and_private(charts: Charts) -> list[str]:
    found = []
    for name, container in containers(charts):
        image = container["image"]
        tag = image.rpartition(":")[2]
        if not PRIVATE_IMAGE.match(image) or not FIXED_TAG.search(tag):
            found.append(f"{name}: {image}")
        if container.get("imagePullPolicy", "IfNotPresent") == "Always":
            found.append(f"{name}: pulls a fixed tag on every start")
    return found


@rule
def resources_are_stated(charts: Charts) -> list[str]:
    found = []
    for name, container in containers(charts):
        stated = container.get("resources", {})
        requests, limits = stated.get("requests", {}), stated.get("limits", {})
        for resource in ("cpu", "memory", "ephemeral-storage"):
            if resource not in requests:
                found.append(f"{name}: no request of {resource}")
        if limits.get("memory") != requests.get("memory"):
            found.append(f"{name}: the memory limit is not the request")
        if limits.get("nvidia.com/gpu") != requests.get("nvidia.com/gpu"):
            found.append(f"{name}: GPU limit and request differ")
    return found


@rule
def audio_is_never_throttled(charts: Charts) -> list[str]:
    on_the_way = {"api", "worker", "messaging", "standalone"}
    return [
        name_of(w)
        for w in workloads(charts)
        if w["metadata"]["labels"]["app.kubernetes.io/component"] in on_the_way
        and any(
            "cpu" in c["resources"].get("limits", {})
            for c in pod_of(w).get("initContainers", []) + pod_of(w)["containers"]
        )
    ]


@rule
def probes_are_complete(charts: Charts) -> list[str]:
    found = []
    for name, container in containers(charts, running=True):
        if container["name"] == "pause":
            continue  # it serves nothing
        probes = {p: container.get(f"{p}Probe") for p in ("startup", "readiness", "liveness")}
        missing = [p for p, probe in probes.items() if probe is None]
        if missing:
            found.append(f"{name}: no {', '.join(missing)} probe")
            continue
        if probes["liveness"] == probes["readiness"]:
            found.append(f"{name}: liveness is readiness")
        live, ready = probes["liveness"], probes["readiness"]
        if live["periodSeconds"] * live["failureThreshold"] < 120:
            found.append(f"{name}: liveness kills within two minutes")
        if live["periodSeconds"] * live["failureThreshold"] <= (
            ready["periodSeconds"] * ready["failureThreshold"]
        ):
            found.append(f"{name}: liveness kills before readiness takes out of service")
        ports = {p["name"] for p in container["ports"]}
        for probe in probes.values():
            check = probe.get("httpGet") or probe.get("tcpSocket")
            if check and check["port"] not in ports:
                found.append(f"{name}: probes a port that it does not have")
    return found


@rule
def pods_are_placed(charts: Charts) -> list[str]:
    found = []
    for workload in workloads(charts):
        pod = pod_of(workload)
        pool = pod.get("nodeSelector", {}).get("sonic-eks/pool")
        if pool not in POOL_TAINTS:
            found.append(f"{name_of(workload)}: no pool")
            continue
        taint = POOL_TAINTS[pool]
        tolerated = [t for t in pod.get("tolerations", []) if _tolerates(t, taint)]
        if taint is not None and not tolerated:
            found.append(f"{name_of(workload)}: does not tolerate its pool's taint")
        if len(pod.get("tolerations", [])) > len(tolerated):
            found.append(f"{name_of(workload)}: tolerates more than its pool's taint")
        wants_gpu = any("nvidia.com/gpu" in c["resources"]["limits"] for c in pod["containers"])
        if wants_gpu != (pool == "gpu" and not stands_in(charts)):
            found.append(f"{name_of(workload)}: a GPU and the pool gpu go together")
    return found


def _tolerates(toleration: dict[str, str], taint: dict[str, str] | None) -> bool:
    if taint is None or toleration.get("key") != taint["key"]:
        return False
    same = toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"]
    return same and toleration.get("effect") in (None, taint["effect"])


@rule
def replicas_do_not_share_a_node(charts: Charts) -> list[str]:
    found = []
    for workload in workloads(charts):
        if workload["spec"].get("replicas") == 1 or gives_way(workload):
            continue
        pod = pod_of(workload)
        labels = workload["spec"]["template"]["metadata"]["labels"]
        anti = pod.get("affinity", {}).get("podAntiAffinity", {})
        rules = list(anti.get("requiredDuringSchedulingIgnoredDuringExecution", []))
        rules += pod.get("topologySpreadConstraints", [])
        own = [
            r
            for r in rules
            if r["topologyKey"] == "kubernetes.io/hostname"
            and r["labelSelector"]["matchLabels"].items() <= labels.items()
            and r["labelSelector"]["matchLabels"] == workload["spec"]["selector"]["matchLabels"]
        ]
        if not own:
            found.append(name_of(workload))
    return found


@rule
def no_pod_has_a_token_without_need(charts: Charts) -> list[str]:
    needed = {"prometheus"}  # discovers pods
    return [
        name_of(w)
        for w in workloads(charts)
        if pod_of(w).get("automountServiceAccountToken") is not False
        and w["metadata"]["name"] not in needed
    ]


@rule
def services_are_not_in_the_environment(charts: Charts) -> list[str]:
    return [name_of(w) for w in workloads(charts) if pod_of(w).get("enableServiceLinks", True)]


@rule
def pods_meet_their_security_level(charts: Charts) -> list[str]:
    """Pod Security Standards, the parts that the project's pods touch; host access in any."""
    levels = {
        n["metadata"]["name"]: n["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for n in of_kind(charts, "Namespace")
    }
    found = [f"{n}: {level}" for n, level in levels.items() if level == "privileged"]
    for workload in workloads(charts):
        name, pod = name_of(workload), pod_of(workload)
        restricted = levels[workload["metadata"]["namespace"]] == "restricted"
        context = pod.get("securityContext", {})
        if any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
            found.append(f"{name}: shares a namespace of the host")
        allowed = {"configMap", "csi", "emptyDir", "persistentVolumeClaim", "name"}
        if any(volume.keys() - allowed for volume in pod.get("volumes", [])):
            found.append(f"{name}: volume of another kind")
        drivers = {volume["csi"]["driver"] for volume in pod.get("volumes", []) if "csi" in volume}
        if drivers - {"secrets-store.csi.k8s.io"}:
            found.append(f"{name}: volume of another driver")
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            found.append(f"{name}: no seccomp profile")
        if restricted and not (context.get("runAsNonRoot") and context.get("runAsUser")):
            found.append(f"{name}: may run as root")
        for container in pod.get("initContainers", []) + pod["containers"]:
            own = container.get("securityContext", {})
            if (
                own.get("privileged", False)
                or own.get("allowPrivilegeEscalation") is not False
                or own.get("capabilities") != {"drop": ["ALL"]}
            ):
                found.append(f"{name} {container['name']}: has or may gain privileges")
    return found


@rule
def own_containers_have_a_read_only_root_and_are_not_root(charts: Charts) -> list[str]:
    vendor = {"api", "worker", "license-proxy"} | (set() if stands_in(charts) else {"server"})
    found = []
    for workload in workloads(charts):
        pod = pod_of(workload)
        for container in pod.get("initContainers", []) + pod["containers"]:
            # The workers' images, which only end at once there.
            if container["name"] in vendor:
                continue
            name, own = f"{name_of(workload)} {container['name']}", container["securityContext"]
            if not own.get("readOnlyRootFilesystem"):
                found.append(f"{name}: writes to its root")
            if not {**pod.get("securityContext", {}), **own}.get("runAsNonRoot"):
                found.append(f"{name}: may be root")
    return found


@rule
def weights_are_read_only(charts: Charts) -> list[str]:
    found = []
    for volume in of_kind(charts, "PersistentVolume"):
        if "ro" not in volume["spec"].get("mountOptions", []):
            found.append(f"{name_of(volume)}: mounted for writing")
    for workload in workloads(charts):
        pod = pod_of(workload)
        weights = [
            v
            for v in pod.get("volumes", [])
            if v.get("persistentVolumeClaim", {}).get("claimName", "").startswith("weights-")
        ]
        for volume in weights:
            mounts = [
                m
                for c in pod["containers"]
                for m in c["volumeMounts"]
                if m["name"] == volume["name"]
            ]
            if not volume["persistentVolumeClaim"].get("readOnly"):
                found.append(f"{name_of(workload)}: claim is writable")
            if not all(m.get("readOnly") for m in mounts):
                found.append(f"{name_of(workload)}: mount is writable")
        uses_gpu = pod.get("nodeSelector", {}).get("sonic-eks/pool") == "gpu"
        if uses_gpu and not weights and not gives_way(workload):
            found.append(f"{name_of(workload)}: no weights")
    return found


@rule
def rollouts_leave_no_gap(charts: Charts) -> list[str]:
    scaled = {s["spec"]["scaleTargetRef"]["name"] for s in of_kind(charts, "ScaledObject")}
    surge, replace = ({"maxSurge": n, "maxUnavailable": 1 - n} for n in (1, 0))
    found = []
    for deployment in of_kind(charts, "Deployment"):
        if deployment["metadata"]["name"] not in scaled:
            continue
        spec, part = deployment["spec"], deployment["metadata"]["labels"]
        # Where no GPU is spare; test_workloads.py holds that to the configuration.
        of_workers = part["app.kubernetes.io/component"] in ("worker", "standalone")
        allowed = [surge, replace] if of_workers else [surge]
        if (
            spec.get("strategy", {}).get("type") != "RollingUpdate"
            or spec["strategy"].get("rollingUpdate") not in allowed
            or not spec.get("minReadySeconds")
        ):
            found.append(name_of(deployment))
    return found


@rule
def what_gives_way_never_displaces(charts: Charts) -> list[str]:
    """Of two PriorityClasses only spare capacity has one, and it gives way to all."""
    classes = {c["metadata"]["name"]: c for c in of_kind(charts, "PriorityClass")}
    found = [
        f"{name}: displaces, or is everybody's"
        for name, c in classes.items()
        if c["value"] >= 0 or c.get("preemptionPolicy") != "Never" or c.get("globalDefault")
    ]
    found += [
        f"{name_of(w)}: gives way and is no spare"
        for w in workloads(charts)
        if gives_way(w) != (w["metadata"]["labels"]["app.kubernetes.io/component"] == "headroom")
    ]
    return found


@rule
def hooks_end_within_the_grace(charts: Charts) -> list[str]:
    found = []
    for workload in workloads(charts):
        pod = pod_of(workload)
        grace = pod.get("terminationGracePeriodSeconds", 30)
        for container in pod["containers"]:
            hook = container.get("lifecycle", {}).get("preStop", {})
            longest = hook.get("sleep", {}).get("seconds", 0)
            if "httpGet" in hook:
                longest = _longest_drain(hook["httpGet"], pod)
                if longest is None:
                    found.append(f"{name_of(workload)}: nothing answers its hook")
                    continue
            if longest >= grace:
                found.append(name_of(workload))
        # A managed node group's update gives a pod 15 minutes.
        if grace > 900:
            found.append(f"{name_of(workload)}: {grace} s")
    return found


def _longest_drain(hook: dict[str, Any], pod: dict[str, Any]) -> int | None:
    """Seconds after which the sidecar behind an httpGet hook answers, None without one."""
    for sidecar in pod.get("initContainers", []):
        # A port by name would be looked up in the server's own container.
        numbers = {port["containerPort"] for port in sidecar.get("ports", [])}
        if hook["port"] in numbers and sidecar.get("restartPolicy") == "Always":
            given = dict(argument.split("=", 1) for argument in sidecar["args"])
            return {"/drain": int(given["--budget-seconds"]), "/begin-drain": 0}.get(hook["path"])
    return None


@rule
def sidecars_are_ready_before_the_server(charts: Charts) -> list[str]:
    """Kubernetes, "Sidecar Containers": the next container starts when the startup probe is met."""
    return [
        f"{name_of(w)} {c['name']}"
        for w in workloads(charts)
        for c in pod_of(w).get("initContainers", [])
        if c.get("restartPolicy") == "Always" and ("startupProbe" not in c or "lifecycle" in c)
    ]
