"""Deployments with an edit in one place, for the rules to find."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sonic_eks.k8s.render import RenderedChart
from tests.manifests.deployments import charts
from tests.manifests.rules_base import Charts

Edit = Callable[[dict[str, Any]], object]


def edited(kind: str, name: str, edit: Edit, *, deployment: str = "default") -> Charts:
    """Return a deployment with one object changed."""
    copies = [
        RenderedChart(c.name, tuple(copy.deepcopy(m) for m in c.manifests), c.after)
        for c in charts(deployment)
    ]
    (target,) = [
        m
        for c in copies
        for m in c.manifests
        if m["kind"] == kind and m["metadata"]["name"] == name
    ]
    edit(target)
    return copies


def with_object(manifest: dict[str, Any]) -> Charts:
    """Return the default deployment with one object more, in the last chart."""
    *others, last = charts("default")
    meta = {"name": "more", "namespace": "sonic", "labels": {}}
    more = {"metadata": meta, **manifest}
    return [*others, RenderedChart(last.name, (*last.manifests, more), last.after)]


def without_order(chart: str, earlier: str) -> Charts:
    """Return the default deployment in which `chart` no longer waits for `earlier`."""
    return [
        RenderedChart(
            c.name, c.manifests, tuple(a for a in c.after if c.name != chart or a != earlier)
        )
        for c in charts("default")
    ]


def pod(edit: Edit) -> Edit:
    return lambda m: edit(m["spec"]["template"]["spec"])


def container(edit: Edit) -> Edit:
    return lambda m: edit(m["spec"]["template"]["spec"]["containers"][0])
