"""The same configuration gives the same manifests, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.manifests.deployments import charts, configuration
from tests.synth import ROOT, charts_of

PROGRAM = """
import json, sys
from dataclasses import asdict
from tests.manifests.deployments import charts
json.dump([asdict(c) for c in charts("two-models")], sys.stdout)
"""


def as_text(name: str) -> str:
    return json.dumps([asdict(c) for c in charts(name)])


def test_rendering_twice_is_the_same(deployment: str) -> None:
    again = charts_of(configuration(deployment))
    assert json.dumps([asdict(c) for c in again]) == as_text(deployment)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "4242"])
def test_another_process_folder_and_hash_seed_is_the_same(seed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TZ": "Asia/Seoul"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == as_text("two-models")
