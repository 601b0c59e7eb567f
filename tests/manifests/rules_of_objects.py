"""House rules of objects and of what lies between them."""

from __future__ import annotations

import re

from tests.manifests.rules_base import (
    WORKLOADS,
    Charts,
    gives_way,
    manifests_of,
    name_of,
    of_kind,
    pod_of,
    rule,
    selected,
    strings,
    workloads,
)

CLUSTER_SCOPED = ("Namespace", "PersistentVolume", "PriorityClass", "EC2NodeClass", "NodePool")

# Made by Helm with the controllers that run there, before any chart.
HELM_NAMESPACES = {"keda", "nvidia-device-plugin"}

# Late values, as the stacks' outputs are called.
KNOWN_MARKERS = {
    "AccountId",
    "VpcId",
    "ClusterSecurityGroupId",
    "GpuSubnetId",
    "ServingSubnetId",
    "PlacementGroupId",
    "FileSystemId",
    "FileSystemDnsName",
    "FileSystemMountName",
    "TargetGroupArn",
}


# Everything else that makes pods; what is to be used joins WORKLOADS, and every rule with it.
OTHER_WORKLOADS = ("Pod", "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "CronJob")


@rule
def pods_come_from_what_the_rules_look_at(charts: Charts) -> list[str]:
    return [name_of(m) for m in of_kind(charts, *set(OTHER_WORKLOADS) - set(WORKLOADS))]


@rule
def scaled_workloads_have_no_replicas(charts: Charts) -> list[str]:
    scaled = {s["spec"]["scaleTargetRef"]["name"] for s in of_kind(charts, "ScaledObject")}
    return [
        name_of(d)
        for d in of_kind(charts, "Deployment")
        if d["metadata"]["name"] in scaled and "replicas" in d["spec"]
    ]


@rule
def a_scaler_has_one_target_and_a_target_one_scaler(charts: Charts) -> list[str]:
    deployments = {d["metadata"]["name"] for d in of_kind(charts, "Deployment")}
    targets = [s["spec"]["scaleTargetRef"]["name"] for s in of_kind(charts, "ScaledObject")]
    unscaled = [
        name_of(d)
        for d in of_kind(charts, "Deployment")
        if "replicas" not in d["spec"] and d["metadata"]["name"] not in targets
    ]
    return (
        [f"no Deployment {t}" for t in targets if t not in deployments]
        + [f"two scalers of {t}" for t in set(targets) if targets.count(t) > 1]
        + [f"{name}: neither replicas nor a scaler" for name in unscaled]
        + [name_of(h) for h in of_kind(charts, "HorizontalPodAutoscaler")]
    )


@rule
def budgets_protect_and_never_block(charts: Charts) -> list[str]:
    found, protected = [], set()
    for budget in of_kind(charts, "PodDisruptionBudget"):
        spec = budget["spec"]
        matches = selected(spec["selector"]["matchLabels"], charts, budget["metadata"]["namespace"])
        if len(matches) != 1:
            found.append(f"{name_of(budget)}: selects {len(matches)} workloads")
        if spec.get("maxUnavailable") != 1 or "minAvailable" in spec:
            found.append(f"{name_of(budget)}: not one pod at a time")
        if spec.get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
            found.append(f"{name_of(budget)}: a broken pod blocks a drain")
        protected |= {name_of(m) for m in matches}
    several = {
        name_of(w) for w in workloads(charts) if w["spec"].get("replicas") != 1 and not gives_way(w)
    }
    return found + [f"{name}: no budget" for name in sorted(several - protected)]


@rule
def a_service_selects_one_workload(charts: Charts) -> list[str]:
    found = []
    for service in of_kind(charts, "Service"):
        spec = service["spec"]
        matches = selected(spec["selector"], charts, service["metadata"]["namespace"])
        if len(matches) != 1:
            found.append(f"{name_of(service)}: selects {len(matches)} workloads")
            continue
        declared = [p for c in pod_of(matches[0])["containers"] for p in c["ports"]]
        ports = {p["name"] for p in declared} | {p["containerPort"] for p in declared}
        if any(port["targetPort"] not in ports for port in spec["ports"]):
            found.append(f"{name_of(service)}: a port that no container has")
        if spec.get("type", "ClusterIP") != "ClusterIP" or spec.get("externalIPs"):
            found.append(f"{name_of(service)}: reachable from outside the cluster")
    return found


@rule
def selectors_select_their_own_pods(charts: Charts) -> list[str]:
    found = []
    for workload in workloads(charts):
        selector = workload["spec"]["selector"]["matchLabels"]
        matches = selected(selector, charts, workload["metadata"]["namespace"])
        if [name_of(m) for m in matches] != [name_of(workload)]:
            found.append(f"{name_of(workload)}: selects {[name_of(m) for m in matches]}")
    return found


def before(charts: Charts) -> dict[str, set[str]]:
    """All charts that are applied before each chart, direct or not; a cycle raises."""
    direct = {chart.name: set(chart.after) for chart in charts}
    result: dict[str, set[str]] = {}
    while len(result) < len(direct):
        ready = [n for n, after in direct.items() if n not in result and after <= result.keys()]
        if not ready:
            raise ValueError(f"a cycle or an unknown chart: {direct}")
        for name in ready:
            result[name] = direct[name] | {x for a in direct[name] for x in result[a]}
    return result


def chart_of(charts: Charts, kind: str, name: str) -> str:
    (found,) = [
        c.name
        for c in charts
        for m in c.manifests
        if m["kind"] == kind and m["metadata"]["name"] == name
    ]
    return found


@rule
def what_is_needed_is_applied_first(charts: Charts) -> list[str]:
    try:
        order = before(charts)
    except ValueError as error:
        return [str(error)]
    needs: list[tuple[str, str, str]] = []  # (chart, needed kind, needed name)
    for chart in charts:
        for m in chart.manifests:
            namespace = m["metadata"].get("namespace")
            if namespace and namespace not in HELM_NAMESPACES:
                needs.append((chart.name, "Namespace", namespace))
            if m["kind"] == "ScaledObject":
                needs.append((chart.name, "Deployment", m["spec"]["scaleTargetRef"]["name"]))
                needs.append((chart.name, "StatefulSet", "prometheus"))
            if m["kind"] in WORKLOADS:
                for volume in pod_of(m).get("volumes", []):
                    if claim := volume.get("persistentVolumeClaim"):
                        needs.append((chart.name, "PersistentVolumeClaim", claim["claimName"]))
                    if attributes := volume.get("csi", {}).get("volumeAttributes"):
                        name = attributes["secretProviderClass"]
                        needs.append((chart.name, "SecretProviderClass", name))
                    if source := volume.get("configMap"):
                        needs.append((chart.name, "ConfigMap", source["name"]))
                if account := pod_of(m).get("serviceAccountName"):
                    needs.append((chart.name, "ServiceAccount", account))
            # The readiness gate is given to pods that are created after their binding.
            if m["kind"] == "Deployment" and m["metadata"]["name"] == "sonic-api":
                needs.append((chart.name, "TargetGroupBinding", "sonic-api"))
                needs.append((chart.name, "Service", "sonic-api"))
                needs.append((chart.name, "StatefulSet", "nats"))
    found = []
    for chart_name, kind, name in needs:
        needed = chart_of(charts, kind, name)
        if needed != chart_name and needed not in order[chart_name]:
            found.append(f"{chart_name}: {kind}/{name} is not applied before")
    return found


@rule
def bindings_point_at_a_service_port(charts: Charts) -> list[str]:
    services = {
        (s["metadata"]["namespace"], s["metadata"]["name"], p["port"])
        for s in of_kind(charts, "Service")
        for p in s["spec"]["ports"]
    }
    found = []
    for binding in of_kind(charts, "TargetGroupBinding"):
        reference = binding["spec"]["serviceRef"]
        key = (binding["metadata"]["namespace"], reference["name"], reference["port"])
        if key not in services or binding["spec"]["targetType"] != "ip":
            found.append(name_of(binding))
    return found


@rule
def only_known_values_are_late(charts: Charts) -> list[str]:
    found = []
    for manifest in manifests_of(charts):
        for text in strings(manifest):
            markers = re.findall(r"<<known-after-deploy:(\w+)>>", text)
            if not set(markers) <= KNOWN_MARKERS or len(markers) != text.count("<<known"):
                found.append(f"{name_of(manifest)}: {text}")
    return found


@rule
def objects_are_labelled_and_named(charts: Charts) -> list[str]:
    keys = {f"app.kubernetes.io/{k}" for k in ("name", "instance", "component", "part-of")}
    keys.add("app.kubernetes.io/managed-by")
    found = []
    for manifest in manifests_of(charts):
        # A file system's id is as long as this one and has no other characters.
        name = re.sub(
            "<<known-after-deploy:FileSystemId>>$", "fs-0" + "a" * 16, manifest["metadata"]["name"]
        )
        labels = manifest["metadata"].get("labels", {})
        if not keys <= labels.keys():
            found.append(f"{name_of(manifest)}: labels are missing")
        if any(
            not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", v)
            for v in labels.values()
        ):
            found.append(f"{name_of(manifest)}: a label's value is not one")
        # cdk8s ends the names that it makes itself in c and eight hexadecimal digits.
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) or re.search(
            r"-c[0-9a-f]{8}$", name
        ):
            found.append(f"{name_of(manifest)}: not a name of ours")
        if ("namespace" in manifest["metadata"]) == (manifest["kind"] in CLUSTER_SCOPED):
            found.append(f"{name_of(manifest)}: namespace")
    for workload in workloads(charts):
        if not keys <= workload["spec"]["template"]["metadata"]["labels"].keys():
            found.append(f"{name_of(workload)}: labels are missing on the pods")
    return found


@rule
def no_pod_pulls_with_credentials(charts: Charts) -> list[str]:
    found = []
    for workload in workloads(charts):
        if pod_of(workload).get("imagePullSecrets"):
            found.append(f"{name_of(workload)}: a registry's credentials")
    return found


@rule
def permissions_are_least(charts: Charts) -> list[str]:
    found = [name_of(m) for m in of_kind(charts, "ClusterRole", "ClusterRoleBinding")]
    for role in of_kind(charts, "Role"):
        for entry in role["rules"]:
            if entry["resources"] != ["pods"] or set(entry["verbs"]) - {"get", "list", "watch"}:
                found.append(name_of(role))
    return found
