"""Snapshots of every template and chart of two configurations, one file each.

They show a reviewer what a change does to the deployment; what must hold is asserted elsewhere.
``pytest tests/snapshot --snapshot-update`` rewrites them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from sonic_eks.config import load_configuration
from sonic_eks.k8s.render import RenderedChart
from sonic_eks.manifests import to_yaml
from sonic_eks.names import STACKS
from tests.synth import ROOT, charts_of, stacks_of

# Asset hashes depend on the CDK's own bundled code, not on this project.
_ASSET_HASH = re.compile(r"[0-9a-f]{64}")


def masked(text: str) -> str:
    """Replace asset hashes by a constant."""
    return _ASSET_HASH.sub("<hash>", text)


class JsonFile(SingleFileSnapshotExtension):
    """One JSON file a snapshot."""

    file_extension = "json"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> str:
        return masked(json.dumps(data, indent=1, sort_keys=True)) + "\n"


class YamlFile(SingleFileSnapshotExtension):
    """One YAML file a snapshot."""

    file_extension = "yaml"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> str:
        return masked(to_yaml(data))


@dataclass(frozen=True)
class Rendered:
    """What a configuration comes to: templates by stack, and charts."""

    templates: dict[str, Any]
    charts: tuple[RenderedChart, ...]


@pytest.fixture(
    scope="module", params=["default", pytest.param("production", marks=pytest.mark.synth)]
)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Templates as the app writes them, and charts, of a file in config/."""
    config = load_configuration(ROOT / "config" / f"{request.param}.yaml")
    assembly = stacks_of(config).network.node.root.synth()  # type: ignore[attr-defined]
    prefix = f"{config.deployment.name}-"
    templates = {s.stack_name.removeprefix(prefix): s.template for s in assembly.stacks}
    return Rendered(templates, charts_of(config))


def test_templates(rendered: Rendered, snapshot: SnapshotAssertion) -> None:
    assert set(rendered.templates) == set(STACKS)
    for stack in STACKS:
        assert rendered.templates[stack] == snapshot(extension_class=JsonFile, name=stack)


def test_charts(rendered: Rendered, snapshot: SnapshotAssertion) -> None:
    for chart in rendered.charts:
        assert chart.manifests == snapshot(extension_class=YamlFile, name=chart.name)


def test_hashes_are_masked_and_nothing_else() -> None:
    assert masked(f"s3://{'0f' * 32}.zip") == "s3://<hash>.zip"
    assert masked("0f" * 31) == "0f" * 31
