"""Fixtures of the manifest tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.manifests.deployments import EVERY
from tests.manifests.promql import Series, document, write

Evaluate = Callable[[str, Sequence[Series], Mapping[str, float | None]], None]


@pytest.fixture(params=EVERY)
def deployment(request: pytest.FixtureRequest) -> str:
    """Name of each deployment in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def program() -> Callable[[str, str], str]:
    """Path of a program that pip does not install; without it the test is left out."""

    def find(name: str, package: str) -> str:
        path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        if path is not None:
            return path
        reason = f"{name} is missing (Debian package {package})"
        if os.environ.get("SONIC_EKS_REQUIRE_ALL") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return find


@pytest.fixture
def evaluate(program: Callable[[str, str], str], tmp_path: Path) -> Evaluate:
    """Check a query's values at times by Prometheus itself; None stands for no value at all."""
    promtool = program("promtool", "prometheus")

    def check(
        expression: str, data: Sequence[Series], expected: Mapping[str, float | None]
    ) -> None:
        path = write(tmp_path / "tests.yaml", document(expression, data, expected))
        done = subprocess.run(
            [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return check
