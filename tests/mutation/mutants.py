"""What is edited: one small fault a mutant, none of them one that CloudFormation would refuse."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sonic_eks.k8s.render import RenderedChart
from tests.cloudformation import Resources

Json = Any
Path = tuple[str | int, ...]

# Properties that hold a document as text: an add-on's and a chart's values.
_TEXTS = ("ConfigurationValues", "Values")
_SUBSTITUTED = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_LISTS = {
    "taints": "taint",
    "startupTaints": "taint",
    "Taints": "taint",
    "tolerations": "toleration",
}


@dataclass(frozen=True)
class Mutant:
    """One edit.

    Attributes
    ----------
    kind : str
        What is taken away or turned around: resource, dependency, taint, toleration, probe,
        boolean, object.
    where : str
        Name of the stack, or of the chart.
    target : str
        Logical id, or kind and name of the Kubernetes object.
    path : tuple
        Keys and indices that lead to what is edited; empty for the whole.
    manifest : bool
        Whether it edits a manifest rather than a template.
    """

    kind: str
    where: str
    target: str
    path: Path = ()
    manifest: bool = False

    @property
    def name(self) -> str:
        """Name in reports: unique and stable."""
        parts = ".".join(str(part) for part in self.path)
        return f"{self.kind}: {self.where}/{self.target}{' ' if parts else ''}{parts}"


def mutants_of_template(stack: str, template: Json) -> Iterator[Mutant]:
    """Give every mutant of a template."""
    resources: dict[str, Json] = template["Resources"]
    needed = _referred(template)
    for name, resource in resources.items():
        if name not in needed:
            yield Mutant("resource", stack, name)
        for other in _listed(resource.get("DependsOn", [])):
            if not _still_ordered(template, name, other):
                yield Mutant("dependency", stack, name, (other,))
        properties = resource.get("Properties", {})
        for kind, path in _edits(properties, templates=True):
            yield Mutant(kind, stack, name, ("Properties", *path))


def mutants_of_chart(chart: RenderedChart) -> Iterator[Mutant]:
    """Give every mutant of a chart's manifests."""
    for manifest in chart.manifests:
        target = identity(manifest)
        yield Mutant("object", chart.name, target, manifest=True)
        for kind, path in _edits(manifest, templates=False):
            yield Mutant(kind, chart.name, target, path, manifest=True)


def identity(manifest: Json) -> str:
    """Return kind, namespace and name of an object."""
    metadata = manifest["metadata"]
    return "/".join((manifest["kind"], metadata.get("namespace", ""), metadata["name"]))


def is_meant(mutant: Mutant, template: Json, default: Json) -> bool:
    """Tell whether a template has, where the mutant edits, what the default one has there."""
    places = [body["Resources"].get(mutant.target) for body in (template, default)]
    if None in places or places[0]["Type"] != places[1]["Type"]:
        return False
    if mutant.kind == "resource":
        return True
    if mutant.kind == "dependency":
        return mutant.path[0] in _listed(places[0].get("DependsOn", []))
    path = list(mutant.path)
    # A document in a text is compared as a whole.
    path = path[: path.index("json")] if "json" in path else path
    try:
        for part in path:
            places = [place[part] for place in places]
    except (KeyError, IndexError, TypeError):
        return False
    return bool(places[0] == places[1])


def mutated_template(template: Json, mutant: Mutant) -> Json:
    """Return a template with the edit of a mutant."""
    changed = copy.deepcopy(template)
    resources = changed["Resources"]
    if mutant.kind == "resource":
        del resources[mutant.target]
        for resource in resources.values():
            _drop_dependency(resource, mutant.target)
    elif mutant.kind == "dependency":
        _drop_dependency(resources[mutant.target], str(mutant.path[0]))
    else:
        _edit(resources[mutant.target], mutant.path, mutant.kind)
    return changed


def mutated_chart(chart: RenderedChart, mutant: Mutant) -> RenderedChart:
    """Return a chart with the edit of a mutant."""
    manifests = []
    for manifest in chart.manifests:
        if identity(manifest) != mutant.target:
            manifests.append(manifest)
        elif mutant.kind != "object":
            changed = copy.deepcopy(manifest)
            _edit(changed, mutant.path, mutant.kind)
            manifests.append(changed)
    return RenderedChart(name=chart.name, manifests=tuple(manifests), after=chart.after)


def _edits(value: Json, *, templates: bool, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Give kind and path of what may be taken away or turned around below a value."""
    if isinstance(value, bool):
        yield "boolean", path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _edits(item, templates=templates, path=(*path, index))
    elif isinstance(value, dict):
        # Attributes of a load balancer have their booleans as text.
        if set(value) == {"Key", "Value"} and value["Value"] in ("true", "false"):
            yield "boolean", (*path, "Value")
        for key, item in value.items():
            here = (*path, key)
            if key in _LISTS and isinstance(item, list):
                for index in range(len(item)):
                    yield _LISTS[key], (*here, index)
            elif key in _PROBES:
                yield "probe", here
            if templates and key in _TEXTS and (document := _parsed(item)) is not None:
                for kind, inner in _edits(document, templates=False):
                    yield kind, (*here, "json", *inner)
            else:
                yield from _edits(item, templates=templates, path=here)


def _edit(value: Json, path: Path, kind: str) -> None:
    *parents, last = path
    for index, part in enumerate(parents):
        if parents[index + 1 : index + 2] == ["json"] and part in _TEXTS:
            document = _parsed(value[part])
            _edit(document, (*parents[index + 2 :], last), kind)
            value[part] = _written(document)
            return
        value = value[part]
    if kind == "boolean":
        old = value[last]
        value[last] = {"true": "false", "false": "true"}[old] if isinstance(old, str) else not old
    else:
        del value[last]


# A text with intrinsic functions in it is read with a mark in place of each; the marks are words,
# so that they may stand inside quotes.
_MARK = "@@{}@@"


def _parsed(value: Json) -> Json:
    """Return the document in a property's text, None where it holds none."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict) and set(value) == {"Fn::Join"}:
        parts = value["Fn::Join"][1]
        text = "".join(
            part if isinstance(part, str) else _MARK.format(json.dumps(part).encode().hex())
            for part in parts
        )
    else:
        return None
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _written(document: Json) -> Json:
    """Return the property's text of a document; the opposite of `_parsed`."""
    pieces = json.dumps(document).split("@@")
    if len(pieces) == 1:
        return pieces[0]
    parts = [
        json.loads(bytes.fromhex(piece)) if index % 2 else piece
        for index, piece in enumerate(pieces)
    ]
    return {"Fn::Join": ["", parts]}


def _listed(value: Json) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _drop_dependency(resource: Json, name: str) -> None:
    left = [other for other in _listed(resource.get("DependsOn", [])) if other != name]
    resource.pop("DependsOn", None)
    if left:
        resource["DependsOn"] = left


def _referred(template: Json) -> set[str]:
    """Return the logical ids that CloudFormation would miss: those of Ref, GetAtt and Sub."""
    found: set[str] = set()

    def walk(value: Json) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            if isinstance(value.get("Ref"), str):
                found.add(value["Ref"])
            attribute = value.get("Fn::GetAtt")
            if attribute:
                found.add(attribute[0] if isinstance(attribute, list) else attribute.split(".")[0])
            if "Fn::Sub" in value:
                found.update(_SUBSTITUTED.findall(json.dumps(value["Fn::Sub"])))
            for item in value.values():
                walk(item)

    for resource in template["Resources"].values():
        walk(resource.get("Properties", {}))
    walk(template.get("Outputs", {}))
    return found


def _still_ordered(template: Json, name: str, other: str) -> bool:
    """Tell whether `name` still waits for `other` without the dependency: nothing would change."""
    changed = {"Resources": dict(template["Resources"])}
    changed["Resources"][name] = copy.deepcopy(template["Resources"][name])
    _drop_dependency(changed["Resources"][name], other)
    return other in Resources(changed).needs(name)
