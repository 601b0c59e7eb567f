"""The load test as one zip archive that a plain Python runs, small enough for a ConfigMap."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

# What of each package a load needs. Both libraries are pure Python without their accelerators;
# servers, the blocking clients and what needs pydantic or matplotlib stay here.
_PARTS = {
    "sonic_eks": ("__init__.py", "errors.py", "bench"),
    "websockets": (
        *("__init__.py", "asyncio", "client.py", "datastructures.py", "exceptions.py"),
        *("extensions", "frames.py", "headers.py", "http11.py", "imports.py", "protocol.py"),
        *("proxy.py", "streams.py", "typing.py", "uri.py", "utils.py", "version.py"),
    ),
    "h11": ("",),
}
_LEFT_OUT = frozenset(
    {
        *("sonic_eks/bench/profile.py", "sonic_eks/bench/plots.py", "sonic_eks/bench/report.py"),
        *("sonic_eks/bench/table.py", "sonic_eks/bench/progress.py", "sonic_eks/bench/archive.py"),
        *("sonic_eks/bench/stored.py", "sonic_eks/bench/outputs.py"),
        *("websockets/asyncio/server.py", "websockets/asyncio/router.py"),
    }
)
_NO_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip can hold: an archive's bytes then depend on its files alone."""


def archive() -> bytes:
    """Return the archive; the same bytes for the same code."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for name, text in sorted(_files()):
            zipped.writestr(zipfile.ZipInfo(name, _NO_TIME), text, zipfile.ZIP_DEFLATED, 9)
    return data.getvalue()


def _files() -> Iterator[tuple[str, bytes]]:
    for package, parts in _PARTS.items():
        root = files(package)
        for part in parts:
            yield from _below(root / part if part else root, f"{package}/{part}".rstrip("/"))


def _below(entry: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if entry.is_dir():
        for child in entry.iterdir():
            if child.is_dir() or child.name.endswith(".py"):
                yield from _below(child, f"{name}/{child.name}")
    elif name not in _LEFT_OUT:
        yield name, entry.read_bytes()
