"""The main container of a pod as what gets SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sonic_eks.config.standalone import BEGIN_DRAIN_PATH
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown
from sonic_eks.verify_drain.answer import FoundPod, Sibling, pod_of, siblings_of
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
        if found.going:
            raise self._refusal("is going already; give another one")
        if found.shares_processes:
            raise self._refusal(
                "its containers share a process namespace, so that process 1 is not the server's;"
                " give a pod without shareProcessNamespace and hostPID"
            )
        if self.container is None:
            self.container = next(iter(found.containers))
        if self.container not in found.containers:
            raise SonicEksError(
                f"--container: got {shown(self.container)}; allowed: {', '.join(found.containers)}"
            )
        container = found.containers[self.container]
        if container.status is None or not container.status.running:
            raise self._refusal(f"its container {self.container} does not run")
        # One that only tells of the end holds SIGTERM back no more than none.
        self.has_pre_stop = container.pre_stop and container.pre_stop_path != BEGIN_DRAIN_PATH
        self._grace_seconds = found.grace_seconds
        self._uid, self._owner = found.uid, found.owner
        self._restarts = container.status.restarts

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
        status = await _asked_again(self._status)
        return status is not None and status == (False, self._restarts)

    async def others(self) -> list[str]:
        """See `Subject`."""
        if not self._owner:
            return []
        found = await _asked_again(self._all)
        return [
            one.name
            for one in found
            if one.uid != self._uid and one.owner == self._owner and one.ready
        ]

    async def leave(self) -> None:
        """See `Subject`."""
        if not self._prolonged:
            return
        with contextlib.suppress(SonicEksError):
            found = await self._get()
            # Who was interrupted may not have marked it, and its name may be that of a new one.
            if found is not None and found.uid == self._uid and found.going:
                # Its own grace period again.
                await self.kubectl.run(
                    *("delete", "pod", self.pod, "--wait=false", "--ignore-not-found"),
                    f"--grace-period={max(1, self._grace_seconds)}",
                )

    async def _get(self) -> FoundPod | None:
        output = await self.kubectl.output(
            "get", "pod", self.pod, "--ignore-not-found", "-o", "json"
        )
        return pod_of(output) if output.strip() else None

    async def _all(self) -> list[Sibling]:
        return siblings_of(await self.kubectl.output("get", "pods", "-o", "json"))

    async def _status(self) -> tuple[bool, int] | None:
        """Return whether the container has ended, and its restarts; None: the pod is gone."""
        found = await self._get()
        if found is None or found.uid != self._uid:
            return None
        container = found.containers.get(str(self.container))
        if container is None or container.status is None:
            raise SonicEksError(
                f"kubectl get: got no status of container {self.container}; expected one",
                exit_status=PROBLEM_FOUND,
            )
        return container.status.terminated, container.status.restarts

    def _refusal(self, why: str) -> SonicEksError:
        return SonicEksError(f"--pod {self.pod}: {why}")


async def _asked_again(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask an API server that may not answer now and then: what ends here ends once."""
    for _ in range(_LOOKS - 1):
        with contextlib.suppress(SonicEksError):
            return await ask()
        await asyncio.sleep(_PAUSE_SECONDS)
    return await ask()
