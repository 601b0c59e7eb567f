"""Runs the gate: ``python3 -m sidecar.stream_gate --help``."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Sequence

from sidecar.stream_gate.gate import Gate
from sidecar.stream_gate.log import log, wait_for_no_reader
from sidecar.stream_gate.settings import Settings, parse_arguments

_REQUEST_LIMIT_BYTES = 8192


def _listen(port: int) -> socket.socket:
    # The kubelet calls the pod's address, which is IPv4 or IPv6 by cluster.
    with contextlib.suppress(OSError):
        if socket.has_dualstack_ipv6():
            address = ("::", port)
            return socket.create_server(
                address, family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
            )
    return socket.create_server(("0.0.0.0", port), backlog=1024)


async def run(settings: Settings) -> None:
    """Watch and answer until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    gate = Gate(settings)
    server = await asyncio.start_server(
        gate.accept, sock=_listen(settings.port), limit=_REQUEST_LIMIT_BYTES
    )
    watching = asyncio.create_task(gate.watch())
    warming = asyncio.create_task(gate.warm_up())
    log("started", port=settings.port)
    await stop.wait()
    log("stopped", draining=gate.draining)
    server.close()
    watching.cancel()
    warming.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the gate; 0 after SIGTERM, 1 when its port cannot be had, 2 for a bad command line."""
    settings = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    wait_for_no_reader()
    try:
        asyncio.run(run(settings))
    except OSError as error:
        log("failed", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
