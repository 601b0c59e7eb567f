"""kubectl as a child process: without the API key, never for ever, never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from sonic_eks.bench.inputs import environment_without_key
from sonic_eks.bench.record import clipped
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown

_LONGEST_SECONDS = 30.0
_READ_BYTES = 4096
_KEPT_BYTES = 65536
_MOST_PORT = 65535

_BREAKS_SECONDS = 0.5
"""Longest time from the end of a forwarded connection to that of a kubectl which ends for it."""

# What `kubectl port-forward` prints once its listener is there. On ::1 it listens only when told.
_FORWARDING = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+) ->")


@dataclass(frozen=True)
class Ended:
    """How a kubectl ended."""

    command: str
    status: int
    output: bytes
    said: bytes
    """What it printed on standard error."""

    @property
    def reason(self) -> str:
        """The last line that it said."""
        return _last_line(self.said)

    @property
    def problem(self) -> SonicEksError:
        """The error that this is."""
        return _problem(self.command, self.reason)


@dataclass(frozen=True)
class Kubectl:
    """kubectl with whatever it is configured to talk to.

    Attributes
    ----------
    namespace : str
        Namespace of every command.
    key : str
        API key of the service, which kubectl and what it calls have no use for.
    """

    namespace: str
    key: str = field(default="", repr=False)

    async def run(self, *arguments: str) -> Ended:
        """Run a command to its end; raises SonicEksError when there is no answer."""
        process = await self._start(*arguments)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                output, said = await process.communicate()
        except TimeoutError:
            raise _problem(arguments[0], f"no answer within {_LONGEST_SECONDS:g} s") from None
        finally:
            await _end(process)
        return Ended(arguments[0], process.returncode or 0, output, said)

    async def output(self, *arguments: str) -> bytes:
        """Return what a command prints; raises SonicEksError when it fails."""
        ended = await self.run(*arguments)
        if ended.status:
            raise ended.problem
        return ended.output

    @contextlib.asynccontextmanager
    async def forward(self, pod: str, port: int) -> AsyncIterator[Forward]:
        """Forward a free local port to a pod until the end of the block.

        Raises
        ------
        SonicEksError
            When kubectl ends, or is silent, before it forwards.
        """
        process = await self._start(
            *("port-forward", "--address", "127.0.0.1", f"pod/{pod}", f":{port}")
        )
        forward = Forward(process)
        try:
            await forward.begin()
            yield forward
        finally:
            await _end(process)
            await forward.close()

    async def _start(self, *arguments: str) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *("kubectl", "--namespace", self.namespace, *arguments),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=environment_without_key(self.key),
                # A group of its own: where kubectl is a script, all of it is ended with it.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise SonicEksError("--pod: kubectl is not installed; --pid needs none") from None
        except OSError as error:
            raise SonicEksError(f"--pod: kubectl cannot be run: {error.strerror}") from None


class Forward:
    """One `kubectl port-forward`.

    kubectl ends, and with it every connection that it forwards, when one of them fails: since 1.23
    (kubernetes/kubernetes#103526). It prints a line for each connection, so it has to be read.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._said = b""
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reading = [
            asyncio.create_task(self._read_output()),
            asyncio.create_task(self._read_error()),
        ]

    @property
    def url(self) -> str:
        """Where the pod's port is now."""
        return f"http://127.0.0.1:{self._port.result()}"

    async def begin(self) -> None:
        """Wait until it forwards; raises SonicEksError."""
        either: set[asyncio.Future[Any]] = {self._port, self._reading[0]}
        await asyncio.wait(either, timeout=_LONGEST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self._port.done():
            self._port.result()
            return
        if not self._reading[0].done():
            raise _problem("port-forward", f"no answer within {_LONGEST_SECONDS:g} s")
        await asyncio.wait({self._reading[1]}, timeout=_BREAKS_SECONDS)
        raise _problem("port-forward", _last_line(self._said))

    async def broken(self) -> str:
        """Return why it ended, a moment after a connection did; empty: it goes on."""
        await asyncio.wait({self._reading[0]}, timeout=_BREAKS_SECONDS)
        if not self._reading[0].done():
            return ""
        await asyncio.wait({self._reading[1]}, timeout=_BREAKS_SECONDS)
        # The last line says that the connection is lost, one before it why.
        lines = self._said.decode(errors="replace").strip().splitlines()
        return "; ".join(lines) or "it ended"

    async def close(self) -> None:
        """Read no more."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        if not self._port.cancel():
            self._port.exception()  # looked at, so that nobody is told of it

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        text = b""
        while data := await self._process.stdout.read(_READ_BYTES):
            if not self._port.done():
                text = (text + data)[-_KEPT_BYTES:]
                if found := _FORWARDING.search(text):
                    self._forwards_from(found[1].decode())

    def _forwards_from(self, port: str) -> None:
        if len(port) <= len(str(_MOST_PORT)) and 1 <= int(port) <= _MOST_PORT:
            self._port.set_result(int(port))
        else:
            reason = f"got the local port {shown(port)}; expected 1 to {_MOST_PORT}"
            self._port.set_exception(_problem("port-forward", reason))

    async def _read_error(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_READ_BYTES):
            self._said = (self._said + data)[-_KEPT_BYTES:]


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return lines[-1]


def _problem(command: str, reason: str) -> SonicEksError:
    return SonicEksError(f"kubectl {command}: {clipped(reason)}", exit_status=PROBLEM_FOUND)
