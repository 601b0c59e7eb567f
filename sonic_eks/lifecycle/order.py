"""The steps in which Kubernetes objects are applied, and deleted in reverse.

Each step is one custom resource, so one call of CDK's handler. A handler that deletes several
objects deletes them at once; objects whose order of deletion matters are therefore steps of their
own. So is every object that would stay in force if it left its chart: the handler removes what
disappeared from a step with ``kubectl apply --prune``, which knows a dozen kinds and no others.
(Service accounts, roles and priority classes are none of these: without pods they do nothing.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sonic_eks.late import markers_in, resolve

Manifest = dict[str, Any]

# Kinds that are steps of their own, with their place within the chart: what lies on another object
# comes after it. 2 is where everything else is.
_PLACES = {
    # Its finalizer waits for the nodes of its NodePools.
    "EC2NodeClass": 0,
    "NodePool": 1,
    # A claim is released before its volume, when the last pod has unmounted it.
    "PersistentVolume": 0,
    "PersistentVolumeClaim": 1,
    # In force before the first pod that it is about.
    "NetworkPolicy": 0,
    "SecretProviderClass": 0,
    # After what it points at, and gone before it. A budget goes first: nothing heeds it then.
    "PodDisruptionBudget": 3,
    "ScaledObject": 3,
    "TargetGroupBinding": 3,
}
_SHARED_PLACE = 2
# A policy for all pods of a namespace allows nothing. It goes before those that allow something:
# alone in force, it would cut off pods that still drain.
_DENIAL_PLACE = 1


class Chart(Protocol):
    """What is needed of a rendered chart here."""

    @property
    def name(self) -> str:
        """Name of the chart."""

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """Kubernetes objects in apply order."""

    @property
    def after(self) -> tuple[str, ...]:
        """Charts that are applied before."""


@dataclass(frozen=True)
class Step:
    """Objects that are applied together.

    Attributes
    ----------
    name : str
        The chart's name, or kind, namespace and name of a single object. It becomes the id of
        a construct, so it is a contract: under another id the object would be made a second time
        and then deleted.
    manifests : tuple of dict
        The objects.
    after : tuple of str
        Names of the steps that are applied before, and deleted after.
    prune : bool
        Whether an object that disappears from the step is deleted by kubectl; a step of one object
        goes as a whole, unless the object's name holds an id that may change.
    """

    name: str
    manifests: tuple[Manifest, ...]
    after: tuple[str, ...]
    prune: bool


def steps_of(charts: Iterable[Chart]) -> tuple[Step, ...]:
    """Return the steps of charts, in apply order.

    Parameters
    ----------
    charts : iterable of Chart
        Charts in apply order.
    """
    steps: list[Step] = []
    last: dict[str, tuple[str, ...]] = {}
    for chart in charts:
        before = start = tuple(name for earlier in chart.after for name in last[earlier])
        previous: list[Step] = []
        for place in sorted({_place(manifest) for manifest in chart.manifests}):
            here = list(_steps_at(place, chart, before))
            here = [
                replace(s, after=_of_its_namespace(s, previous) or start) if _denies(s) else s
                for s in here
            ]
            steps += here
            followed = {name for step in here for name in step.after}
            before = tuple(s.name for s in [*previous, *here] if s.name not in followed)
            previous = here
        last[chart.name] = before
    return tuple(steps)


def _denies(step: Step) -> bool:
    return all(_place(m) == _DENIAL_PLACE and m["kind"] == "NetworkPolicy" for m in step.manifests)


def _of_its_namespace(denial: Step, allowing: Iterable[Step]) -> tuple[str, ...]:
    """Return the policies that allow something where this one denies the rest."""
    namespaces = {manifest["metadata"]["namespace"] for manifest in denial.manifests}
    return tuple(
        step.name
        for step in allowing
        if namespaces & {manifest["metadata"]["namespace"] for manifest in step.manifests}
    )


def _steps_at(place: int, chart: Chart, before: tuple[str, ...]) -> Iterable[Step]:
    here = [manifest for manifest in chart.manifests if _place(manifest) == place]
    shared = tuple(manifest for manifest in here if not _is_alone(manifest))
    if shared:
        yield Step(chart.name, shared, before, prune=True)
    for manifest in here:
        if _is_alone(manifest):
            # A name that holds an id may change, and leaves the object of the old name behind.
            renames = bool(markers_in(manifest["metadata"]["name"]))
            yield Step(_identity(manifest), (manifest,), before, prune=renames)


def _place(manifest: Manifest) -> int:
    if manifest["kind"] == "NetworkPolicy" and not manifest["spec"]["podSelector"]:
        return _DENIAL_PLACE
    return _PLACES.get(manifest["kind"], _SHARED_PLACE)


def _is_alone(manifest: Manifest) -> bool:
    # The API groups of Kubernetes itself have no dot or end in k8s.io; kubectl prunes no others.
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    built_in = "." not in group or group.endswith(".k8s.io")
    return manifest["kind"] in _PLACES or not built_in


def _identity(manifest: Manifest) -> str:
    metadata = resolve(manifest["metadata"], lambda _: "")
    parts = (manifest["kind"], metadata.get("namespace"), metadata["name"].strip("-"))
    return "-".join(part for part in parts if part)
