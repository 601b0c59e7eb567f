"""Code as it gets into a pod: a ConfigMap on an image that has Python and nothing else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sonic_eks.errors import SonicEksError
from sonic_eks.sidecar_code import sidecar_code
from tests.synth import ROOT

# Package, and an option that its command line has.
PACKAGES = {"stream_gate": "--watch-port", "stand_in": "--metrics-port"}


def files(package: str) -> list[Path]:
    return sorted((ROOT / "sidecar" / package).glob("*.py"))


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_needs_the_standard_library_only(package: str) -> None:
    imported = set()
    for file in files(package):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add(node.module or "")
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {name for name in foreign if name.startswith(f"sidecar.{package}")}


def test_fits_a_config_map(package: str) -> None:
    # A ConfigMap holds 1 MiB, an applied one a quarter of that in its annotation; its keys are
    # alphanumeric, -, _ and . (Kubernetes documentation, "ConfigMaps").
    assert sum(file.stat().st_size for file in files(package)) < 200 * 1024
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", file.name) for file in files(package))


def test_what_is_rendered_is_what_lies_there(package: str) -> None:
    assert sidecar_code(package) == {file.name: file.read_text() for file in files(package)}


def test_an_installation_without_the_code_says_so() -> None:
    with pytest.raises(SonicEksError, match="no code of nothing"):
        sidecar_code("nothing")


@pytest.mark.slow
def test_runs_from_a_mounted_config_map(package: str, tmp_path: Path) -> None:
    """A mounted ConfigMap is flat and its files are links through ..data."""
    mount = tmp_path / "sidecar" / package
    data = mount / "..2026_01_01"
    data.mkdir(parents=True)
    (mount / "..data").symlink_to(data.name)
    for name, text in sidecar_code(package).items():
        (data / name).write_text(text)
        (mount / name).symlink_to(f"..data/{name}")
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-m", f"sidecar.{package}", "--help"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert PACKAGES[package] in done.stdout
    assert not list(mount.glob("__pycache__"))
