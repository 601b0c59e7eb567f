"""What cannot bring the stream gate down: broken, slow and many clients, signals, its port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.standin.gate import Peers, run, running, server, talk
from tests.standin.process import (
    http_get,
    python,
    require_linux,
)

pytestmark = pytest.mark.slow

HOSTS = ["127.0.0.1", "::1"]


@pytest.fixture(autouse=True)
def _linux() -> None:
    require_linux()


@pytest.mark.parametrize("host", HOSTS)
def test_answers_on_both_address_families(host: str) -> None:
    """The kubelet calls the pod's address, whichever family the cluster has."""

    async def scenario() -> None:
        async with running("--watch-port", 1) as gate:
            assert (await http_get(gate.port, "/live", host=host))[0] == 200

    run(scenario)


def test_many_callers_join_one_drain_and_a_later_one_starts_anew() -> None:
    async def scenario() -> None:
        with server() as (_, port):
            async with running("--watch-port", port, propagation=1.0) as gate:
                answers = await asyncio.gather(*(gate.drain() for _ in range(200)))
                assert len({json.dumps(answer) for answer in answers}) == 1
                again = await gate.drain()
                assert again["reason"] == "drained"
                assert isinstance(again["seconds"], float)
                assert again["seconds"] >= 1.0
                assert sum('"drain_started"' in line for line in gate.process.lines) == 2

    run(scenario)


def test_a_stray_call_takes_nothing_from_the_drain_that_follows() -> None:
    """Who asked first may have been an operator's curl, long before the kubelet."""

    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port, propagation=1.5, budget=3.0) as gate:
                _, stray = await asyncio.open_connection("127.0.0.1", gate.port)
                stray.write(b"GET /drain HTTP/1.1\r\n\r\n")
                await gate.becomes("sonic_draining", 1)
                stray.transport.abort()
                await asyncio.sleep(1.0)
                peers = Peers(listener, 1)
                talking = asyncio.create_task(talk(peers, 0))
                answer = await gate.drain()
                talking.cancel()
                peers.close()
                assert answer["reason"] == "budget"
                assert isinstance(answer["seconds"], float)
                assert answer["seconds"] >= 3.0

    run(scenario)


def test_a_caller_that_leaves_does_not_end_the_drain() -> None:
    async def scenario() -> None:
        with server() as (_, port):
            async with running("--watch-port", port, propagation=1.0) as gate:
                _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
                writer.write(b"GET /drain HTTP/1.1\r\n\r\n")
                await gate.becomes("sonic_draining", 1)
                writer.transport.abort()
                assert (await gate.drain())["reason"] == "drained"

    run(scenario)


NONSENSE = [
    b"",
    b"\0" * 100,
    b"\xff\xfe\xfd\r\n\r\n",
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / / / HTTP/1.1\r\n\r\n",
    b"GET /drain SSH/2.0\r\n\r\n",
    b"POST /drain HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx",
    b"HEAD /drain HTTP/1.1\r\n\r\n",
    b"DELETE /%00 HTTP/1.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
    b"GET /drain/ HTTP/1.1\r\n\r\n",
    b"GET " + b"/x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 50_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x55" * 300,  # TLS ClientHello
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /metrics?token=hunter2 HTTP/1.1\r\nAuthorization: Bearer hunter2\r\n\r\n",
]


def test_no_request_brings_it_down_or_starts_a_drain_by_mistake() -> None:
    async def scenario() -> None:
        async with running("--watch-port", 1) as gate:
            for data in NONSENSE:
                reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
                with contextlib.suppress(OSError):
                    writer.write(data)
                    writer.write_eof()
                    await reader.read()
                writer.transport.abort()
            assert await gate.value("sonic_draining") == 0
            assert (await http_get(gate.port, "/ready"))[0] == 200
            assert gate.process.running
            output = "\n".join(gate.process.lines)
            assert "hunter2" not in output
            assert "drain_started" not in output
            assert all(isinstance(json.loads(line), dict) for line in gate.process.lines)

    run(scenario)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /metrics", 200),
        ("GET /metrics?x=1", 200),
        ("GET /live", 200),
        ("GET /", 404),
        ("POST /metrics", 405),
        ("nonsense", 400),
    ],
)
def test_status(request_line: str, status: int) -> None:
    async def scenario() -> None:
        async with running("--watch-port", 1) as gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            writer.write(f"{request_line} HTTP/1.1\r\n\r\n".encode())
            assert (await reader.readline()).split()[1] == str(status).encode()
            writer.transport.abort()

    run(scenario)


def test_slow_clients_and_scanners_do_not_crowd_out_the_kubelet() -> None:
    async def scenario() -> None:
        async with running("--watch-port", 1, propagation=2.5) as gate:
            drain = asyncio.create_task(gate.drain())
            await gate.becomes("sonic_draining", 1)
            slow = []
            for number in range(400):
                _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
                if number % 2:
                    writer.write(b"GET /metr")
                slow.append(writer)
            second = asyncio.create_task(gate.drain())
            await asyncio.sleep(1.1)
            assert (await http_get(gate.port, "/ready"))[0] == 200
            status = Path(f"/proc/{gate.process.pid}/status").read_text()
            assert "\nThreads:\t1\n" in status
            files = list(Path(f"/proc/{gate.process.pid}/fd").iterdir())
            assert len(files) < 200
            assert (await drain)["reason"] == "drained"
            assert (await second)["reason"] == "drained"
            for writer in slow:
                writer.transport.abort()

    run(scenario)


def test_sigterm_ends_it_promptly_even_in_a_drain() -> None:
    async def scenario() -> None:
        with server() as (_, port):
            async with running("--watch-port", port, propagation=60, budget=60) as gate:
                drain = asyncio.create_task(gate.drain())
                await gate.becomes("sonic_draining", 1)
                gate.process.signal(signal.SIGTERM)
                assert await gate.process.wait(5) == 0
                with pytest.raises(OSError):  # noqa: PT011
                    await drain
                assert "Traceback" not in "\n".join(gate.process.lines)

    run(scenario)


def test_port_in_use_is_one_line_and_exit_1() -> None:
    with server("0.0.0.0") as (_, port):
        command = python(
            "sidecar.stream_gate",
            *("--port", port, "--watch-port", 1),
            *("--propagation-seconds", 0, "--budget-seconds", 1),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    assert json.loads(done.stdout)["event"] == "failed"
