"""The main container of a pod as what gets SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sonic_eks.config.standalone import BEGIN_DRAIN_PATH
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown
from sonic_eks.verify_drain.kubectl import Kubectl

T = TypeVar("T")

_KILLED = 137
"""Status of a command in a container that ended under it: 128 and the number of SIGKILL."""

_NO_COMMAND = (126, 127)
# A shell has `kill` built in; images without procps have no program of that name.
_KILLS = (("sh", "-c", "kill -TERM 1"), ("kill", "-TERM", "1"))

_LOOKS = 3
_PAUSE_SECONDS = 1.0


@dataclass
class Pod:
    """The main container of a pod, by kubectl.

    Where the container has a preStop hook that lasts, `announce_end` deletes the pod: it runs then.
    `terminate` sends SIGTERM to the container's first process at once, so that no experiment waits
    for a hook of minutes: like the runtime's, it has no effect on a process that has no handler
    for it (man 7 pid_namespaces).
    """

    pod: str
    kubectl: Kubectl
    container: str | None = None
    has_pre_stop: bool = field(default=False, init=False)
    # The kubelet looks at its containers once a second and reports then; kubectl needs about one.
    late_seconds: float = field(default=4.0, init=False)
    _uid: str = field(default="", init=False)
    _owner: str = field(default="", init=False)
    _restarts: int = field(default=0, init=False)
    _grace_seconds: int = field(default=30, init=False)
    _prolonged: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """How it is called."""
        return f"pod {self.kubectl.namespace}/{self.pod}"

    async def check(self) -> None:
        """See `Subject`."""
        found = await self._get()
        if found is None:
            raise self._refusal(f"not found in namespace {self.kubectl.namespace}")
        metadata, spec = found["metadata"], found["spec"]
        if metadata.get("deletionTimestamp"):
            raise self._refusal("is going already; give another one")
        if spec.get("shareProcessNamespace") or spec.get("hostPID"):
            raise self._refusal(
                "its containers share a process namespace, so that process 1 is not the server's;"
                " give a pod without shareProcessNamespace and hostPID"
            )
        containers = {container["name"]: container for container in spec["containers"]}
        if self.container is None:
            self.container = next(iter(containers))
        if self.container not in containers:
            raise SonicEksError(
                f"--container: got {shown(self.container)}; allowed: {', '.join(containers)}"
            )
        status = self._status(found)
        if "running" not in status.get("state", {}):
            raise self._refusal(f"its container {self.container} does not run")
        lifecycle = containers[self.container].get("lifecycle") or {}
        hook = lifecycle.get("preStop") or {}
        # One that only tells of the end holds SIGTERM back no more than none.
        tells = (hook.get("httpGet") or {}).get("path") == BEGIN_DRAIN_PATH
        self.has_pre_stop = bool(hook) and not tells
        self._grace_seconds = spec.get("terminationGracePeriodSeconds", self._grace_seconds)
        self._uid, self._owner = metadata["uid"], _owner_of(metadata)
        self._restarts = status.get("restartCount", 0)

    async def announce_end(self, seconds: float) -> None:
        """See `Subject`."""
        self._prolonged = seconds > self._grace_seconds
        grace = [f"--grace-period={math.ceil(seconds)}"] if self._prolonged else []
        await self.kubectl.output("delete", "pod", self.pod, "--wait=false", *grace)

    async def terminate(self) -> None:
        """See `Subject`."""
        for command in _KILLS:
            ended = await self.kubectl.run(
                "exec", self.pod, "-c", str(self.container), "--", *command
            )
            # Process 1 may take the command along.
            if ended.status in (0, _KILLED):
                return
            missing = "executable file not found" in ended.reason.lower()
            if ended.status not in _NO_COMMAND and not missing:
                raise ended.problem
        raise SonicEksError(
            f"{self.name}: its image has neither sh nor kill, so it cannot be sent SIGTERM; run it"
            " under Docker and give --pid",
            exit_status=PROBLEM_FOUND,
        )

    async def running(self) -> bool:
        """See `Subject`."""
        found = await _asked_again(self._get)
        if found is None or found["metadata"]["uid"] != self._uid:
            return False
        status = self._status(found)
        ended = "terminated" in status.get("state", {})
        return not ended and status.get("restartCount", 0) == self._restarts

    async def others(self) -> list[str]:
        """See `Subject`."""
        if not self._owner:
            return []
        found = await _asked_again(self._all)
        return [
            str(one["metadata"]["name"])
            for one in found.get("items", [])
            if one["metadata"]["uid"] != self._uid
            and _owner_of(one["metadata"]) == self._owner
            and _is_ready(one)
        ]

    async def leave(self) -> None:
        """See `Subject`."""
        if not self._prolonged:
            return
        with contextlib.suppress(SonicEksError):
            found = await self._get()
            # Who was interrupted may not have marked it, and its name may be that of a new one.
            if found is None or found["metadata"]["uid"] != self._uid:
                return
            if found["metadata"].get("deletionTimestamp"):
                # Its own grace period again.
                await self.kubectl.run(
                    *("delete", "pod", self.pod, "--wait=false", "--ignore-not-found"),
                    f"--grace-period={max(1, self._grace_seconds)}",
                )

    async def _get(self) -> dict[str, Any] | None:
        output = await self.kubectl.output(
            "get", "pod", self.pod, "--ignore-not-found", "-o", "json"
        )
        return _json("get", output) if output.strip() else None

    async def _all(self) -> dict[str, Any]:
        return _json("get", await self.kubectl.output("get", "pods", "-o", "json"))

    def _status(self, pod: dict[str, Any]) -> dict[str, Any]:
        statuses = pod.get("status", {}).get("containerStatuses", [])
        return next((one for one in statuses if one["name"] == self.container), {})

    def _refusal(self, why: str) -> SonicEksError:
        return SonicEksError(f"--pod {self.pod}: {why}")


async def _asked_again(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask an API server that may not answer now and then: what ends here ends once."""
    for _ in range(_LOOKS - 1):
        with contextlib.suppress(SonicEksError):
            return await ask()
        await asyncio.sleep(_PAUSE_SECONDS)
    return await ask()


def _json(command: str, output: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(output)
    except ValueError:
        raise SonicEksError(
            f"kubectl {command}: an answer that is no JSON", exit_status=PROBLEM_FOUND
        ) from None
    return found


def _owner_of(metadata: dict[str, Any]) -> str:
    """Return the id of what keeps up the number of such pods; empty: nothing does."""
    owners = metadata.get("ownerReferences") or []
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
