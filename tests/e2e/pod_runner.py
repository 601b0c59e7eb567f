"""Runs a rendered pod's commands in a network namespace of their own, on the ports that they name.

unshare --map-root-user --net python -m tests.e2e.pod_runner SPEC

SPEC is JSON: `gate` and `server` (command, working folder), `paths` of the gate's probes, `hook`
(port and path), `service` and `gate_port`. The result goes to standard output as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from tests.standin.process import http_get, metric, until

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1

_LONG = json.dumps(
    {
        "transcript": "a long text " * 200,
        "model_id": "x",
        "voice": {"mode": "id", "id": "x"},
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16000},
    }
)


def raise_loopback() -> None:
    """Bring up lo, which is down in a new namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


async def started(container: dict[str, Any]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *container["command"],
        cwd=container["folder"],
        env={},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=sys.stderr,
    )


def kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def speak(port: int) -> tuple[asyncio.StreamWriter, asyncio.Task[None]]:
    """Ask for a long generation and take its audio for ever."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /tts/bytes HTTP/1.1\r\nHost: x\r\nX-API-Key: x\r\n"
    writer.write(f"{head}Content-Length: {len(_LONG)}\r\n\r\n{_LONG}".encode())
    return writer, asyncio.create_task(take(reader))


async def take(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


async def play(spec: dict[str, Any]) -> dict[str, Any]:
    gate, service, paths = spec["gate_port"], spec["service"], spec["paths"]
    seen: dict[str, Any] = {}

    async def is_ok(port: int, path: str) -> bool:
        return (await http_get(port, path))[0] == 200

    async with contextlib.AsyncExitStack() as stack:
        sidecar = await started(spec["gate"])
        stack.callback(kill, sidecar)
        await until(lambda: is_ok(gate, paths["startup"]), "start of the gate")
        seen["ready without a server"] = await is_ok(gate, paths["readiness"])
        server = await started(spec["server"])
        stack.callback(kill, server)
        await until(lambda: is_ok(service, "/status"), "start of the server")
        await until(lambda: is_ok(gate, paths["readiness"]), "readiness")
        writer, taking = await speak(service)
        stack.callback(writer.close)
        stack.callback(taking.cancel)

        async def is_seen() -> bool:
            text = (await http_get(gate, "/metrics"))[1]
            return any((metric(text, name) or 0) >= 1 for name in spec["metrics"])

        await until(is_seen, "the gate sees the stream")
        hook = asyncio.create_task(http_get(spec["hook"]["port"], spec["hook"]["path"], seconds=60))
        stack.callback(hook.cancel)

        async def drains() -> bool:
            return metric((await http_get(gate, "/metrics"))[1], "sonic_draining") == 1

        await until(drains, "the drain")
        await asyncio.wait([hook], timeout=0.5)
        seen["hook is held"] = not hook.done()
        seen["served while it drains"] = await is_ok(service, "/status")
        seen["alive while it drains"] = await is_ok(gate, paths["liveness"])
        text = (await http_get(gate, "/metrics"))[1]
        seen["values"] = {name: metric(text, name) for name in spec["metrics"]}
        sidecar.terminate()
        seen["gate ends with"] = await asyncio.wait_for(sidecar.wait(), 10)
    return seen


if __name__ == "__main__":
    raise_loopback()
    print(json.dumps(asyncio.run(play(json.loads(Path(sys.argv[1]).read_text())))))
