"""Processes and ports on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

START_SECONDS = 30.0
"""Longest start of a process; a busy machine takes seconds for what takes tenths."""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return ports that nobody uses."""
    with contextlib.ExitStack() as stack:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sockets = [stack.enter_context(socket.socket(family)) for _ in range(count)]
        for one in sockets:
            one.bind((host, 0))
        return [one.getsockname()[1] for one in sockets]


def python(module: str, *arguments: object) -> list[str]:
    """Return the command line of a module of this repository."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def require_linux() -> None:
    """Skip a test that reads the kernel's sockets on a system that has no such interface."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: netlink and /proc")


class Process:
    """A child process whose output is kept line by line."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.lines: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it."""
        self._process = await asyncio.create_subprocess_exec(
            *self.command,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing if it has ended."""
        if self.running:
            # Not Popen's send_signal: it may reap the process, and its status would be lost.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def wait(self, seconds: float | None = None) -> int:
        """Wait for its end and return its status; raises TimeoutError."""
        assert self._process is not None
        async with asyncio.timeout(seconds):
            status = await self._process.wait()
            if self._reading is not None:
                await self._reading
        return status

    async def stop(self) -> None:
        """End it at once, if it has not ended."""
        if self.running:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            await self.wait()


async def until(
    check: Callable[[], Awaitable[bool]], what: str, seconds: float = START_SECONDS
) -> None:
    """Wait until `check` is true; raises TimeoutError that names `what`."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if await check():
                return
        if time.monotonic() > end:
            raise TimeoutError(f"{what} took more than {seconds:g} s")
        await asyncio.sleep(0.02)


async def http_get(
    port: int, path: str, host: str = "127.0.0.1", seconds: float | None = 5.0
) -> tuple[int, str]:
    """Status and body of a GET; raises OSError when there is no answer."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(
                    f"GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n".encode()
                )
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.read()
            finally:
                writer.transport.abort()
    except (asyncio.IncompleteReadError, TimeoutError) as error:
        raise ConnectionResetError("no answer") from error
    return int(head.split()[1]), body.decode()


def metric(text: str, name: str) -> float | None:
    """Value of a metric without labels in Prometheus' text format."""
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    return None
