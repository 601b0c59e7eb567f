"""The JSON Schema and the generated reference say what the loader does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sonic_eks.config import Configuration
from sonic_eks.config.schema import allowed, configuration_schema
from sonic_eks.reference import configuration_reference
from tests.configuration import with_values
from tests.synth import ROOT

REFERENCE = ROOT / "docs" / "configuration.md"


def described(schema: dict[str, Any], node: dict[str, Any]) -> bool:
    target = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else {}
    return bool(node.get("description") or target.get("description"))


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for owner, node in [("", schema), *schema["$defs"].items()]:
        for key, value in node["properties"].items():
            yield f"{owner}.{key}", value


@cache
def validator() -> jsonschema.Draft202012Validator:
    """Return what validates documents; `jsonschema.validate` checks the schema each time, too."""
    return jsonschema.Draft202012Validator(configuration_schema())


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(configuration_schema())


def test_every_property_is_described() -> None:
    schema = configuration_schema()
    found = dict(properties(schema))
    assert len(found) > 80
    assert [key for key, node in found.items() if not described(schema, node)] == []


def test_keys_are_camel_case() -> None:
    for key, _ in properties(configuration_schema()):
        name = key.rsplit(".", 1)[-1]
        assert name.isalnum(), key
        assert name[0].islower(), key


def test_every_mapping_refuses_keys_that_it_does_not_know() -> None:
    schema = configuration_schema()
    for node in [schema, *schema["$defs"].values()]:
        assert node["additionalProperties"] is False


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.name)
def test_the_schema_accepts_the_files_of_the_project(path: Path) -> None:
    validator().validate(yaml.safe_load(path.read_text()))


def test_the_schema_accepts_every_default_written_out(default_config: Configuration) -> None:
    validator().validate(default_config.model_dump(by_alias=True, mode="json"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("wieghts", {}),
        ("drain.maxStreamSeconds", 3601),
        ("drain.max_stream_seconds", 600),
        ("slo.percentile", 96),
        ("cluster.version", 1.35),
        ("deployment.name", "A"),
        ("deployment.account", "12"),
        ("network.zones", ["us-east-1a"]),
        ("models", []),
    ],
)
def test_the_schema_refuses(path: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(with_values((path, value)))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"type": "integer", "minimum": 2, "maximum": 5}, "a whole number, 2 to 5"),
        ({"type": "integer"}, "a whole number"),
        ({"type": "number", "minimum": 0.1, "maximum": 1.0}, "a number, 0.1 to 1.0"),
        ({"type": "boolean"}, "true or false"),
        ({"enum": [1, 2, 3]}, "1, 2 or 3"),
        ({"enum": ["a", "b"]}, '"a" or "b"'),
        ({"const": "1.35"}, '"1.35"'),
        ({"type": "string"}, "text"),
        ({"type": "string", "pattern": "^a$"}, "text that matches ^a$"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None}, "true or false"),
        ({"type": "array", "items": {"type": "string"}}, "a list, each text"),
        ({"$ref": "#/$defs/Slo"}, "a mapping of keys"),
        (
            {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
            "a mapping of names to lists",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "a mapping of names to text",
        ),
    ],
)
def test_words(node: dict[str, Any], words: str) -> None:
    assert allowed(node) == words


def test_the_committed_reference_is_current() -> None:
    assert REFERENCE.read_text() == configuration_reference(), "run `make docs`"


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "4242"])
def test_the_reference_does_not_depend_on_the_hash_seed(seed: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "sonic_eks.reference"],
        cwd=ROOT,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "LC_ALL": "C"},
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout.decode()
    assert printed == REFERENCE.read_text()


def test_the_reference_names_every_key() -> None:
    text = REFERENCE.read_text()
    schema = configuration_schema()
    for owner, node in [("", schema), *schema["$defs"].items()]:
        for key in node["properties"]:
            listed = f"\n| `{key}` | " in text
            headed = any(
                line.startswith("## ") and line.removesuffix("[]").endswith(key)
                for line in text.splitlines()
            )
            assert listed or headed, f"{owner}.{key}"


def test_the_tables_are_whole() -> None:
    rows = [line for line in REFERENCE.read_text().splitlines() if line.startswith("|")]
    assert len(rows) > 80
    for row in rows:
        assert row.replace("\\|", "").count("|") == 5, row
        assert all(cell.strip() for cell in row.replace("\\|", "").strip("|").split("|")), row


def test_no_rule_is_without_words() -> None:
    bullets = [line for line in REFERENCE.read_text().splitlines() if line.startswith("-")]
    assert len(bullets) > 30
    assert all(len(line) > 20 for line in bullets)


@pytest.mark.parametrize(
    "row",
    [
        "| `maxStreamSeconds` | a whole number, 0 to 3600 | `600` | Longest life of",
        '| `egress` | "system" or "none" | `"system"` | ',
        "| `zones` | a list of 2 to 3 entries, each text | **required** | ",
        "| `targetUtilization` | a number, 0.1 to 1.0 | `1.0` | ",
        "| `certificateArn` | text | unset | ",
    ],
)
def test_rows(row: str) -> None:
    assert f"\n{row}" in REFERENCE.read_text()


def test_the_schema_survives_json() -> None:
    assert json.loads(json.dumps(configuration_schema())) == configuration_schema()
