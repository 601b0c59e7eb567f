"""Files that are written at the end of a measurement: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sonic_eks.errors import SonicEksError

_STREAMS = {1: "standard output", 2: "standard error"}


def writable(option: str, path: Path) -> None:
    """Refuse a file that could not be written after the measurement; nothing of it changes."""
    try:
        found = _found(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            _check_special(path, found)
            return
        if found is not None:
            _refuse_stream(option, path, found)
            path.open("ab").close()
        with _beside(path.resolve(), None):
            pass
    except (OSError, ValueError) as error:
        raise _fault(option, path, error) from None


def is_special(path: Path) -> bool:
    """Whether it is there and no file: a pipe or a terminal, which may keep its writer waiting."""
    try:
        found = _found(path)
    except (OSError, ValueError):
        return False
    return found is not None and not stat.S_ISREG(found.st_mode)


def distinct(paths: dict[str, Path | None]) -> None:
    """Refuse options that name the same file, of which the last written would remain."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None or is_special(path):
            continue  # such as /dev/stdout
        try:
            _found(path)  # a loop of links has no end to be compared
            real = path.resolve()
        except (OSError, ValueError):
            continue  # what opens it says what is wrong with it
        other = seen.setdefault(real, option)
        if other != option:
            raise SonicEksError(f"{other} and {option}: got the same file {path}; give two")


def write(option: str, path: Path, content: str | bytes) -> None:
    """Write a file: whoever reads it meanwhile, or after a crash, finds the old or the new one.

    A file that was there keeps its mode, and a link to it stays a link.
    """
    data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
    try:
        found = _found(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            path.write_bytes(data)
            return
        real = path.resolve()
        with _beside(real, found) as (beside, file):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            beside.replace(real)
    except (OSError, ValueError) as error:
        raise _fault(option, path, error) from None


def _found(path: Path) -> os.stat_result | None:
    """Return what a path leads to, or nothing: a link to nothing yet is as good as none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _check_special(path: Path, found: os.stat_result) -> None:
    """Check without opening it: a reader of a pipe would take that for the end."""
    for is_kind, number in ((stat.S_ISDIR, errno.EISDIR), (stat.S_ISSOCK, errno.ENXIO)):
        if is_kind(found.st_mode):
            raise OSError(number, os.strerror(number))
    if not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def _refuse_stream(option: str, path: Path, found: os.stat_result) -> None:
    """Refuse the file that a shell sends a stream to: the new one would replace what is in it."""
    for number, name in _STREAMS.items():
        with contextlib.suppress(OSError):  # a closed one is no file
            if os.path.samestat(os.fstat(number), found):
                raise SonicEksError(f"{option} {path}: {name} goes there; give another file")


@contextlib.contextmanager
def _beside(real: Path, old: os.stat_result | None) -> Iterator[tuple[Path, BinaryIO]]:
    """Make a file in the folder of another, which takes its place or goes; its mode is `old`'s."""
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    path = real.parent / f".sonic-eks-{secrets.token_hex(8)}"
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(number, "wb") as file:
            if old is not None:
                with contextlib.suppress(PermissionError):  # root alone may give a file away
                    os.fchown(number, old.st_uid, old.st_gid)
                os.fchmod(number, mode)  # without what the umask takes
            yield path, file
    finally:
        with contextlib.suppress(OSError):  # it took the place, or none was made
            path.unlink()


def _fault(option: str, path: Path, error: Exception) -> SonicEksError:
    reason = getattr(error, "strerror", None) or str(error)
    return SonicEksError(f"{option} {path}: cannot be written: {reason}")
