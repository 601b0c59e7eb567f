"""Who gets SIGTERM: a process of this machine, or the main container of a pod."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from sonic_eks.bench.record import clipped
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown

_KUBECTL_SECONDS = 30.0


class Subject(Protocol):
    """What an experiment ends."""

    has_pre_stop: bool
    """Whether it can be marked as going before it gets SIGTERM."""

    @property
    def name(self) -> str:
        """How it is called."""

    async def check(self) -> None:
        """Raise SonicEksError unless it is there."""

    async def announce_end(self) -> None:
        """Mark it as going; it gets no signal by that."""

    async def terminate(self) -> None:
        """Send SIGTERM."""

    async def running(self) -> bool:
        """Whether it has not ended."""


@dataclass
class LocalProcess:
    """A process of this machine, such as that of a container under Docker."""

    pid: int
    has_pre_stop: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """How it is called."""
        return f"process {self.pid}"

    async def check(self) -> None:
        """See `Subject`."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            raise SonicEksError(f"--pid {self.pid}: no such process on this machine") from None
        except PermissionError:
            raise SonicEksError(f"--pid {self.pid}: may not be ended by this user") from None

    async def announce_end(self) -> None:
        """See `Subject`."""

    async def terminate(self) -> None:
        """See `Subject`."""
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            raise SonicEksError(
                f"--pid {self.pid}: ended before it got SIGTERM", exit_status=PROBLEM_FOUND
            ) from None

    async def running(self) -> bool:
        """See `Subject`."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        # A zombie has ended; that nobody has asked for its status changes nothing.
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
        return True


@dataclass
class Pod:
    """The main container of a pod, by kubectl and whatever it is configured to talk to.

    `announce_end` deletes the pod, which runs its preStop hook; `terminate` sends SIGTERM to the
    container's first process at once, so that no experiment waits for a hook of minutes.
    """

    pod: str
    namespace: str
    container: str | None = None
    has_pre_stop: bool = field(default=True, init=False)
    _uid: str = field(default="", init=False)
    _restarts: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """How it is called."""
        return f"pod {self.namespace}/{self.pod}"

    async def check(self) -> None:
        """See `Subject`."""
        found = await self._get()
        if found is None:
            raise SonicEksError(f"--pod {self.pod}: not found in namespace {self.namespace}")
        names = [container["name"] for container in found["spec"]["containers"]]
        if self.container is None:
            self.container = names[0]
        if self.container not in names:
            raise SonicEksError(
                f"--container: got {shown(self.container)}; allowed: {', '.join(names)}"
            )
        self._uid = found["metadata"]["uid"]
        self._restarts = self._status(found).get("restartCount", 0)

    async def announce_end(self) -> None:
        """See `Subject`."""
        await self._kubectl("delete", "pod", self.pod, "--wait=false")

    async def terminate(self) -> None:
        """See `Subject`."""
        await self._kubectl("exec", self.pod, "-c", str(self.container), "--", "kill", "-TERM", "1")

    async def running(self) -> bool:
        """See `Subject`."""
        found = await self._get()
        if found is None or found["metadata"]["uid"] != self._uid:
            return False
        status = self._status(found)
        ended = "terminated" in status.get("state", {})
        return not ended and status.get("restartCount", 0) == self._restarts

    @contextlib.asynccontextmanager
    async def forwarded(self, port: int) -> AsyncIterator[str]:
        """Forward a free local port to the pod; give the URL."""
        process = await asyncio.create_subprocess_exec(
            *("kubectl", "--namespace", self.namespace, "port-forward", f"pod/{self.pod}"),
            f":{port}",
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), _KUBECTL_SECONDS)
            found = re.search(rb"127\.0\.0\.1:(\d+)", line)
            if found is None:
                assert process.stderr is not None
                raise _failed("port-forward", await process.stderr.read())
            yield f"http://127.0.0.1:{int(found[1])}"
        except TimeoutError:
            raise _failed("port-forward", b"no answer") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    async def _get(self) -> dict[str, Any] | None:
        output = await self._kubectl("get", "pod", self.pod, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] | None = json.loads(output) if output.strip() else None
        return found

    def _status(self, pod: dict[str, Any]) -> dict[str, Any]:
        statuses = pod.get("status", {}).get("containerStatuses", [])
        return next((one for one in statuses if one["name"] == self.container), {})

    async def _kubectl(self, *arguments: str) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *("kubectl", "--namespace", self.namespace, *arguments),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
            )
        except FileNotFoundError:
            raise SonicEksError("--pod: kubectl is not installed; --pid needs none") from None
        try:
            output, error = await asyncio.wait_for(process.communicate(), _KUBECTL_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise _failed(arguments[0], b"no answer") from None
        if process.returncode:
            raise _failed(arguments[0], error)
        return output


def _failed(command: str, error: bytes) -> SonicEksError:
    lines = error.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return SonicEksError(f"kubectl {command}: {clipped(lines[-1])}", exit_status=PROBLEM_FOUND)
