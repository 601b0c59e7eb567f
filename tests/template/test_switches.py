"""Every switch has the value that a document or a decision asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from tests.cloudformation import Resources
from tests.synth import ROOT

EXPECTED: dict[str, dict[str, bool | str]] = yaml.safe_load(
    (ROOT / "tests/expected/switches.yaml").read_text()
)


def switches(value: Any, path: str = "") -> Iterator[tuple[str, bool | str]]:
    """Give place and value of every switch below a value."""
    if isinstance(value, bool):
        yield path, value
    elif isinstance(value, list):
        for item in value:
            yield from switches(item, f"{path}[]")
    elif isinstance(value, dict):
        if set(value) == {"Key", "Value"} and value["Value"] in ("true", "false"):
            yield f"{path.removesuffix('[]')}{{{value['Key']}}}", value["Value"]
        for key, item in value.items():
            inner = json.loads(item) if key == "Values" and isinstance(item, str) else item
            yield from switches(inner, f"{path}.{key}".removeprefix("."))


@pytest.mark.parametrize("kind", sorted(EXPECTED))
def test_switches(templates: dict[str, Template], kind: str) -> None:
    found: dict[str, set[bool | str]] = {}
    for template in templates.values():
        for properties in Resources(template).of(kind):
            for path, value in switches(properties):
                found.setdefault(path, set()).add(value)
    expected = {path: {value} for path, value in EXPECTED[kind].items()}
    assert {path: values for path, values in found.items() if path in expected} == expected
