"""What a service may send: each answer that is none is a failure with its reason, and no crash."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.utils import accept_key

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.process import transport_of
from sonic_eks.bench.record import Failure, Generation, Outcome
from tests.plain_server import plain_server

# Cases wait until a generation is late.
pytestmark = pytest.mark.slow

KEY = "sk-of-the-wire"
AUDIO = "AAAA" * 16
"""48 bytes in base64."""

Handler = Callable[[ServerConnection, str], Awaitable[None]]


@asynccontextmanager
async def socket_server(handler: Handler) -> AsyncIterator[str]:
    """Serve WebSockets; the handler gets each connection and the context of its first message."""

    async def first(connection: ServerConnection) -> None:
        await handler(connection, json.loads(await connection.recv())["context_id"])

    async with serve(first, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def say(
    url: str, protocol: Protocol, *, timeout: float = 0.5, text: str = "Hi."
) -> Generation:
    """Have a text said; raises Failure."""
    target = Target(url=url, key=KEY, protocol=protocol, timeout_seconds=timeout)
    transport = transport_of(target)
    generation = Generation(0, "c-1", text, True, 0.0)
    try:
        async with asyncio.timeout(20):
            reservation = await transport.reserve()
            try:
                await reservation.generate(generation)
            finally:
                reservation.release()
    finally:
        await transport.close()
    return generation


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize("before", [0, 170, 199, 1000])
def test_the_key_and_controls_are_in_no_failure(protocol: Protocol, before: int) -> None:
    """The key is gone wherever it stands, also where the text is cut in the middle of it."""
    body = json.dumps({"title": "x" * before + KEY + "\n\x1b[31m" + KEY}, ensure_ascii=False)
    head = f"HTTP/1.1 429 Busy\r\nContent-Length: {len(body)}\r\n\r\n"
    with plain_server((head + body).encode()) as port, pytest.raises(Failure) as failed:
        asyncio.run(say(f"http://127.0.0.1:{port}", protocol))
    said = failed.value.said(KEY)
    assert said.startswith("status 429: ")
    assert len(said) <= 200
    assert said.isprintable()
    assert KEY[:5] not in said
    assert ("***" in said) == (before < 199)


def answer_of(pieces: Callable[[], Iterator[bytes]], pause: float = 0.0) -> Any:
    """A server that answers a request by pieces, with a pause after each."""

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
        writer.close()

    return asyncio.start_server(serve_one, "127.0.0.1", 0)


async def say_http(
    pieces: Callable[[], Iterator[bytes]],
    protocol: Protocol,
    *,
    pause: float = 0.0,
    timeout: float = 0.5,
    text: str = "Hi.",
) -> Generation:
    async with await answer_of(pieces, pause) as server:
        port = server.sockets[0].getsockname()[1]
        return await say(f"http://127.0.0.1:{port}", protocol, timeout=timeout, text=text)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n"
EVENTS = HEAD % b"text/event-stream"
RAW = HEAD % b"audio/raw"
CHUNK = b'data: {"type": "chunk", "data": "%s"}\n\n' % AUDIO.encode()


@pytest.mark.parametrize(
    ("protocol", "first", "again"),
    [
        (Protocol.SSE, EVENTS, b": still here\n\n"),
        (Protocol.SSE, EVENTS, b'data: {"type": "timestamps"}\n\n'),
        (Protocol.SSE, EVENTS + CHUNK, b": still here\n\n"),
        (Protocol.SSE, b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        (Protocol.BYTES, b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        (Protocol.BYTES, b"HTTP/1.1 500 Oops\r\n\r\n", b"x"),
    ],
)
def test_what_is_no_audio_does_not_keep_a_generation_alive(
    protocol: Protocol, first: bytes, again: bytes
) -> None:
    def pieces() -> Iterator[bytes]:
        yield first
        yield from itertools.repeat(again)

    with pytest.raises(Failure) as failed:
        asyncio.run(say_http(pieces, protocol, pause=0.05, timeout=0.3, text="x" * 100))
    assert (failed.value.outcome, failed.value.detail) == (Outcome.TIMEOUT, "no audio for 0.3 s")


@pytest.mark.parametrize("first", [[], [{"type": "chunk", "data": AUDIO}]])
def test_what_is_no_audio_does_not_keep_a_context_alive(first: list[dict[str, str]]) -> None:
    async def handler(connection: ServerConnection, context: str) -> None:
        events = itertools.chain(first, itertools.repeat({"type": "timestamps"}))
        for event in events:
            await connection.send(json.dumps({**event, "context_id": context}))
            await asyncio.sleep(0.05)

    failure = failure_of(handler, text="x" * 100)
    assert (failure.outcome, failure.detail) == (Outcome.TIMEOUT, "no audio for 0.5 s")


def test_audio_without_end_is_a_hang() -> None:
    """Three characters: 0.6 s more than the longest wait."""

    async def handler(connection: ServerConnection, context: str) -> None:
        while True:
            await connection.send(
                json.dumps({"type": "chunk", "data": AUDIO, "context_id": context})
            )
            await asyncio.sleep(0.05)

    failures = [failure_of(handler)]
    for protocol, head, part in ((Protocol.SSE, EVENTS, CHUNK), (Protocol.BYTES, RAW, b"\0" * 48)):

        def pieces(head: bytes = head, part: bytes = part) -> Iterator[bytes]:
            yield head
            yield from itertools.repeat(part)

        with pytest.raises(Failure) as failed:
            asyncio.run(say_http(pieces, protocol, pause=0.05))
        failures.append(failed.value)
    for failure in failures:
        assert (failure.outcome, failure.detail) == (
            Outcome.TIMEOUT,
            "not complete within 1.1 s",
        )


@pytest.mark.parametrize("protocol", list(Protocol))
def test_slow_audio_is_no_hang(protocol: Protocol) -> None:
    """A part every 0.3 s, twice the longest wait in all."""

    async def handler(connection: ServerConnection, context: str) -> None:
        for event in [{"type": "chunk", "data": AUDIO}] * 4 + [{"type": "done"}]:
            await connection.send(json.dumps({**event, "context_id": context}))
            await asyncio.sleep(0.3)

    def pieces() -> Iterator[bytes]:
        sse = protocol is Protocol.SSE
        yield EVENTS if sse else RAW
        yield from [CHUNK if sse else b"\0" * 48] * 4
        if sse:
            yield b'data: {"type": "done"}\n\n'

    async def scenario() -> Generation:
        if protocol is Protocol.WEBSOCKET:
            async with socket_server(handler) as url:
                return await say(url, protocol, text="x" * 100)
        return await say_http(pieces, protocol, pause=0.3, text="x" * 100)

    assert sum(size for _, size in asyncio.run(scenario()).parts or ()) == 4 * 48


def failure_of(handler: Handler, *, text: str = "Hi.") -> Failure:
    """What a generation of a WebSocket server fails with."""

    async def scenario() -> Failure:
        async with socket_server(handler) as url:
            with pytest.raises(Failure) as failed:
                await say(url, Protocol.WEBSOCKET, text=text)
            return failed.value

    return asyncio.run(scenario())


@pytest.mark.parametrize("data", ["hello world!", "AAA", "AAA=AAAA", "ääää", "=", "====", 7, None])
def test_a_chunk_that_is_no_base64_is_an_error(data: object) -> None:
    async def handler(connection: ServerConnection, context: str) -> None:
        await connection.send(json.dumps({"type": "chunk", "data": data, "context_id": context}))
        await connection.send(json.dumps({"type": "done", "context_id": context}))
        await connection.wait_closed()

    failure = failure_of(handler)
    assert failure.outcome is Outcome.ERROR
    assert failure.detail in ("a chunk without audio", "a chunk whose audio is no base64")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_wherever_they_are_cut(end: bytes, size: int) -> None:
    """Two chunks and the end, in pieces of a size: a piece may end between CR and LF."""
    lines = [b": hello", b"", CHUNK.strip(), b"", b"event: x", CHUNK.strip(), b""]
    body = end.join([*lines, b'data: {"type": "done"}', b"", b""])

    def pieces() -> Iterator[bytes]:
        yield EVENTS
        yield from (body[at : at + size] for at in range(0, len(body), size))

    generation = asyncio.run(say_http(pieces, Protocol.SSE, pause=0.001, text="x" * 100))
    assert [size for _, size in generation.parts or ()] == [48, 48]


@pytest.mark.parametrize("context", [["c-1"], {"c-1": 1}, 1, True])
@pytest.mark.parametrize("kind", ["chunk", "done", "error"])
def test_a_context_that_is_no_text_is_no_event(kind: str, context: object) -> None:
    async def handler(connection: ServerConnection, _: str) -> None:
        await connection.send(json.dumps({"type": kind, "context_id": context, "data": AUDIO}))
        await connection.wait_closed()

    failure = failure_of(handler)
    assert failure.outcome is Outcome.ERROR
    assert failure.detail == "an answer that is no event of the protocol"


@pytest.mark.parametrize("status", [None, "429", True, 0, 10**9, -429, [429]])
def test_an_error_with_a_strange_status_is_an_error(status: object) -> None:
    async def handler(connection: ServerConnection, context: str) -> None:
        event = {"type": "error", "context_id": context, "status_code": status, "title": "no"}
        await connection.send(json.dumps(event))
        await connection.wait_closed()

    failure = failure_of(handler)
    assert (failure.outcome, failure.status, failure.detail) == (
        Outcome.ERROR,
        500,
        "status 500: no",
    )


@pytest.mark.parametrize("size", [1000, 2 << 20])
def test_a_refused_handshake_is_an_answer_however_long(size: int) -> None:
    head = f"HTTP/1.1 429 Busy\r\nContent-Length: {size}\r\n\r\n".encode()
    with pytest.raises(Failure) as failed:
        asyncio.run(say_http(lambda: iter([head, b"x" * size]), Protocol.WEBSOCKET, timeout=5))
    if size < 1 << 20:
        assert failed.value.outcome is Outcome.REJECTED
    else:
        assert failed.value.outcome is Outcome.ERROR
        assert "no answer to a WebSocket handshake: body too large" in str(failed.value)


async def open_socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the handshake of a WebSocket."""
    head = await reader.readuntil(b"\r\n\r\n")
    key = head.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0].decode()
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key).encode() + b"\r\n\r\n"
    )


def test_a_service_that_only_asks_is_left() -> None:
    """It sends pings and reads nothing, so that the answers to them fill every buffer."""

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await open_socket(reader, writer)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            while True:
                writer.write((b"\x89\x7d" + b"p" * 125) * 500)
                await writer.drain()

    async def scenario() -> None:
        async with asyncio.timeout(30):
            async with await asyncio.start_server(serve_one, "127.0.0.1", 0) as server:
                port = server.sockets[0].getsockname()[1]
                with pytest.raises(Failure) as failed:
                    await say(f"http://127.0.0.1:{port}", Protocol.WEBSOCKET)
                assert failed.value.outcome is Outcome.TIMEOUT

    asyncio.run(scenario())


def test_a_message_without_end_is_not_held() -> None:
    async def huge(connection: ServerConnection, context: str) -> None:
        await connection.send("x" * (17 << 20))

    async def scenario() -> None:
        async with socket_server(huge) as url:
            await say(url, Protocol.WEBSOCKET, timeout=10)

    with pytest.raises(Failure, match="message too big") as failed:
        asyncio.run(scenario())
    assert failed.value.outcome is Outcome.CLOSED


def test_a_connection_that_the_service_closes() -> None:
    async def close(connection: ServerConnection, context: str) -> None:
        await connection.close()

    async def scenario() -> None:
        async with socket_server(close) as url:
            await say(url, Protocol.WEBSOCKET)

    with pytest.raises(Failure, match=r"^the service closed the connection$"):
        asyncio.run(scenario())


@pytest.mark.parametrize("protocol", [Protocol.SSE, Protocol.BYTES])
def test_words_for_an_answer_that_breaks_off(protocol: Protocol) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    for answer in ([b"HTTP/1.1 2"], [head], []):
        with pytest.raises(Failure) as failed:
            asyncio.run(say_http(lambda answer=answer: iter(answer), protocol))
        assert failed.value.outcome is Outcome.CLOSED
        assert str(failed.value) == "the connection broke: it ended within the answer"


def test_a_page_is_no_stream_of_events() -> None:
    pieces = [HEAD % b"text/html; charset=utf-8", b"<html>"]
    with pytest.raises(Failure, match=r"^text/html; charset=utf-8 instead of events$"):
        asyncio.run(say_http(lambda: iter(pieces), Protocol.SSE))
