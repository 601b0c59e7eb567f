"""A whole service on loopback: NATS, workers and API pods with their gates, and callers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from cartesia import AsyncCartesia

from tests.standin.broker import Broker, make_brokers
from tests.standin.client import Callers
from tests.standin.pod import DrainNumbers, Pod, TargetGroup
from tests.standin.process import free_ports, python

SPEECH_CLOCK = 5.0
"""How much faster than the wall clock the callers talk; drains run faster still, see README.md."""


@dataclass
class Fleet:
    """What is running."""

    folder: Path
    numbers: DrainNumbers
    speech_clock: float = SPEECH_CLOCK
    brokers: list[Broker] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    targets: TargetGroup = field(default_factory=TargetGroup)
    _turn: int = -1
    _clients: dict[int, AsyncCartesia] = field(default_factory=dict)

    async def stop(self) -> None:
        """End every process."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        await asyncio.gather(*(pod.stop() for pod in self.pods))
        await asyncio.gather(*(broker.process.stop() for broker in self.brokers))

    def _nats(self) -> str:
        """Servers for the next pod; each pod begins with another one."""
        urls = [broker.url for broker in self.brokers]
        self._turn += 1
        at = self._turn % len(urls)
        return ",".join(urls[at:] + urls[:at])

    async def add_worker(self, *arguments: object, gate: bool = False) -> Pod:
        """Start a worker pod; its gate reads the load metric and knows no propagation time."""
        port, gate_port = free_ports(2)
        command = python(
            "tests.standin.worker",
            *("--nats", self._nats(), "--metrics-port", port, "--clock", self.speech_clock),
            *arguments,
        )
        numbers = DrainNumbers(
            0, self.numbers.budget, self.numbers.margin, self.numbers.idle, self.numbers.poll
        )
        pod = Pod(
            command,
            numbers,
            port=port,
            metrics_port=port,
            gate_port=gate_port if gate else None,
            gate_watches=["--load-url", f"http://127.0.0.1:{port}/metrics"],
        )
        self.pods.append(pod)
        await pod.start()
        return pod

    async def add_api(
        self, *arguments: object, gate: bool = True, gate_command: list[str] | None = None
    ) -> Pod:
        """Start an API pod and send callers to it."""
        port, metrics_port, gate_port = free_ports(3)
        backend = ("--nats", self._nats()) if self.brokers else ("--standalone",)
        command = python(
            "tests.standin.api",
            *("--port", port, "--metrics-port", metrics_port, *backend),
            *("--clock", self.speech_clock, *arguments),
        )
        pod = Pod(
            command,
            self.numbers,
            port=port,
            metrics_port=metrics_port,
            gate_port=gate_port if gate else None,
            gate_command=gate_command,
        )
        self.pods.append(pod)
        await pod.start()
        self.targets.register(pod)
        return pod

    def callers(self, **options: object) -> Callers:
        """Return callers that reach the API pods by the load balancer."""
        return Callers(self.targets, clients=self._clients, **options)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def fleet(folder: Path, numbers: DrainNumbers, brokers: int = 1) -> AsyncIterator[Fleet]:
    """Run a fleet; whatever happens, none of its processes stays."""
    running = Fleet(folder, numbers)
    try:
        if brokers:
            running.brokers = make_brokers(folder, brokers)
            # Each waits for the others' routes.
            await asyncio.gather(*(broker.start() for broker in running.brokers))
        yield running
    finally:
        await running.stop()
