"""Files that are written at the end of a measurement: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from sonic_eks.errors import SonicEksError


def writable(option: str, path: Path) -> None:
    """Refuse a file that could not be written after the measurement."""
    try:
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()
        if not _replaced(path):
            return
        beside = _beside(path)
        beside.open("xb").close()
        beside.unlink()
    except (OSError, ValueError) as error:
        raise _fault(option, path, error) from None


def distinct(paths: dict[str, Path | None]) -> None:
    """Refuse options that name the same file, of which the last written would remain."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None or (path.exists() and not path.is_file()):
            continue  # such as /dev/stdout
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise SonicEksError(f"{other} and {option}: got the same file {path}; give two")


def write(option: str, path: Path, content: str | bytes) -> None:
    """Write a file: whoever reads it meanwhile, or after a crash, finds the old or the new one."""
    data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
    try:
        if not _replaced(path):
            path.write_bytes(data)
            return
        beside = _beside(path)
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path.resolve())
        finally:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()
    except (OSError, ValueError) as error:
        raise _fault(option, path, error) from None


def _replaced(path: Path) -> bool:
    """Whether it is a file or none yet; a pipe or a terminal is written to."""
    return path.is_file() or not path.exists()


def _beside(path: Path) -> Path:
    return path.resolve().parent / f".sonic-eks-{secrets.token_hex(8)}"


def _fault(option: str, path: Path, error: Exception) -> SonicEksError:
    reason = getattr(error, "strerror", None) or str(error)
    return SonicEksError(f"{option} {path}: cannot be written: {reason}")
