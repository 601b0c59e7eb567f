"""What a service may send: each answer that is none is a failure with its reason, and no crash."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.process import transport_of
from sonic_eks.bench.record import Failure, Generation, Outcome
from tests.plain_server import plain_server

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


def failure_of(handler: Handler) -> Failure:
    """What a generation of a WebSocket server fails with."""

    async def scenario() -> Failure:
        async with socket_server(handler) as url:
            with pytest.raises(Failure) as failed:
                await say(url, Protocol.WEBSOCKET)
            return failed.value

    return asyncio.run(scenario())


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
