"""What is live in the pod: by its sockets, or by the server's own load metric."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from sidecar.stream_gate.sockets import Key, read_netlink, read_proc

KEEPALIVE_BYTES = 64
"""Payload in bytes that a quiet connection may move within the idle time (pings and pongs)."""

_LOAD_LIMIT_BYTES = 8 * 1024 * 1024
_LOAD_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class State:
    """What one look at the pod found."""

    time: float
    """Monotonic seconds."""
    source: str
    """netlink, proc, metrics, or none when nothing could be read."""
    connections: frozenset[Key] | None = None
    """Open connections; None: unknown, or not what this gate watches."""
    active: int | None = None
    """Streams (or generations) that would be lost if the server stopped now; None: unknown."""
    quiet: bool = False
    """Nothing has been active for the idle time; False when unknown."""


class Watch(Protocol):
    """Something that can be looked at."""

    async def look(self, now: float) -> State:
        """Read the state at monotonic second `now`; never raises for a fault of what it reads."""


class SocketWatch:
    """Watches the pod's connections to the ports its server listens on."""

    def __init__(
        self, ports: Sequence[int], idle_seconds: float, own_ports: Collection[int] = ()
    ) -> None:
        self._ports, self._idle = tuple(ports), idle_seconds
        self._own_ports = own_ports  # of the gate's connections to the server
        self._history: deque[tuple[float, Mapping[Key, int]]] = deque()
        self._source = ""

    async def look(self, now: float) -> State:
        """See `Watch`."""
        source, now_bytes = self._read()
        if source != self._source:
            self._history.clear()  # keys of two sources cannot be compared
            self._source = source
        if now_bytes is None:
            return State(now, source)
        self._history.append((now, now_bytes))
        # The newest reading at or before the start of the window is what to compare with.
        while len(self._history) > 1 and self._history[1][0] <= now - self._idle:
            self._history.popleft()
        begin, then_bytes = self._history[0]
        if begin > now - self._idle:
            then_bytes = {}  # watched for less than the window: all payload may lie in it
        if source == "proc":
            active = len(now_bytes)
        else:
            active = sum(
                total - then_bytes.get(key, 0) > KEEPALIVE_BYTES for key, total in now_bytes.items()
            )
        return State(now, source, frozenset(now_bytes), active, active == 0)

    def _read(self) -> tuple[str, Mapping[Key, int] | None]:
        # An interrupted dump is incomplete; a few more tries nearly always give a whole one.
        for _ in range(4):
            try:
                return "netlink", read_netlink(self._ports, self._own_ports)
            except InterruptedError:
                continue
            except OSError:
                break
        try:
            return "proc", read_proc(self._ports, self._own_ports)
        except OSError:
            return "none", None


class LoadWatch:
    """Watches a load metric that the server publishes in Prometheus' text format."""

    def __init__(self, url: str, metric: str, idle_seconds: float) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._path = parts.path or "/metrics"
        self._metric, self._idle = metric, idle_seconds
        self._busy_at: float | None = None

    async def look(self, now: float) -> State:
        """See `Watch`."""
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT_SECONDS):
                load = parse_load(await self._fetch(), self._metric)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            load = None
        if load is None or load > 0 or self._busy_at is None:
            self._busy_at = now
        quiet = load is not None and now - self._busy_at >= self._idle
        if load is None:
            return State(now, "none")
        return State(now, "metrics", None, math.ceil(load), quiet)

    async def _fetch(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            host = f"[{self._host}]" if ":" in self._host else self._host
            # HTTP/1.0: the answer ends with the connection and is not chunked.
            writer.write(f"GET {self._path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            data = b""
            while block := await reader.read(1 << 16):
                data += block
                if len(data) > _LOAD_LIMIT_BYTES:
                    raise ValueError("answer too long")
        finally:
            writer.transport.abort()
        head, found, body = data.partition(b"\r\n\r\n")
        if not found or head.split(None, 2)[1:2] != [b"200"]:
            raise ValueError("answer is not 200")
        return body.decode(errors="replace")


def parse_load(text: str, metric: str) -> float | None:
    """Sum of the samples of `metric` in Prometheus' text format; None without a usable one."""
    labels = r'(?:\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?'
    sample = re.compile(rf"{re.escape(metric)}{labels}[ \t]+([^ \t]+)(?:[ \t]+-?\d+)?[ \t]*")
    values = []
    for line in text.splitlines():
        if line.startswith(metric) and (match := sample.fullmatch(line)):
            with contextlib.suppress(ValueError):
                values.append(float(match[1]))
    usable = [value for value in values if math.isfinite(value) and value >= 0]
    # One unusable sample makes the sum a guess that could end a drain early.
    return sum(usable) if usable and len(usable) == len(values) else None
