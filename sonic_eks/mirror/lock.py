"""The lock file: the digest of every artifact, beside the configuration.

It is made by `sonic-eks mirror lock` and belongs into version control: with it, what a cluster
runs changes only by a reviewed change of this file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonic_eks.errors import SonicEksError, shown
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.reference import is_digest

_VERSION = 1


@dataclass(frozen=True)
class LockEntry:
    """What a tag stood for when it was locked.

    Attributes
    ----------
    source, tag, platforms : str, str, tuple of str
        As in the list; the entry is stale when they change there.
    digest : str
        What belongs under the tag in the private registry.
    source_digest : str
        What was under the tag upstream.
    size_bytes : int
        Size of all its blobs.
    """

    source: str
    tag: str
    platforms: tuple[str, ...]
    digest: str
    source_digest: str
    size_bytes: int


Lock = dict[str, LockEntry]
"""Entries by `Artifact.key`."""


_MAX_BYTES = 10_000_000


def lock_path(config: Path) -> Path:
    """Return where the lock of a configuration lies: ``default.lock.json`` by default.yaml."""
    return config.with_suffix(".lock.json")


def read_lock(path: Path) -> Lock | None:
    """Read a lock file; None when there is none.

    Raises
    ------
    SonicEksError
        When it cannot be read or is none (exit status 2).
    """
    try:
        document = json.loads(_text(path))
    except FileNotFoundError:
        if path.is_symlink():
            raise SonicEksError(
                f"{path}: a link to {shown(str(path.readlink()))}, which is not there; restore that"
                " file, or delete the link"
            ) from None
        return None
    except OSError as error:
        raise SonicEksError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SonicEksError(
            f"{path}: no JSON ({error}); restore it, or delete it and run sonic-eks mirror lock"
        ) from None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        given = document.get("version") if isinstance(document, dict) else document
        raise SonicEksError(f"{path}: version {shown(given)}; allowed: {_VERSION}")
    rows = document.get("artifacts")
    if not isinstance(rows, dict):
        raise SonicEksError(f"{path}: artifacts is no mapping")
    return {key: _entry(path, key, row) for key, row in rows.items()}


def _text(path: Path) -> str:
    # Neither a pipe, which would be waited for, nor a device, which has no end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SonicEksError(f"{path}: no file; restore it, or delete it")
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise SonicEksError(f"{path}: larger than {_MAX_BYTES} bytes; restore it, or delete it")
    return raw.decode("utf-8")


def write_lock(path: Path, lock: Lock) -> bool:
    """Write a lock file, whole or not at all; tell whether it changed anything."""
    document = {
        "version": _VERSION,
        "artifacts": {
            key: {_FIELDS[name]: value for name, value in dataclasses.asdict(entry).items()}
            for key, entry in sorted(lock.items())
        },
    }
    text = json.dumps(document, indent=2) + "\n"
    try:
        if path.exists() and path.read_text("utf-8") == text:
            return False
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_text(text, "utf-8")
        scratch.replace(path)
    except OSError as error:
        raise SonicEksError(f"{path}: cannot be written: {error.strerror or error}") from None
    return True


def locked(artifacts: Iterable[Artifact], lock: Lock | None) -> tuple[Artifact, ...]:
    """Return the artifacts with their digests.

    Artifacts without a source stay as they are: there is nothing to lock.

    Raises
    ------
    SonicEksError
        When the lock does not hold an artifact as the list has it (exit status 2).
    """
    if lock is None:
        return tuple(artifacts)
    return tuple(_locked(artifact, lock) for artifact in artifacts)


_FIELDS = {
    "source": "source",
    "tag": "tag",
    "platforms": "platforms",
    "digest": "digest",
    "source_digest": "sourceDigest",
    "size_bytes": "sizeBytes",
}


def _entry(path: Path, key: str, row: Any) -> LockEntry:
    try:
        values = {name: row[alias] for name, alias in _FIELDS.items()}
        entry = LockEntry(**{**values, "platforms": tuple(values["platforms"])})
        size = entry.size_bytes
        texts = (entry.source, entry.tag, *entry.platforms)
        if not isinstance(values["platforms"], list) or type(size) is not int or size < 0:
            raise TypeError
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
    except (KeyError, TypeError):
        raise SonicEksError(
            f"{path}: {shown(key)} needs {', '.join(_FIELDS.values())}; delete the file and run"
            " sonic-eks mirror lock"
        ) from None
    for digest in (entry.digest, entry.source_digest):
        if not is_digest(digest):
            raise SonicEksError(f"{path}: {key}: {shown(digest)} is no SHA-256 digest")
    return entry


def _locked(artifact: Artifact, lock: Lock) -> Artifact:
    entry = lock.get(artifact.key)
    if entry is None:
        if artifact.source is None:
            return artifact
        raise SonicEksError(
            f"the lock beside the configuration has no {artifact.key}; run sonic-eks mirror lock"
        )
    given = (artifact.source, artifact.tag, artifact.platforms)
    then = (entry.source, entry.tag, entry.platforms)
    if artifact.source is not None and given != then:
        raise SonicEksError(
            f"the lock has {artifact.key} as {_shown(*then)}, the configuration as"
            f" {_shown(*given)}; run sonic-eks mirror lock"
        )
    return dataclasses.replace(artifact, digest=entry.digest, source_digest=entry.source_digest)


def _shown(source: str | None, tag: str, platforms: tuple[str, ...]) -> str:
    return f"{source}:{tag} ({', '.join(platforms) or 'all platforms'})"
