"""Snapshots of every template and chart of config/default.yaml, one file each.

They show a reviewer what a change does to the deployment; what must hold is asserted elsewhere.
``pytest tests/snapshot --snapshot-update`` rewrites them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from sonic_eks.k8s.render import RenderedChart
from sonic_eks.manifests import to_yaml
from sonic_eks.names import STACKS
from sonic_eks.stacks.deployment import Stacks

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


@pytest.fixture(scope="module")
def written(stacks: Stacks) -> dict[str, Any]:
    """Templates by stack name, as the app writes them."""
    assembly = stacks.network.node.root.synth()  # type: ignore[attr-defined]
    return {stack.stack_name: stack.template for stack in assembly.stacks}


def test_templates(written: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    for stack in STACKS:
        assert written[f"sonic-{stack}"] == snapshot(extension_class=JsonFile, name=stack)


def test_charts(default_charts: tuple[RenderedChart, ...], snapshot: SnapshotAssertion) -> None:
    for chart in default_charts:
        assert chart.manifests == snapshot(extension_class=YamlFile, name=chart.name)


def test_hashes_are_masked_and_nothing_else() -> None:
    assert masked(f"s3://{'0f' * 32}.zip") == "s3://<hash>.zip"
    assert masked("0f" * 31) == "0f" * 31
