"""Configuration files for tests: a valid one, changed in places."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.errors import BAD_INPUT, ConfigurationError

VALID: dict[str, Any] = {
    "deployment": {"name": "sonic", "region": "us-east-1"},
    "network": {"zones": ["us-east-1a", "us-east-1b"]},
}
VALID_TEXT = """\
deployment:
  name: sonic
  region: us-east-1
network:
  zones: [us-east-1a, us-east-1b]
"""


def with_values(*changes: tuple[str, Any]) -> dict[str, Any]:
    """Return the valid configuration with the values at dotted camelCase paths replaced."""
    document = copy.deepcopy(VALID)
    for path, value in changes:
        *parents, last = path.split(".")
        section: Any = document
        for part in parents:
            if isinstance(section, list):
                section = section[int(part)]
            else:
                section = section.setdefault(part, {})
        section[last] = value
    return document


def load_text(text: str | bytes, folder: Path) -> Configuration:
    """Load a file with exactly these contents."""
    path = folder / "deployment.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return load_configuration(path)


def load(document: Any, folder: Path) -> Configuration:
    """Load a document through YAML, as a user's file is."""
    return load_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), folder)


def faults_of(text: str | bytes, folder: Path) -> list[str]:
    """Load a file that must be refused; return its faults without the file's name."""
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, folder)
    assert caught.value.exit_status == BAD_INPUT == 2
    assert str(caught.value) == caught.value.faults[0]
    for fault in caught.value.faults:
        assert fault.isprintable(), "one line, nothing that steers a terminal"
        assert "Traceback" not in fault
        assert "pydantic" not in fault
    source = f"{folder / 'deployment.yaml'}: "
    assert all(fault.startswith(source) for fault in caught.value.faults)
    return [fault.removeprefix(source) for fault in caught.value.faults]


def fault_of(document: Any, folder: Path) -> str:
    """Load a document that must be refused for one reason; return the fault."""
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    (fault,) = faults_of(text, folder)
    return fault


def value_at(config: Configuration, path: str) -> Any:
    """Return the value at a dotted camelCase path."""
    values: Any = config.model_dump(by_alias=True)
    for part in path.split("."):
        values = values[int(part)] if isinstance(values, list | tuple) else values[part]
    return values
