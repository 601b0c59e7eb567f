"""The gate as it gets into a pod: a ConfigMap on an image that has Python and nothing else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted((ROOT / "sidecar" / "stream_gate").glob("*.py"))


def test_needs_the_standard_library_only() -> None:
    imported = set()
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add(node.module or "")
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {name for name in foreign if name.startswith("sidecar.stream_gate")}


def test_fits_a_config_map() -> None:
    # A ConfigMap holds 1 MiB, an applied one a quarter of that in its annotation; its keys are
    # alphanumeric, -, _ and . (Kubernetes documentation, "ConfigMaps").
    assert sum(file.stat().st_size for file in FILES) < 200 * 1024
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", file.name) for file in FILES)


@pytest.mark.slow
def test_runs_from_a_mounted_config_map(tmp_path: Path) -> None:
    """A mounted ConfigMap is flat and its files are links through ..data."""
    mount = tmp_path / "sidecar" / "stream_gate"
    data = mount / "..2026_01_01"
    data.mkdir(parents=True)
    (mount / "..data").symlink_to(data.name)
    for file in FILES:
        (data / file.name).write_text(file.read_text())
        (mount / file.name).symlink_to(f"..data/{file.name}")
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-m", "sidecar.stream_gate", "--help"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--watch-port" in done.stdout
    assert not list(mount.glob("__pycache__"))
