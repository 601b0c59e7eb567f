"""A stream gate on its own, and sockets for it to watch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from tests.standin.process import (
    Process,
    free_ports,
    http_get,
    metric,
    python,
    until,
)


class Gate:
    """A running gate."""

    def __init__(self, process: Process, port: int) -> None:
        self.process, self.port = process, port

    async def value(self, name: str) -> float | None:
        return metric((await http_get(self.port, "/metrics"))[1], name)

    async def becomes(self, name: str, wanted: float) -> None:
        async def check() -> bool:
            return await self.value(name) == wanted

        try:
            await until(check, f"{name} {wanted:g}", 10)
        except TimeoutError:
            assert await self.value(name) == wanted

    async def drain(self) -> dict[str, object]:
        status, body = await http_get(self.port, "/drain", seconds=60)
        assert status == 200
        answer: dict[str, object] = json.loads(body)
        return answer


@contextlib.asynccontextmanager
async def running(
    *watched: object,
    propagation: float = 0.0,
    budget: float = 30.0,
    idle: float = 0.4,
    command: list[str] | None = None,
) -> AsyncIterator[Gate]:
    """A gate that has had its first look."""
    [port] = free_ports(1)
    process = Process(
        [
            *(command or python("sidecar.stream_gate")),
            *("--port", str(port), "--propagation-seconds", str(propagation)),
            *("--budget-seconds", str(budget), "--idle-seconds", str(idle)),
            *("--poll-seconds", "0.05", *map(str, watched)),
        ]
    )
    await process.start()

    async def ready() -> bool:
        assert process.running, process.lines
        return (await http_get(port, "/ready"))[0] == 200

    try:
        await until(ready, "start of the gate")
        yield Gate(process, port)
    finally:
        await process.stop()


@contextlib.contextmanager
def server(host: str = "127.0.0.1") -> Iterator[tuple[socket.socket, int]]:
    """A listening socket and its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, backlog=2048) as listener:
        yield listener, listener.getsockname()[1]


class Peers:
    """Connections to a listener, both ends held here."""

    def __init__(self, listener: socket.socket, count: int) -> None:
        self.clients: list[socket.socket] = []
        self.servers: list[socket.socket] = []
        for _ in range(count):
            self.clients.append(socket.create_connection(listener.getsockname()[:2]))
            self.servers.append(listener.accept()[0])

    def speak(self, number: int, size: int = 1000) -> None:
        """The server sends and the client takes it."""
        self.servers[number].sendall(b"a" * size)
        assert len(self.clients[number].recv(size, socket.MSG_WAITALL)) == size

    def close(self, *numbers: int) -> None:
        for number in numbers or range(len(self.clients)):
            self.clients[number].close()
            self.servers[number].close()


async def talk(peers: Peers, *numbers: int) -> None:
    while True:
        for number in numbers:
            peers.speak(number)
        await asyncio.sleep(0.05)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(120):
            await scenario()

    asyncio.run(limited())
