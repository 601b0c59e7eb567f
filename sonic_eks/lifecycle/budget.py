"""How long the longest steps take, and the limits that they are held against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sonic_eks.lifecycle.order import Chart

HANDLER_SECONDS = 900
"""AWS Lambda quotas: a function, such as CDK's handler or the node guard, runs for 15 minutes."""

HANDLER_TRIES = 3
"""AWS Lambda guide, "Asynchronous invocation": a function that times out runs twice more."""

CUSTOM_RESOURCE_SECONDS = 3600
"""CloudFormation user guide, "Custom resources": the answer must come within an hour."""

NODE_DRAIN_SECONDS = 900
"""Amazon EKS user guide, "Understand each phase of node updates": 15 minutes to leave a node."""

HELM_SECONDS = 600
"""`constructs/controllers.py`: Helm gives up before its handler does."""

MIRROR_SECONDS = 3540
"""`constructs/mirror.py`: how long a deployment waits for the copies."""

INSTANCE_STOP_SECONDS = 600
"""Assumed bound in seconds from a request to terminate an instance to its end."""

CONTROL_SECONDS = 1200
"""Assumed bound in seconds of all steps of the Workload stack's deletion that wait for no pod."""

# Kubernetes API reference, PodSpec: what a pod that says nothing gets.
_DEFAULT_GRACE_SECONDS = 30


def drain_seconds(charts: Iterable[Chart]) -> int:
    """Return how long the drain of a node of Karpenter may take in seconds.

    Parameters
    ----------
    charts : iterable of Chart
        The rendered charts. A NodePool says after what time Karpenter terminates an instance
        whatever runs on it; without a NodePool the pods' own grace is all that there is to wait.
    """
    manifests = [manifest for chart in charts for manifest in chart.manifests]
    backstops = [
        int(manifest["spec"]["template"]["spec"]["terminationGracePeriod"].removesuffix("s"))
        for manifest in manifests
        if manifest["kind"] == "NodePool"
    ]
    return max([*backstops, grace_seconds(charts)])


def grace_seconds(charts: Iterable[Chart]) -> int:
    """Return the longest time in seconds that a pod of the charts may take to end."""
    specs = [
        manifest["spec"]["template"]["spec"]
        for chart in charts
        for manifest in chart.manifests
        if manifest["kind"] in ("DaemonSet", "Deployment", "StatefulSet")
    ]
    graces = [spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS) for spec in specs]
    return max(map(int, graces))


def teardown_seconds(drain: int) -> int:
    """Return how long a teardown waits for Karpenter in seconds, before it acts itself.

    Parameters
    ----------
    drain : int
        How long the drain of a node may take, in seconds (`drain_seconds`).
    """
    return drain + INSTANCE_STOP_SECONDS + CONTROL_SECONDS


@dataclass(frozen=True)
class Budget:
    """The longest step of an operation, against its limit.

    Attributes
    ----------
    operation : str
        ``create``, ``update`` or ``delete``.
    step : str
        What takes the time.
    seconds : int
        How long it takes at most.
    limit_seconds : int
        What ends it.
    limit : str
        Whose limit that is.
    """

    operation: str
    step: str
    seconds: int
    limit_seconds: int
    limit: str


def budgets(charts: Iterable[Chart]) -> tuple[Budget, ...]:
    """Return the longest steps of a deployment with the charts.

    Parameters
    ----------
    charts : iterable of Chart
        The rendered charts.
    """
    charts = tuple(charts)
    grace = grace_seconds(charts)
    handler = "CDK's handler, 15 min"
    tries = f"CDK's handler, {HANDLER_TRIES} tries of 15 min"
    node = "EKS, 15 min a node"
    hour = "CloudFormation custom resource, 1 h"
    found = [
        Budget("create", "the registry is filled", MIRROR_SECONDS, CUSTOM_RESOURCE_SECONDS, hour),
        Budget("create", "a chart's pods become ready", HELM_SECONDS, HANDLER_SECONDS, handler),
        Budget("update", "a chart's new pods become ready", HELM_SECONDS, HANDLER_SECONDS, handler),
        Budget("update", "pods leave a managed node", grace, NODE_DRAIN_SECONDS, node),
        Budget(
            "delete",
            "pods end, which volume claim and namespaces wait for",
            grace,
            HANDLER_TRIES * HANDLER_SECONDS,
            tries,
        ),
    ]
    if any(m["kind"] == "EC2NodeClass" for chart in charts for m in chart.manifests):
        found.append(
            Budget(
                "delete",
                "Karpenter ends empty nodes, which the EC2NodeClass waits for",
                INSTANCE_STOP_SECONDS,
                HANDLER_TRIES * HANDLER_SECONDS,
                tries,
            )
        )
    found.append(
        Budget("delete", "the node guard waits", HANDLER_SECONDS, CUSTOM_RESOURCE_SECONDS, hour)
    )
    return tuple(found)
