"""The copy: complete or not at all, and never over what is there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SeedError(Exception):
    """The license cannot be put in its place; the message is one line without its text."""


def seed(source: Path, target: Path) -> bool:
    """Copy `source` to `target` unless something has that name.

    The text goes into a file beside the target first and is linked to its name when it is on the
    disk: whoever looks sees all of it or none, also after a kill. A link to a name that is taken
    fails, whoever took it.

    Parameters
    ----------
    source : Path
        The file to copy; it must not be empty.
    target : Path
        Where it goes; missing folders are made.

    Returns
    -------
    bool
        Whether it was copied; False where something was there, whatever it is.

    Raises
    ------
    SeedError
        When the source cannot be read or the target not be written.
    """
    if os.path.lexists(target):
        return False
    license_text = _read(source)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent) as folder:
            return _put(license_text, target, folder)
    except OSError as error:
        raise SeedError(f"{target} cannot be written: {error.strerror or error}") from None


def _read(source: Path) -> bytes:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise SeedError(f"{source} cannot be read: {error.strerror or error}") from None
    if not content:
        raise SeedError(f"{source} is empty")
    return content


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Keep other runs out of a folder; the kernel lets go of the lock when a run is killed."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)


def _put(content: bytes, target: Path, folder: int) -> bool:
    # One name for all runs: what a killed one left is written over by the next.
    part = target.with_name(f".{target.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o660)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.link(part, target)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
        os.fsync(folder)
    return True
