"""What the load test asks for: from the command line to the bytes that a service reads."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from sonic_eks.bench.measure import Plan
from sonic_eks.bench.plan import Arrivals, Load, Protocol, Slo, Target
from sonic_eks.bench.process import transport_of
from sonic_eks.bench.progress import RunProgress
from sonic_eks.bench.record import Generation, Outcome, Record
from sonic_eks.bench.texts import TEXTS
from sonic_eks.cli import main as cli

KEY = "sk-of-a-request"
GIVEN = Target(
    url="http://host:5000/base",
    key=KEY,
    protocol=Protocol.WEBSOCKET,
    model="m-1",
    voice="v-1",
    language="de",
    encoding="pcm_f32le",
    sample_rate=16000,
    buffer_delay_ms=120,
    contexts_per_socket=3,
    playback_buffer_seconds=0.25,
    timeout_seconds=7.5,
)
OPTIONS = {
    "--model": "m-1",
    "--voice": "v-1",
    "--language": "de",
    "--encoding": "pcm_f32le",
    "--sample-rate": "16000",
    "--buffer-delay-ms": "120",
    "--contexts-per-socket": "3",
    "--playback-buffer-ms": "250",
    "--timeout": "7.5",
}


def planned(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Plan:
    """Return what `sonic-eks bench` is about to measure."""
    seen: list[Plan] = []

    def measure(plan: Plan) -> dict[str, Any]:
        seen.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("sonic_eks.cli.bench._measure", measure)
    monkeypatch.setenv("CARTESIA_API_KEY", KEY)
    monkeypatch.setattr(sys, "argv", ["sonic-eks", "bench", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    [plan] = seen
    return plan


def test_every_option_is_in_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [part for option in OPTIONS.items() for part in option]
    plan = planned(monkeypatch, "ws://host:5000/base/", *given)
    assert plan.target == GIVEN
    assert plan.load == Load(arrivals=Arrivals.CLOSED, generations=300, concurrency=1, seed=1)
    assert plan.slo == Slo(ttfb_ms=100, percentile=95, underrun_percent=1)
    assert (plan.max_concurrency, plan.speaking_percent) == (64, 40)


@pytest.mark.parametrize(
    ("arguments", "load", "searched"),
    [
        (["--rate", "2.5"], Load(arrivals=Arrivals.POISSON, generations=300, rate=2.5), None),
        (
            ["--rate", "2.5", "--arrivals", "constant", "--seed", "4", "--generations", "9"],
            Load(arrivals=Arrivals.CONSTANT, generations=9, rate=2.5, seed=4),
            None,
        ),
        (["--concurrency", "6"], Load(generations=300, concurrency=6), None),
        (["--max-concurrency", "6"], Load(generations=300), 6),
    ],
)
def test_the_load_is_the_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], load: Load, searched: int | None
) -> None:
    objective = ["--slo-ms", "80", "--percentile", "99", "--underrun-percent", "2"]
    plan = planned(monkeypatch, "http://host", *arguments, *objective, "--processes", "2")
    assert plan.load == load
    assert plan.max_concurrency == searched
    assert plan.slo == Slo(ttfb_ms=80, percentile=99, underrun_percent=2)
    assert (plan.processes, plan.max_processes) == (2, 2)


def ask(protocol: Protocol, port: int) -> Awaitable[None]:
    """Have one text said."""
    fields = {
        name: getattr(GIVEN, name) for name in ("model", "voice", "language", "encoding", "key")
    }
    target = Target(
        url=f"http://127.0.0.1:{port}/base",
        protocol=protocol,
        sample_rate=16000,
        buffer_delay_ms=120,
        **fields,
    )

    async def say() -> None:
        transport = transport_of(target)
        reservation = await transport.reserve()
        generation = Generation(0, "context-1", "Hello.", True, 0.0)
        await reservation.generate(generation)
        reservation.release()
        await transport.close()
        assert generation.parts

    return say()


BODY = {
    "model_id": "m-1",
    "transcript": "Hello.",
    "voice": {"mode": "id", "id": "v-1"},
    "language": "de",
    "output_format": {"container": "raw", "encoding": "pcm_f32le", "sample_rate": 16000},
}
# The vendor's SDK, cartesia 4.2.0, GenerationRequest: on a WebSocket alone a text may go on, and a
# wait for more of it be given.
WEBSOCKET = {**BODY, "context_id": "context-1", "continue": False, "max_buffer_delay_ms": 120}
AUDIO = "AAAAAAAA"


def test_a_websocket_asks_by_a_message() -> None:
    heard: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    async def answer(socket: ServerConnection) -> None:
        message = json.loads(await socket.recv())
        request = socket.request
        assert request is not None
        heard.append((request.path, dict(request.headers), message))
        about = {"context_id": message["context_id"]}
        await socket.send(json.dumps({"type": "chunk", "data": AUDIO, **about}))
        await socket.send(json.dumps({"type": "done", **about}))
        await socket.wait_closed()

    async def scenario() -> None:
        async with serve(answer, "127.0.0.1", 0) as server:
            await ask(Protocol.WEBSOCKET, next(iter(server.sockets)).getsockname()[1])

    asyncio.run(scenario())
    [(path, headers, message)] = heard
    assert path == "/base/tts/websocket"
    assert message == WEBSOCKET
    asked = {name.lower(): value for name, value in headers.items()}
    assert asked["authorization"] == f"Bearer {KEY}"
    assert asked["cartesia-version"] == "2026-08-14", "that of the SDK, 4.2.0"
    assert "sec-websocket-extensions" not in asked, "no compression"


@pytest.mark.parametrize(
    ("protocol", "path", "more", "answer"),
    [
        (
            Protocol.SSE,
            "/base/tts/sse",
            {"context_id": "context-1"},
            f'data: {{"type": "chunk", "data": "{AUDIO}"}}\n\ndata: {{"type": "done"}}\n\n',
        ),
        (Protocol.BYTES, "/base/tts/bytes", {}, "0" * 400),
    ],
)
def test_http_asks_by_a_request(
    protocol: Protocol, path: str, more: dict[str, str], answer: str
) -> None:
    heard: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        body = json.loads(await reader.readexactly(int(fields["content-length"])))
        heard.append((first, fields, body))
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n{answer}".encode())
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(serve_one, "127.0.0.1", 0) as server:
            await ask(protocol, server.sockets[0].getsockname()[1])

    asyncio.run(scenario())
    [(first, fields, body)] = heard
    assert first == f"POST {path} HTTP/1.1"
    assert body == {**BODY, **more}
    assert fields["authorization"] == f"Bearer {KEY}"
    assert fields["cartesia-version"] == "2026-08-14"
    assert fields["content-type"] == "application/json"


def test_a_listener_with_a_buffer_is_that_of_the_target() -> None:
    """0.2 s of audio, then 0.2 s of silence that 0.25 s of buffer would have hidden."""
    parts = [(0.0, 200), (0.4, 200), (0.5, 200)]
    stalls = [
        Record.of(
            Generation(0, "c", "t", True, 0.0, parts=list(parts)),
            outcome=Outcome.COMPLETED,
            detail="",
            start=0.0,
            end=0.5,
            bytes_per_second=1000,
            buffer_seconds=buffer,
        ).underruns
        for buffer in (0.0, 0.25)
    ]
    assert stalls == [1, 0]


def test_the_texts_are_of_mixed_length() -> None:
    """docs/benchmarking.md, "What a run is"."""
    lengths = [len(text) for text in TEXTS]
    assert (min(lengths), max(lengths)) == (15, 415)
    assert statistics.mean(lengths) == pytest.approx(138.4, abs=0.05)
    assert statistics.stdev(lengths) > 80
    assert all(text.isascii() and text.strip() == text for text in TEXTS)


def test_progress_names_the_run_and_how_far_it_is() -> None:
    class Line:
        def __init__(self) -> None:
            self.shown: list[str] = []
            self.show: Callable[[str], None] = self.shown.append

    line = Line()
    progress = RunProgress(line)
    progress.begin("4 in progress", 300)
    progress.advance(120, 0)
    progress.advance(299, 3)
    assert line.shown == [
        "4 in progress: 0 of 300",
        "4 in progress: 120 of 300",
        "4 in progress: 299 of 300, 3 failed",
    ]
