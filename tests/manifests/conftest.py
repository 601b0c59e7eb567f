"""Fixtures of the manifest tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from tests.manifests.deployments import DOCUMENTS


@pytest.fixture(params=sorted(DOCUMENTS))
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
