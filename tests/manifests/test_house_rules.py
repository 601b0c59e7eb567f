"""The house rules hold for every deployment, and each one finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sonic_eks.k8s.render import RenderedChart
from tests.manifests.deployments import charts
from tests.manifests.edits import Edit, container, edited, pod, with_object, without_order
from tests.manifests.examples_of_policies import BROKEN_POLICIES
from tests.manifests.examples_of_secrets import BROKEN_SECRETS
from tests.manifests.house_rules import RULES, Charts


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule_holds(name: str, deployment: str) -> None:
    assert RULES[name](charts(deployment)) == []


_REPLACE = {"maxSurge": 0, "maxUnavailable": 1}
_SLEEPS_FOR_THE_GRACE = {"preStop": {"sleep": {"seconds": 780}}}


def _hook(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda c: c["lifecycle"]["preStop"]["httpGet"].update(changes)


API = ("Deployment", "sonic-api")
WORKER = ("Deployment", "sonic-worker-sonic-3")
WEIGHTS_VOLUME = "sonic-weights-<<known-after-deploy:FileSystemId>>"
NATS = ("StatefulSet", "nats")
PROMETHEUS = ("StatefulSet", "prometheus")
SCALER = ("ScaledObject", "sonic-api")


def image(value: str) -> Edit:
    return container(lambda c: c.update(image=value))


# (rule, what breaks it)
BROKEN: list[tuple[str, Callable[[], Charts]]] = [
    *BROKEN_POLICIES,
    (
        "images_are_fixed_and_private",
        lambda: edited(*NATS, image("docker.io/library/nats:2.12.8-alpine")),
    ),
    (
        "images_are_fixed_and_private",
        lambda: edited(*NATS, image("123456789012.dkr.ecr.us-east-1.amazonaws.com/x/nats:latest")),
    ),
    (
        "images_are_fixed_and_private",
        lambda: edited(*NATS, image("123456789012.dkr.ecr.us-east-1.amazonaws.com/x/nats")),
    ),
    *(
        (
            "images_are_fixed_and_private",
            lambda tag=tag: edited(
                *NATS, image(f"123456789012.dkr.ecr.us-east-1.amazonaws.com/x/nats:{tag}")
            ),
        )
        for tag in ("stable", "2", "2-alpine")
    ),
    *(
        ("pods_come_from_what_the_rules_look_at", lambda kind=kind: with_object({"kind": kind}))
        for kind in ("Pod", "DaemonSet", "CronJob")
    ),
    (
        "images_are_fixed_and_private",
        lambda: edited(*NATS, container(lambda c: c.update(imagePullPolicy="Always"))),
    ),
    (
        "scaled_workloads_have_no_replicas",
        lambda: edited(*API, lambda m: m["spec"].update(replicas=3)),
    ),
    (
        "a_scaler_has_one_target_and_a_target_one_scaler",
        lambda: edited(*SCALER, lambda m: m["spec"]["scaleTargetRef"].update(name="other")),
    ),
    (
        "a_scaler_has_one_target_and_a_target_one_scaler",
        lambda: edited(
            *SCALER, lambda m: m["spec"]["scaleTargetRef"].update(name="sonic-worker-sonic-3")
        ),
    ),
    (
        "a_scaler_has_one_target_and_a_target_one_scaler",
        lambda: with_object({"kind": "HorizontalPodAutoscaler"}),
    ),
    (
        "resources_are_stated",
        lambda: edited(*API, container(lambda c: c["resources"]["requests"].pop("cpu"))),
    ),
    (
        "resources_are_stated",
        lambda: edited(*API, container(lambda c: c["resources"]["limits"].update(memory="1Gi"))),
    ),
    (
        "resources_are_stated",
        lambda: edited(
            *WORKER, container(lambda c: c["resources"]["requests"].pop("nvidia.com/gpu"))
        ),
    ),
    (
        "audio_is_never_throttled",
        lambda: edited(*WORKER, container(lambda c: c["resources"]["limits"].update(cpu="6"))),
    ),
    *(
        ("probes_are_complete", lambda p=p: edited(*WORKER, container(lambda c: c.pop(p))))
        for p in ("startupProbe", "readinessProbe", "livenessProbe")
    ),
    (
        "probes_are_complete",
        lambda: edited(*API, container(lambda c: c.update(livenessProbe=c["readinessProbe"]))),
    ),
    (
        "probes_are_complete",
        lambda: edited(*API, container(lambda c: c["livenessProbe"].update(failureThreshold=3))),
    ),
    (
        "probes_are_complete",
        lambda: edited(*API, container(lambda c: c["readinessProbe"]["httpGet"].update(port="x"))),
    ),
    ("pods_are_placed", lambda: edited(*API, pod(lambda p: p.pop("nodeSelector")))),
    ("pods_are_placed", lambda: edited(*API, pod(lambda p: p.pop("tolerations")))),
    (
        "pods_are_placed",
        lambda: edited(*PROMETHEUS, pod(lambda p: p.update(tolerations=[{"operator": "Exists"}]))),
    ),
    (
        "pods_are_placed",
        lambda: edited(
            *WORKER,
            pod(lambda p: p["tolerations"].append({"key": "fsx.csi.aws.com/agent-not-ready"})),
        ),
    ),
    (
        "replicas_do_not_share_a_node",
        lambda: edited(*WORKER, pod(lambda p: p.pop("topologySpreadConstraints"))),
    ),
    ("replicas_do_not_share_a_node", lambda: edited(*NATS, pod(lambda p: p.pop("affinity")))),
    (
        "no_pod_has_a_token_without_need",
        lambda: edited(*API, pod(lambda p: p.pop("automountServiceAccountToken"))),
    ),
    (
        "services_are_not_in_the_environment",
        lambda: edited(*API, pod(lambda p: p.pop("enableServiceLinks"))),
    ),
    (
        "pods_meet_their_security_level",
        lambda: edited(*API, pod(lambda p: p["securityContext"].pop("seccompProfile"))),
    ),
    (
        "pods_meet_their_security_level",
        lambda: edited(*PROMETHEUS, pod(lambda p: p["securityContext"].pop("runAsUser"))),
    ),
    ("pods_meet_their_security_level", lambda: edited(*API, pod(lambda p: p.update(hostPID=True)))),
    (
        "pods_meet_their_security_level",
        lambda: edited(
            *NATS, pod(lambda p: p["volumes"].append({"name": "h", "hostPath": {"path": "/"}}))
        ),
    ),
    (
        "pods_meet_their_security_level",
        lambda: edited(*API, container(lambda c: c["securityContext"].pop("capabilities"))),
    ),
    (
        "pods_meet_their_security_level",
        lambda: edited(
            "Namespace",
            "sonic",
            lambda m: m["metadata"]["labels"].update(
                {"pod-security.kubernetes.io/enforce": "privileged"}
            ),
        ),
    ),
    (
        "own_containers_have_a_read_only_root_and_are_not_root",
        lambda: edited(
            *NATS, container(lambda c: c["securityContext"].update(readOnlyRootFilesystem=False))
        ),
    ),
    (
        "budgets_protect_and_never_block",
        lambda: edited(
            "PodDisruptionBudget",
            "nats",
            lambda m: m["spec"]["selector"]["matchLabels"].update({"app.kubernetes.io/name": "x"}),
        ),
    ),
    (
        "budgets_protect_and_never_block",
        lambda: edited("PodDisruptionBudget", "nats", lambda m: m["spec"].update(maxUnavailable=0)),
    ),
    (
        "budgets_protect_and_never_block",
        lambda: edited(
            "PodDisruptionBudget", "nats", lambda m: m["spec"].pop("unhealthyPodEvictionPolicy")
        ),
    ),
    (
        "a_service_selects_one_workload",
        lambda: edited(
            "Service", "sonic-api", lambda m: m["spec"]["selector"].pop("app.kubernetes.io/name")
        ),
    ),
    (
        "a_service_selects_one_workload",
        lambda: edited("Service", "sonic-api", lambda m: m["spec"].update(type="LoadBalancer")),
    ),
    (
        "a_service_selects_one_workload",
        lambda: edited(
            "Service", "sonic-api", lambda m: m["spec"]["ports"][0].update(targetPort="x")
        ),
    ),
    (
        "selectors_select_their_own_pods",
        lambda: edited(
            *API,
            lambda m: m["spec"].update(
                selector={"matchLabels": {"app.kubernetes.io/instance": "sonic"}}
            ),
        ),
    ),
    ("what_is_needed_is_applied_first", lambda: without_order("api", "edge")),
    ("what_is_needed_is_applied_first", lambda: without_order("api", "nats")),
    ("what_is_needed_is_applied_first", lambda: without_order("workers", "weights")),
    ("what_is_needed_is_applied_first", lambda: without_order("scaling", "workers")),
    ("what_is_needed_is_applied_first", lambda: without_order("scaling", "prometheus")),
    ("what_is_needed_is_applied_first", lambda: without_order("network-policies", "namespaces")),
    (
        "what_is_needed_is_applied_first",
        lambda: [
            RenderedChart(c.name, c.manifests, ("scaling",) if c.name == "nats" else c.after)
            for c in charts("default")
        ],
    ),
    (
        "bindings_point_at_a_service_port",
        lambda: edited(
            "TargetGroupBinding", "sonic-api", lambda m: m["spec"]["serviceRef"].update(port=80)
        ),
    ),
    (
        "bindings_point_at_a_service_port",
        lambda: edited(
            "TargetGroupBinding", "sonic-api", lambda m: m["spec"].update(targetType="instance")
        ),
    ),
    (
        "only_known_values_are_late",
        lambda: edited(*API, image("<<known-after-deploy:Somewhere>>/sonic-api:1")),
    ),
    (
        "objects_are_labelled_and_named",
        lambda: edited(*API, lambda m: m["metadata"].pop("labels")),
    ),
    (
        "objects_are_labelled_and_named",
        lambda: edited(*API, lambda m: m["metadata"].update(name="api-deployment-c8f0a1b2f")),
    ),
    (
        "objects_are_labelled_and_named",
        lambda: edited(*API, lambda m: m["metadata"].pop("namespace")),
    ),
    (
        "objects_are_labelled_and_named",
        lambda: edited(
            *API, lambda m: m["metadata"]["labels"].update({"app.kubernetes.io/instance": "v" * 64})
        ),
    ),
    (
        "objects_are_labelled_and_named",
        lambda: edited(*API, lambda m: m["spec"]["template"]["metadata"].update(labels={})),
    ),
    (
        "no_pod_pulls_with_credentials",
        lambda: edited(*API, pod(lambda p: p.update(imagePullSecrets=[{"name": "vendor"}]))),
    ),
    (
        "permissions_are_least",
        lambda: edited("Role", "prometheus", lambda m: m["rules"][0]["verbs"].append("delete")),
    ),
    (
        "permissions_are_least",
        lambda: edited(
            "Role", "prometheus", lambda m: m["rules"][0]["resources"].append("secrets")
        ),
    ),
    ("permissions_are_least", lambda: with_object({"kind": "ClusterRole"})),
    (
        "weights_are_read_only",
        lambda: edited(
            "PersistentVolume", WEIGHTS_VOLUME, lambda m: m["spec"]["mountOptions"].remove("ro")
        ),
    ),
    (
        "weights_are_read_only",
        lambda: edited(
            *WORKER, pod(lambda p: p["volumes"][1]["persistentVolumeClaim"].pop("readOnly"))
        ),
    ),
    (
        "weights_are_read_only",
        lambda: edited(*WORKER, container(lambda c: c["volumeMounts"][0].pop("readOnly"))),
    ),
    ("weights_are_read_only", lambda: edited(*WORKER, pod(lambda p: p.pop("volumes")))),
    (
        "rollouts_leave_no_gap",
        lambda: edited(
            *WORKER, lambda m: m["spec"]["strategy"]["rollingUpdate"].update(maxUnavailable=1)
        ),
    ),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, pod(lambda p: p.update(terminationGracePeriodSeconds=720))),
    ),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, pod(lambda p: p.update(terminationGracePeriodSeconds=901))),
    ),
    ("hooks_end_within_the_grace", lambda: edited(*API, pod(lambda p: p.pop("initContainers")))),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, pod(lambda p: p["initContainers"][0].pop("restartPolicy"))),
    ),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, container(_hook(port="gate"))),
    ),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, container(_hook(path="/ready"))),
    ),
    (
        "hooks_end_within_the_grace",
        lambda: edited(*API, container(lambda c: c.update(lifecycle=_SLEEPS_FOR_THE_GRACE))),
    ),
    (
        "rollouts_leave_no_gap",
        lambda: edited(*API, lambda m: m["spec"]["strategy"].update(rollingUpdate=_REPLACE)),
    ),
    (
        "what_gives_way_never_displaces",
        lambda: edited("PriorityClass", "sonic-headroom", lambda m: m.update(value=0)),
    ),
    (
        "what_gives_way_never_displaces",
        lambda: edited("PriorityClass", "sonic-headroom", lambda m: m.pop("preemptionPolicy")),
    ),
    (
        "what_gives_way_never_displaces",
        lambda: edited(*WORKER, pod(lambda p: p.update(priorityClassName="sonic-headroom"))),
    ),
    (
        "what_gives_way_never_displaces",
        lambda: edited("Deployment", "sonic-headroom", pod(lambda p: p.pop("priorityClassName"))),
    ),
    (
        "own_containers_have_a_read_only_root_and_are_not_root",
        lambda: edited(
            "Deployment",
            "sonic-headroom",
            container(lambda c: c["securityContext"].update(runAsNonRoot=False)),
        ),
    ),
    (
        "sidecars_are_ready_before_the_server",
        lambda: edited(*API, pod(lambda p: p["initContainers"][0].pop("startupProbe"))),
    ),
    (
        "sidecars_are_ready_before_the_server",
        lambda: edited(*API, pod(lambda p: p["initContainers"][0].update(lifecycle={}))),
    ),
    *BROKEN_SECRETS,
]


@pytest.mark.parametrize(
    ("rule", "broken"), BROKEN, ids=[f"{index}-{rule}" for index, (rule, _) in enumerate(BROKEN)]
)
def test_rule_finds_what_breaks_it(rule: str, broken: Callable[[], Charts]) -> None:
    assert RULES[rule](broken()) != []


def test_every_rule_has_a_failing_example() -> None:
    assert {rule for rule, _ in BROKEN} == set(RULES)
