"""The code that runs in pods: standard library only, brought there by ConfigMaps."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError


@cache
def _read(package: str) -> tuple[tuple[str, str], ...]:
    folder = files("sonic_eks") / "sidecar" / package
    there = folder.iterdir() if folder.is_dir() else ()
    found = [entry for entry in there if entry.name.endswith(".py")]
    if not found:
        raise SonicEksError(
            f"no code of {package} in {folder}: the installation is not complete",
            exit_status=PROBLEM_FOUND,
        )
    return tuple(sorted((entry.name, entry.read_text(encoding="utf-8")) for entry in found))


def sidecar_code(package: str) -> dict[str, str]:
    """Return the files of a package below ``sidecar/``, text by file name.

    Parameters
    ----------
    package : str
        Name of the folder, such as ``stream_gate``.

    Raises
    ------
    SonicEksError
        When the folder has no code (exit status 1).
    """
    return dict(_read(package))
