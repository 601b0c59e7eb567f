"""What the house rules share: the register, and ways to find things in manifests.

A rule takes charts in apply order and returns what breaks it, one line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sonic_eks.k8s.render import Manifest, RenderedChart

Charts = Sequence[RenderedChart]
Rule = Callable[[Charts], list[str]]
RULES: dict[str, Rule] = {}

WORKLOADS = ("Deployment", "StatefulSet")


def rule(function: Rule) -> Rule:
    """Register a rule under its name."""
    RULES[function.__name__] = function
    return function


def manifests_of(charts: Charts) -> list[Manifest]:
    return [manifest for chart in charts for manifest in chart.manifests]


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def workloads(charts: Charts) -> list[Manifest]:
    return [m for m in manifests_of(charts) if m["kind"] in WORKLOADS]


def of_kind(charts: Charts, *kinds: str) -> list[Manifest]:
    return [m for m in manifests_of(charts) if m["kind"] in kinds]


def pod_of(workload: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def gives_way(workload: Manifest) -> bool:
    """Whether its pods are spare capacity."""
    return "priorityClassName" in pod_of(workload)


def stands_in(charts: Charts) -> bool:
    """Whether the project's stand-in serves, on nodes without GPUs."""
    return any("sidecar.stand_in" in c.get("command", []) for _, c in containers(charts))


def containers(charts: Charts, *, running: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """All containers with their names; `running` leaves out those that end before the others."""
    for workload in workloads(charts):
        pod = pod_of(workload)
        first = pod.get("initContainers", [])
        if running:
            first = [c for c in first if c.get("restartPolicy") == "Always"]
        for container in pod["containers"] + first:
            yield f"{name_of(workload)} {container['name']}", container


def selected(selector: dict[str, str], charts: Charts, namespace: str) -> list[Manifest]:
    """Workloads of a namespace whose pods carry all labels of a selector."""
    return [
        w
        for w in workloads(charts)
        if w["metadata"]["namespace"] == namespace
        and selector.items() <= w["spec"]["template"]["metadata"]["labels"].items()
    ]


def strings(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield from strings(key)
            yield from strings(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from strings(value)
    elif isinstance(document, str):
        yield document
