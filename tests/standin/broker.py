"""NATS servers on loopback: one, or a cluster of three."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.standin.process import Process, free_ports, http_get, until


class Broker:
    """One NATS server of a cluster."""

    def __init__(self, folder: Path, name: str, port: int, monitor: int, routes: list[int]) -> None:
        self.port, self._monitor = port, monitor
        cluster = ""
        if len(routes) > 1:
            own, *others = routes
            urls = ", ".join(f'"nats://127.0.0.1:{route}"' for route in others)
            cluster = f'cluster {{ name: standin, listen: "127.0.0.1:{own}", routes: [{urls}] }}\n'
        self._config = folder / f"{name}.conf"
        self._config.write_text(
            f'server_name: {name}\nlisten: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{monitor}"\n'
            # Least values that the server takes: it spreads its clients' departures over the
            # duration, one a second at most, so that few clients are gone in seconds.
            f'lame_duck_duration: "30s"\nlame_duck_grace_period: "100ms"\n{cluster}'
        )
        self._routes = max(len(routes) - 1, 0)
        self.process = Process(["nats-server", "-c", str(self._config)])

    async def start(self) -> None:
        """Start it and wait until it serves and knows the other servers."""
        await self.process.start()
        await until(self._ready, "start of nats-server")

    async def _ready(self) -> bool:
        if not self.process.running:
            raise RuntimeError("\n".join(["nats-server ended", *self.process.lines]))
        status, _ = await http_get(self._monitor, "/healthz")
        _, routes = await http_get(self._monitor, "/routez")
        return status == 200 and f'"num_routes": {self._routes}' in routes

    async def restart(self, lame_duck: bool) -> None:
        """Stop it, in lame-duck mode or at once, and start it again."""
        # SIGUSR2 is the server's signal for lame-duck mode; it exits when the last client is gone.
        self.process.signal(signal.SIGUSR2 if lame_duck else signal.SIGKILL)
        await self.process.wait(60)
        self.process = Process(self.process.command)
        await self.start()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"nats://127.0.0.1:{self.port}"


def make_brokers(folder: Path, count: int) -> list[Broker]:
    """Configure a cluster of `count` servers."""
    ports = free_ports(3 * count)
    clients, monitors, routes = ports[:count], ports[count : 2 * count], ports[2 * count :]
    return [
        Broker(
            folder,
            f"nats-{index}",
            clients[index],
            monitors[index],
            [routes[index], *routes[:index], *routes[index + 1 :]] if count > 1 else [],
        )
        for index in range(count)
    ]
