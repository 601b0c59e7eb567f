"""Generations over WebSockets: a pool of sockets, one or several contexts on each."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
)

from sonic_eks.bench import protocol
from sonic_eks.bench.plan import Target
from sonic_eks.bench.record import Failure, Generation, Outcome, refused

_CLOSE_SECONDS = 1.0

_MOST_BYTES = 16 << 20
"""Largest message: a minute of audio at 48 kHz, 32 bits. Without a limit one fills the memory."""


class _Connect(connect):
    """Follows no redirect: the service that was named is measured, and nobody else gets texts."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Return the answer as the error that it is."""
        return exc


class _Context:
    """A generation on a socket, ended by an event, by silence or with its socket."""

    def __init__(self, generation: Generation, target: Target) -> None:
        self.generation, self._target = generation, target
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        generation.sent = self._last = self._loop.time()
        self._answered = False
        self._until = self._last + protocol.longest_seconds(target, generation.text)
        # One timer that looks again, instead of one for each part of audio.
        self._timer = self._loop.call_later(target.timeout_seconds, self._look)

    def _look(self) -> None:
        due = min(self._last + self._target.timeout_seconds, self._until)
        now = self._loop.time()
        if now < due:
            self._timer = self._loop.call_at(due, self._look)
        else:
            self.fail(protocol.hang(self._target, self.generation, now))

    def hear(self, event: dict[str, Any], now: float) -> None:
        """Take an event; only the first one and audio make the wait begin anew."""
        parts = len(self.generation.parts or ())
        try:
            if protocol.hear(event, self.generation, now):
                self.finish()
        except Failure as failed:
            self.fail(failed)
        if not self._answered or len(self.generation.parts or ()) > parts:
            self._answered, self._last = True, now

    def finish(self) -> None:
        """End it; all of it arrived."""
        self._timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)

    def fail(self, failure: Failure) -> None:
        """End it with a failure."""
        self._timer.cancel()
        if not self.ended.done():
            self.ended.set_exception(failure)


class _Socket:
    """One connection and the task that reads it."""

    def __init__(self, connection: ClientConnection, target: Target) -> None:
        self.connection, self._target = connection, target
        self.contexts: dict[str, _Context] = {}
        self.reserved = 0
        self.usable = True
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        failure = Failure(Outcome.CLOSED, "the service closed the connection")
        try:
            while True:
                message = await self.connection.recv(decode=False)
                now = loop.time()
                event = protocol.parse_event(message)
                context = self.contexts.get(event.get("context_id") or "")
                if context is not None:
                    context.hear(event, now)
                elif event["type"] == "error":
                    # It names no context, so it may be that of any.
                    self._fail_all(protocol.error_of(event))
        except ConnectionClosedOK:
            pass
        except ConnectionClosed as closed:
            failure = Failure(Outcome.CLOSED, f"the connection broke: {closed}")
        except Failure as failed:
            failure = failed
        finally:
            self.usable = False
            self._fail_all(failure)

    def _fail_all(self, failure: Failure) -> None:
        for context in list(self.contexts.values()):
            context.fail(failure)

    async def say(self, generation: Generation) -> None:
        """Run one context; raises Failure."""
        context = _Context(generation, self._target)
        self.contexts[generation.context_id] = context
        complete = False
        message = protocol.websocket_message(self._target, generation)
        try:
            try:
                # A service that reads nothing makes this wait as well.
                async with asyncio.timeout(self._target.timeout_seconds):
                    await self.connection.send(message)
            except TimeoutError:
                now = asyncio.get_running_loop().time()
                context.fail(protocol.hang(self._target, generation, now))
            except ConnectionClosed as closed:
                context.fail(Failure(Outcome.CLOSED, f"the connection was closed: {closed}"))
            await context.ended
            complete = True
        finally:
            context.finish()
            del self.contexts[generation.context_id]
            if not complete:
                # What else it says of this context is nobody's; the next one gets a new socket.
                self.usable = False
                with contextlib.suppress(ConnectionClosed, TimeoutError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await self.connection.send(protocol.cancel_message(generation.context_id))

    async def close(self) -> None:
        """Close it; whatever runs on it fails."""
        self.usable = False
        try:
            # The library's own limit begins when all is written, and a service that reads nothing
            # lets that take for ever.
            async with asyncio.timeout(2 * _CLOSE_SECONDS):
                await self.connection.close()
        except (OSError, TimeoutError):
            self.connection.transport.abort()
        await self._reading


class _Room:
    """Room for one context on a socket."""

    def __init__(self, pool: WebSockets, socket: _Socket, connect_seconds: float | None) -> None:
        self._pool, self._socket = pool, socket
        self.connect_seconds = connect_seconds
        socket.reserved += 1

    async def generate(self, generation: Generation) -> None:
        """See `protocol.Reservation`."""
        await self._socket.say(generation)

    def release(self) -> None:
        """See `protocol.Reservation`."""
        self._socket.reserved -= 1
        self._pool.tidy(self._socket)


class WebSockets:
    """Sockets that are opened when there is no room on those that are there."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tls = protocol.tls(target)
        self._sockets: list[_Socket] = []
        self._closing: set[asyncio.Task[None]] = set()

    async def reserve(self) -> _Room:
        """See `protocol.Transport`."""
        for socket in self._sockets:
            if socket.usable and socket.reserved < self._target.contexts_per_socket:
                return _Room(self, socket, None)
        loop = asyncio.get_running_loop()
        before = loop.time()
        socket = _Socket(await self._connect(), self._target)
        self._sockets.append(socket)
        return _Room(self, socket, loop.time() - before)

    async def _connect(self) -> ClientConnection:
        target = self._target
        try:
            return await _Connect(
                protocol.address(target, "/tts/websocket", websocket=True),
                ssl=self._tls,
                additional_headers=protocol.headers(target),
                # Audio does not compress, and to try would be most of the client's work.
                compression=None,
                max_size=_MOST_BYTES,
                # The load is measured on the way that callers take, not through a proxy.
                proxy=None,
                open_timeout=target.timeout_seconds,
                ping_interval=None,
                close_timeout=_CLOSE_SECONDS,
            )
        except TimeoutError:
            raise Failure(
                Outcome.UNREACHABLE, f"no WebSocket within {target.timeout_seconds:g} s"
            ) from None
        except InvalidStatus as error:
            response = error.response
            said = (response.body or b"").decode(errors="replace").strip()
            raise refused(response.status_code, said or response.reason_phrase) from None
        except InvalidMessage as error:
            # Such as one with a body of over a megabyte, whose status is lost.
            why = error.__cause__ or error
            raise Failure(Outcome.ERROR, f"no answer to a WebSocket handshake: {why}") from None
        except (OSError, InvalidHandshake, EOFError) as error:
            raise Failure(Outcome.UNREACHABLE, f"no WebSocket: {error}") from None

    def tidy(self, socket: _Socket) -> None:
        """Close a socket that takes nothing more and has nothing left."""
        if not socket.usable and not socket.reserved and socket in self._sockets:
            self._sockets.remove(socket)
            self._close(socket)

    def _close(self, socket: _Socket) -> None:
        # Nobody waits for the handshake of an end, least of all a generation that is due.
        task = asyncio.create_task(socket.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """See `protocol.Transport`."""
        for socket in self._sockets:
            self._close(socket)
        self._sockets.clear()
        await asyncio.gather(*self._closing)
