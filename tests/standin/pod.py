"""A pod on loopback, and the parts of a kubelet and of a load balancer that end it.

The order of a pod's end follows the Kubernetes documentation ("Pod lifecycle", "Container lifecycle
hooks", "Sidecar containers"): the preStop hook of the main container runs first and counts in the
grace period; its answer, or its failure, or the end of the grace period brings SIGTERM to the main
container; SIGKILL comes at the end of the grace period; a native sidecar gets SIGTERM when the main
container has ended. A hook that fails does not delay SIGTERM. The hook's client has no timeout.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.standin.process import Process, http_get, metric, python, until

LEAST_SECONDS = 2.0
"""What the kubelet leaves a container after a hook that used the whole grace period."""


@dataclass(frozen=True)
class DrainNumbers:
    """The drain settings of a pod in real seconds, as the pod builder would derive them."""

    propagation: float
    max_stream: float
    margin: float
    idle: float = 1.5
    poll: float = 0.05

    @property
    def budget(self) -> float:
        """Longest drain."""
        return self.propagation + self.max_stream

    @property
    def grace(self) -> float:
        """Grace period of the pod."""
        return self.budget + self.margin


@dataclass
class End:
    """How a pod ended, in seconds from the beginning of its end."""

    hook_failed: bool = False
    sigterm: float = 0.0
    exit: float = 0.0
    killed: bool = False
    drain: dict[str, Any] = field(default_factory=dict)
    """What the gate answered: reason, seconds, cut."""


class Pod:
    """A main container and, beside it, the stream gate."""

    def __init__(
        self,
        main: list[str],
        numbers: DrainNumbers,
        *,
        port: int,
        metrics_port: int,
        gate_port: int | None = None,
        gate_watches: list[str] | None = None,
        gate_command: list[str] | None = None,
    ) -> None:
        self.port, self.metrics_port, self.gate_port = port, metrics_port, gate_port
        self.numbers = numbers
        self.main = Process(main)
        self.gate: Process | None = None
        if gate_port is not None:
            command = gate_command or python("sidecar.stream_gate")
            self.gate = Process(
                [
                    *command,
                    *("--port", str(gate_port)),
                    *("--propagation-seconds", str(numbers.propagation)),
                    *("--budget-seconds", str(numbers.budget)),
                    *("--idle-seconds", str(numbers.idle)),
                    *("--poll-seconds", str(numbers.poll)),
                    *(gate_watches or ["--watch-port", str(port)]),
                ]
            )

    async def start(self) -> None:
        """Start both containers, the sidecar first, and wait until they are ready."""
        if self.gate is not None and self.gate_port is not None:
            await self.gate.start()
        await self.main.start()
        await until(self._ready, f"start of {self.main.command}")

    async def _ready(self) -> bool:
        if not self.main.running:
            raise RuntimeError("\n".join(["main container ended", *self.main.lines]))
        if self.gate is not None and self.gate_port is not None:
            if not self.gate.running:
                raise RuntimeError("\n".join(["gate ended", *self.gate.lines]))
            if (await http_get(self.gate_port, "/ready"))[0] != 200:
                return False
        status, text = await http_get(self.metrics_port, "/metrics")
        return status == 200 and metric(text, "inferno_worker_capacity") != 0

    async def terminate(self) -> End:
        """End the pod as a kubelet does."""
        begin = time.monotonic()
        end = End()

        def since() -> float:
            return time.monotonic() - begin

        grace = self.numbers.grace
        # In a thread: the kubelet is not slowed down by the callers that share this event loop.
        await asyncio.to_thread(self._hook_and_sigterm, end, since)
        try:
            await self.main.wait(max(grace - since(), LEAST_SECONDS))
        except TimeoutError:
            end.killed = True
            await self.main.stop()
        end.exit = since()
        if self.gate is not None:
            self.gate.signal(signal.SIGTERM)
            try:
                await self.gate.wait(LEAST_SECONDS)
            except TimeoutError:
                await self.gate.stop()
        return end

    def _hook_and_sigterm(self, end: End, since: Callable[[], float]) -> None:
        if self.gate_port is not None:
            hook = http.client.HTTPConnection(
                "127.0.0.1", self.gate_port, timeout=self.numbers.grace
            )
            try:
                hook.request("GET", "/drain")
                end.drain = json.loads(hook.getresponse().read())
            except TimeoutError:
                pass
            except (OSError, http.client.HTTPException):
                end.hook_failed = True
            finally:
                hook.close()
        end.sigterm = since()
        self.main.signal(signal.SIGTERM)

    async def stop(self) -> None:
        """End both containers at once."""
        await self.main.stop()
        if self.gate is not None:
            await self.gate.stop()

    async def gate_metrics(self) -> str:
        """Return what the gate publishes."""
        assert self.gate_port is not None
        return (await http_get(self.gate_port, "/metrics"))[1]


class TargetGroup:
    """Picks a pod for each new connection, as a network load balancer does for each new flow.

    A pod that is deregistered still gets new connections until the change has propagated; open
    connections stay where they are.
    """

    def __init__(self, seed: int = 0) -> None:
        self._targets: list[Pod] = []
        self._dice = random.Random(seed)

    def register(self, pod: Pod) -> None:
        """Send new connections to `pod` too."""
        self._targets.append(pod)

    def deregister(self, pod: Pod, after_seconds: float) -> None:
        """Send no new connection to `pod` once `after_seconds` have passed."""
        asyncio.get_running_loop().call_later(after_seconds, self._targets.remove, pod)

    def pick(self) -> Pod:
        """Return the pod of a new connection."""
        if not self._targets:
            raise ConnectionRefusedError("no targets")
        return self._dice.choice(self._targets)
