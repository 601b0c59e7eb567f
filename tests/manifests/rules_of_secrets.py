"""House rules of secrets: they are files of one pod, and nowhere else."""

from __future__ import annotations

from typing import Any

import yaml

from tests.manifests.rules_base import (
    Charts,
    containers,
    name_of,
    of_kind,
    pod_of,
    rule,
    strings,
    workloads,
)

DRIVER = "secrets-store.csi.k8s.io"


@rule
def no_secret_is_in_an_environment(charts: Charts) -> list[str]:
    found = []
    for name, container in containers(charts):
        for variable in container.get("env", []):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                found.append(f"{name}: {variable['name']}")
        if any("secretRef" in source for source in container.get("envFrom", [])):
            found.append(f"{name}: envFrom")
    return found


@rule
def no_secret_is_kept_in_kubernetes(charts: Charts) -> list[str]:
    found = [name_of(m) for m in of_kind(charts, "Secret")]
    found += [
        f"{name_of(c)}: copies what it reads"
        for c in of_kind(charts, "SecretProviderClass")
        if "secretObjects" in c["spec"]
    ]
    for workload in workloads(charts):
        for volume in pod_of(workload).get("volumes", []):
            sources = volume.get("projected", {}).get("sources", [])
            if "secret" in volume or any("secret" in source for source in sources):
                found.append(f"{name_of(workload)}: volume {volume['name']}")
    return found


@rule
def secrets_are_read_by_one_pods_own_account(charts: Charts) -> list[str]:
    classes = {
        (c["metadata"]["namespace"], c["metadata"]["name"]): c
        for c in of_kind(charts, "SecretProviderClass")
    }
    accounts = {
        (a["metadata"]["namespace"], a["metadata"]["name"]): a
        for a in of_kind(charts, "ServiceAccount")
    }
    found, mounted, readers = [], [], []
    for workload in workloads(charts):
        name, namespace = name_of(workload), workload["metadata"]["namespace"]
        pod = pod_of(workload)
        volumes = [v for v in pod.get("volumes", []) if v.get("csi", {}).get("driver") == DRIVER]
        keys = [(namespace, v["csi"]["volumeAttributes"]["secretProviderClass"]) for v in volumes]
        mounted += keys
        found += [f"{name}: no class {key}" for key in keys if key not in classes]
        if not volumes:
            continue
        account = accounts.get((namespace, pod.get("serviceAccountName", "default")))
        readers.append(pod.get("serviceAccountName"))
        if account is None or account.get("automountServiceAccountToken") is not False:
            found.append(f"{name}: no account of its own without a token")
        if pod.get("automountServiceAccountToken") is not False:
            found.append(f"{name}: a token in the pod")
        found += [f"{name}: {problem}" for problem in _mount_problems(pod, volumes)]
    found += [f"{key}: mounted by none or several" for key in classes if mounted.count(key) != 1]
    found += [f"{reader}: of several" for reader in set(readers) if readers.count(reader) > 1]
    for key, manifest in classes.items():
        if manifest["spec"]["parameters"].get("usePodIdentity") != "true":
            found.append(f"{key}: not by Pod Identity")
        files = [
            o["objectAlias"] for o in yaml.safe_load(manifest["spec"]["parameters"]["objects"])
        ]
        if len({file.lower() for file in files}) != len(files) or any("/" in f for f in files):
            found.append(f"{key}: names of files")
    return found


def _mount_problems(pod: dict[str, Any], volumes: list[dict[str, Any]]) -> list[str]:
    found = []
    for volume in volumes:
        mounts = [
            (container["name"], mount)
            for container in pod["containers"] + pod.get("initContainers", [])
            for mount in container.get("volumeMounts", [])
            if mount["name"] == volume["name"]
        ]
        # The stream gate sees them where a warm-up needs the key.
        gates = [name for name, _ in mounts if name == "stream-gate"]
        if len(mounts) != 1 + len(gates):
            found.append(f"{volume['name']} is in {len(mounts)} containers")
        if not volume["csi"].get("readOnly"):
            found.append(f"{volume['name']}: volume is writable")
        for container, mount in mounts:
            # The files of a subPath stay as they were at the start.
            if not mount.get("readOnly") or "subPath" in mount:
                found.append(f"{container}: mount of {volume['name']}")
    return found


@rule
def nothing_names_a_secret_but_its_class(charts: Charts) -> list[str]:
    return [
        name_of(manifest)
        for chart in charts
        for manifest in chart.manifests
        if manifest["kind"] != "SecretProviderClass"
        and any(":secretsmanager:" in text for text in strings(manifest))
    ]
