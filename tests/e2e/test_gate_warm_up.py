"""Warm-up: a pod is not ready before its server has answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.standin.gate import Gate, run
from tests.standin.process import (
    Process,
    free_ports,
    http_get,
    python,
    require_linux,
    until,
)

pytestmark = pytest.mark.slow


class Server:
    """Answers POSTs as it is told, and keeps what it got."""

    def __init__(self, *answers: bytes) -> None:
        self.answers, self.heads, self.bodies = list(answers), list[str](), list[bytes]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(size))
        # The last answer is for all that follow.
        writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        writer.close()


class Endless:
    """Answers and never ends."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.begun.set()
        with contextlib.suppress(OSError):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                writer.write(b"a" * 1000)
                await writer.drain()
                await asyncio.sleep(0.02)


GOOD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"
NONSENSE = b"\x16\x03\x01 what\r\n\r\n"
NO_STATUS = b"HTTP/1.1\r\n\r\n"
LONG_HEAD = b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"
NO_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
BAD_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"
HALF_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc"
HALF_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc"


@contextlib.asynccontextmanager
async def warming(port: int, *more: str) -> AsyncIterator[Gate]:
    """A gate that answers, ready or not."""
    require_linux()
    [own] = free_ports(1)
    arguments = f"--port {own} --propagation-seconds 0 --budget-seconds 30 --poll-seconds 0.05"
    url = f"http://127.0.0.1:{port}/tts/bytes?x=1"
    process = Process(
        python(
            "sidecar.stream_gate",
            *arguments.split(),
            *("--watch-port", port, "--warm-up-url", url, "--warm-up-body", '{"text": "a b"}'),
            *more,
        )
    )
    await process.start()

    async def alive() -> bool:
        return (await http_get(own, "/live"))[0] == 200

    try:
        await until(alive, "start of the gate")
        yield Gate(process, own)
    finally:
        await process.stop()


async def ready(gate: Gate) -> bool:
    return (await http_get(gate.port, "/ready"))[0] == 200


def faults(gate: Gate) -> list[str]:
    return [line for line in gate.process.lines if '"warm_up_failed"' in line]


def test_ready_after_as_many_answers_as_asked_for(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret-key\n")

    async def scenario() -> None:
        [port] = free_ports(1)
        async with warming(port, "--warm-up-requests", "2", "--warm-up-key-file", str(key)) as gate:
            # There is no server yet: Kubernetes starts it after the gate.
            assert not await ready(gate)
            answers = Server(BUSY, GOOD)
            async with await asyncio.start_server(answers.serve, "127.0.0.1", port):
                await until(lambda: ready(gate), "readiness")
            assert answers.bodies == [b'{"text": "a b"}'] * 3
            assert all(h.startswith("POST /tts/bytes?x=1 HTTP/1.1\r\n") for h in answers.heads)
            assert all("\r\nAuthorization: Bearer secret-key\r\n" in h for h in answers.heads)
            said = "\n".join(faults(gate))
            for fault in ("ConnectionRefusedError", "status 503"):
                assert fault in said
            assert "secret-key" not in "\n".join(gate.process.lines)
            # Once warm, it stays in use whatever the server does.
            assert await ready(gate)

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [BUSY, EMPTY, NONSENSE, NO_STATUS, LONG_HEAD, NO_CHUNK, BAD_CHUNK, HALF_CHUNK, HALF_BODY],
    ids=[f"answer-{n}" for n in range(9)],
)
def test_a_bad_answer_is_said_and_tried_again(answer: bytes) -> None:
    async def scenario() -> None:
        [port] = free_ports(1)
        answers = Server(answer, GOOD)
        async with (
            await asyncio.start_server(answers.serve, "127.0.0.1", port),
            warming(port, "--warm-up-requests", "1") as gate,
        ):
            await until(lambda: ready(gate), "readiness")
            assert len(answers.heads) == 2
            assert len(faults(gate)) == 1

    run(scenario)


def test_a_server_that_is_started_anew_is_warmed_up_anew() -> None:
    async def scenario() -> None:
        [port] = free_ports(1)
        answers = Server(GOOD)
        first = await asyncio.start_server(answers.serve, "127.0.0.1", port)
        async with warming(port, "--warm-up-requests", "2") as gate:
            await until(lambda: ready(gate), "readiness")
            first.close()
            await first.wait_closed()

            async def cold() -> bool:
                return not await ready(gate)

            await until(cold, "the pod is taken out of service")
            async with await asyncio.start_server(answers.serve, "127.0.0.1", port):
                await until(lambda: ready(gate), "readiness again")
            assert len(answers.heads) == 4

    run(scenario)


def test_a_warm_up_is_no_stream() -> None:
    """It would add to what the pods are scaled on, for every pod that starts."""

    async def scenario() -> None:
        [port] = free_ports(1)
        endless = Endless()

        async with (
            await asyncio.start_server(endless.serve, "127.0.0.1", port),
            warming(port, "--idle-seconds", "0.4") as gate,
        ):
            await endless.begun.wait()
            for _ in range(20):
                assert await gate.value("sonic_active_streams") == 0
                assert await gate.value("sonic_open_connections") == 0
                await asyncio.sleep(0.05)
            # A caller's is one, on the same port.
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            await gate.becomes("sonic_open_connections", 1)
            writer.close()

    run(scenario)


def test_a_server_that_never_answers_well_never_gets_callers_and_fills_no_log() -> None:
    async def scenario() -> None:
        [port] = free_ports(1)
        answers = Server(BUSY)
        async with (
            await asyncio.start_server(answers.serve, "127.0.0.1", port),
            warming(port) as gate,
        ):

            async def tried() -> bool:
                return len(answers.heads) >= 3

            await until(tried, "three attempts")
            assert not await ready(gate)
            assert len(faults(gate)) <= 2
            # A drain does not wait for it.
            assert (await gate.drain())["reason"] == "drained"

    run(scenario)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"one\r\nX-Other: two"])
def test_a_bad_key_holds_readiness_back_and_not_the_server(
    tmp_path: Path, content: bytes | None
) -> None:
    """The gate starts before the server, which would never start behind a gate that ends."""
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)

    async def scenario() -> None:
        [port] = free_ports(1)
        answers = Server(GOOD)
        async with (
            await asyncio.start_server(answers.serve, "127.0.0.1", port),
            warming(port, "--warm-up-key-file", str(key)) as gate,
        ):

            async def said() -> bool:
                return bool(faults(gate))

            await until(said, "the fault is logged")
            assert not await ready(gate)
            assert answers.heads == []
            key.write_text("a-key")
            await until(lambda: ready(gate), "readiness")

    run(scenario)


def test_a_drain_does_not_wait_for_the_warm_up() -> None:
    async def scenario() -> None:
        [port] = free_ports(1)
        endless = Endless()

        async with (
            await asyncio.start_server(endless.serve, "127.0.0.1", port),
            warming(port, "--idle-seconds", "0.4") as gate,
        ):
            await endless.begun.wait()
            answer = await gate.drain()
            assert answer["cut"] == 0
            assert answer["reason"] == "drained"
            assert isinstance(answer["seconds"], float)
            assert answer["seconds"] < 10

    run(scenario)
