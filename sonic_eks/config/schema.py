"""The configuration's JSON Schema, and what it says about one field in words.

Error messages and the generated reference both take what is allowed from here, so that neither
repeats the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from sonic_eks.config.model import Configuration

Node = dict[str, Any]
Location = tuple[int | str, ...]

KEY = "[key]"
"""Pydantic's mark for a fault of a mapping's key, the last part of a location."""


@cache
def configuration_schema() -> Node:
    """Return the JSON Schema (draft 2020-12) with the keys of the YAML file."""
    return Configuration.model_json_schema(by_alias=True)


def node_at(location: Location) -> Node | None:
    """Return the schema of the value at `location`; None where no such key exists."""
    if location and location[-1] == KEY:
        owner = resolved(node_at(location[:-2]) or {})
        pattern = next(iter(owner.get("patternProperties", {"": {}})))
        return {"type": "string", **owner.get("propertyNames", {}), "pattern": pattern}
    node: Node | None = configuration_schema()
    for part in location:
        if node is None:
            return None
        node = _child(resolved(node), part)
    return node


def resolved(node: Node) -> Node:
    """Follow a reference and leave out that a value may be unset."""
    if "$ref" in node:
        target: Node = configuration_schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        # A field's own description and default win over those of its type.
        return {**target, **{k: v for k, v in node.items() if k != "$ref"}}
    for option in node.get("anyOf", ()):
        if option != {"type": "null"}:
            rest = {k: v for k, v in node.items() if k != "anyOf"}
            return {**resolved(option), **rest}
    return node


def _child(node: Node, part: int | str) -> Node | None:
    if isinstance(part, int):
        items: Node | None = node.get("items")
        return items
    if part in node.get("properties", {}):
        child: Node = node["properties"][part]
        return child
    patterns: Node = node.get("patternProperties", {})
    values = node.get("additionalProperties") or next(iter(patterns.values()), None)
    return values if isinstance(values, dict) else None


def allowed(node: Node) -> str:
    """Say in words what may stand where `node` rules.

    >>> allowed({"type": "integer", "minimum": 2, "maximum": 500})
    'a whole number, 2 to 500'
    """
    node = resolved(node)
    if "const" in node:
        return quoted(node["const"])
    if "enum" in node:
        return either(quoted(value) for value in node["enum"])
    match node.get("type"):
        case "integer":
            return _bounded("a whole number", node)
        case "number":
            return _bounded("a number", node)
        case "boolean":
            return "true or false"
        case "array":
            return _list(node)
        case "object":
            return _mapping(node)
        case _:
            return _text(node)


def quoted(value: object) -> str:
    """Write a literal value as YAML has it."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def either(words: Iterable[str]) -> str:
    """Join alternatives: ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _bounded(what: str, node: Node) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    return what if low is None or high is None else f"{what}, {low} to {high}"


def _list(node: Node) -> str:
    low, high = node.get("minItems", 0), node.get("maxItems")
    entries = f"a list of {low} to {high} entries" if high is not None else "a list"
    if "$ref" in node["items"]:
        return entries
    return f"{entries}, each {allowed(node['items'])}"


def _mapping(node: Node) -> str:
    if "properties" in node:
        return "a mapping of keys"
    most = f", {node['maxProperties']} entries at most" if "maxProperties" in node else ""
    values = resolved(_child(node, "") or {})
    what = "lists" if values.get("type") == "array" else "text"
    return f"a mapping of names to {what}{most}"


def _text(node: Node) -> str:
    if node.get("pattern"):
        return f"text that matches {node['pattern']}"
    return "text"
