"""Generations over HTTP/1.1: server-sent events, and plain bytes. h11 speaks, asyncio carries."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import h11

from sonic_eks.bench import protocol
from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.record import Failure, Generation, Outcome, refused

_READ_BYTES = 65536
_ERROR_BYTES = 4096
_NOT = {
    Protocol.BYTES: ("text/", "application/json"),
    Protocol.SSE: ("text/html", "text/plain", "application/json", "audio/"),
}
"""Beginnings of content types that are no audio, and no events."""


class _Connection:
    """A connection that serves one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        at_start = self._http.our_state is h11.IDLE and self._http.their_state is h11.IDLE
        return at_start and not self.ended

    @property
    def ended(self) -> bool:
        """Whether the service has closed it, and all that it sent was read."""
        return self._reader.at_eof()

    async def post(self, target: Target, path: str, body: bytes) -> None:
        """Send a request."""
        parts = urlsplit(protocol.address(target, path))
        fields = protocol.headers(target) | {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        request = h11.Request(method="POST", target=parts.path, headers=list(fields.items()))
        data = [self._http.send(request), self._http.send(h11.Data(body))]
        data.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in data))
        await self._writer.drain()

    async def next_event(self) -> h11.Response | h11.Data | h11.EndOfMessage:
        """Return the next part of the answer; raises OSError or h11.RemoteProtocolError."""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                return event
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError("the connection ended")

    def next_request(self) -> None:
        """Make ready for another request, where the answer allows one."""
        with contextlib.suppress(h11.LocalProtocolError):
            self._http.start_next_cycle()

    def abort(self) -> None:
        """Drop it."""
        self._writer.transport.abort()


class _Turn:
    """One request on a connection."""

    def __init__(
        self, pool: HttpConnections, connection: _Connection, connect_seconds: float | None
    ) -> None:
        self._pool, self._connection = pool, connection
        self._target = pool.target
        self._wait: asyncio.Timeout
        self._until = 0.0
        self.connect_seconds = connect_seconds

    async def generate(self, generation: Generation) -> None:
        """See `protocol.Reservation`."""
        target, loop = self._target, asyncio.get_running_loop()
        sse = target.protocol is Protocol.SSE
        body = protocol.request_body(target, generation.text)
        if sse:
            body["context_id"] = generation.context_id
        generation.sent = loop.time()
        self._until = generation.sent + protocol.longest_seconds(target, generation.text)
        try:
            async with asyncio.timeout_at(generation.sent + target.timeout_seconds) as self._wait:
                await self._connection.post(
                    target, "/tts/sse" if sse else "/tts/bytes", json.dumps(body).encode()
                )
                await (self._hear_events(generation) if sse else self._hear_bytes(generation))
        except TimeoutError:
            raise protocol.hang(target, generation, loop.time()) from None
        except OSError as error:
            raise Failure(Outcome.CLOSED, f"the connection broke: {error}") from None
        except h11.RemoteProtocolError as error:
            # Its own words for an end in the middle are of states and events.
            said = "it ended within the answer" if self._connection.ended else f"no HTTP: {error}"
            raise Failure(Outcome.CLOSED, f"the connection broke: {said}") from None
        self._connection.next_request()

    def _came(self) -> None:
        """Wait anew: the answer or a part of audio came."""
        now = asyncio.get_running_loop().time()
        self._wait.reschedule(min(now + self._target.timeout_seconds, self._until))

    async def _hear_bytes(self, generation: Generation) -> None:
        loop = asyncio.get_running_loop()
        async for data in self._answer():
            generation.heard(loop.time(), len(data))
            self._came()
        if not generation.parts:
            raise Failure(Outcome.ERROR, "ended without audio")

    async def _hear_events(self, generation: Generation) -> None:
        loop = asyncio.get_running_loop()
        buffer, ended = b"", False
        async for data in self._answer():
            # A line ends in CR LF, LF or CR (HTML standard, server-sent events); LF is enough
            # once CR before it is gone, and no server sends CR alone. Its LF may be yet to come.
            buffer += data
            held = b"\r" if buffer.endswith(b"\r") else b""
            *whole, rest = buffer.removesuffix(held).replace(b"\r\n", b"\n").split(b"\n\n")
            buffer = rest + held
            before = len(generation.parts or ())
            for block in whole:
                event = _event(block)
                if event and protocol.hear(protocol.parse_event(event), generation, loop.time()):
                    ended = True
            if ended or len(generation.parts or ()) > before:
                self._came()
        if not ended:
            raise Failure(Outcome.CLOSED, "the answer ended before the generation did")

    async def _answer(self) -> AsyncIterator[bytes]:
        """Body of the answer in parts; raises Failure for an answer that is an error."""
        first = await self._connection.next_event()
        self._came()
        if not isinstance(first, h11.Response):
            raise Failure(Outcome.CLOSED, "the answer has no beginning")
        status, said = first.status_code, b""
        kind = dict(first.headers).get(b"content-type", b"").decode("latin-1").lower()
        if status < 300 and kind.startswith(_NOT[self._target.protocol]):
            wanted = "audio" if self._target.protocol is Protocol.BYTES else "events"
            raise Failure(Outcome.ERROR, f"{kind} instead of {wanted}")
        while isinstance(event := await self._connection.next_event(), h11.Data):
            if status < 300:
                yield bytes(event.data)
            elif len(said) < _ERROR_BYTES:
                said += event.data
        if status >= 300:
            raise _error(status, said)

    def release(self) -> None:
        """See `protocol.Reservation`."""
        self._pool.give_back(self._connection)


def _event(block: bytes) -> bytes:
    """Return the data of a server-sent event, nothing for a comment."""
    lines = (line for line in block.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def _error(status: int, body: bytes) -> Failure:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and status >= 400:
        return protocol.error_of({**said, "status_code": status})
    text = body.decode(errors="replace").strip()
    return refused(status, text or "no reason given")


class HttpConnections:
    """Connections that are opened when none is idle."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._parts = urlsplit(target.url)
        self._tls = protocol.tls(target)
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    async def reserve(self) -> _Turn:
        """See `protocol.Transport`."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return _Turn(self, connection, None)
            self._drop(connection)
        loop = asyncio.get_running_loop()
        before = loop.time()
        connection = await self._connect()
        self._all.add(connection)
        return _Turn(self, connection, loop.time() - before)

    async def _connect(self) -> _Connection:
        parts, seconds = self._parts, self.target.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(
                    parts.hostname,
                    parts.port or (80 if self._tls is None else 443),
                    ssl=self._tls,
                )
        except TimeoutError:
            raise Failure(Outcome.UNREACHABLE, f"no connection within {seconds:g} s") from None
        except OSError as error:
            raise Failure(Outcome.UNREACHABLE, str(error)) from None
        return _Connection(reader, writer)

    def give_back(self, connection: _Connection) -> None:
        """Take a connection back after a request."""
        if connection.usable:
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.abort()

    async def close(self) -> None:
        """See `protocol.Transport`."""
        for connection in self._all:
            connection.abort()
        self._idle.clear()
        self._all.clear()
