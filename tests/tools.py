"""Programs that pip does not install: found, or the test is skipped with one line."""

from __future__ import annotations

import os
import shutil

import pytest


def require_tool(name: str, package: str | None = None) -> str:
    """Return the path of a program.

    Without it the test is skipped, or fails where SONIC_EKS_REQUIRE_ALL is 1.

    Parameters
    ----------
    name : str
        The program.
    package : str, optional
        Debian's package, where its name differs.
    """
    path = shutil.which(name)
    if path is not None:
        return path
    message = f"{name} is not installed (Debian: apt-get install {package or name})"
    if os.environ.get("SONIC_EKS_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
