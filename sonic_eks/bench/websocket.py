"""Generations over WebSockets: a pool of sockets, one or several contexts on each."""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from sonic_eks.bench import protocol
from sonic_eks.bench.plan import Target
from sonic_eks.bench.record import Failure, Generation, Outcome, refused

_CLOSE_SECONDS = 1.0


class _Connect(connect):
    """Follows no redirect: the service that was named is measured, and nobody else gets texts."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Return the answer as the error that it is."""
        return exc


class _Context:
    """A generation on a socket, ended by an event, by silence or with its socket."""

    def __init__(self, generation: Generation, timeout: float) -> None:
        self.generation = generation
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.last = self._loop.time()
        # One timer that looks again, instead of one for each part of audio.
        self._timer = self._loop.call_later(timeout, self._look)

    def _look(self) -> None:
        quiet = self._loop.time() - self.last
        if quiet < self._timeout:
            self._timer = self._loop.call_later(self._timeout - quiet, self._look)
        else:
            self.fail(Failure(Outcome.TIMEOUT, f"nothing came for {self._timeout:g} s"))

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
            async for message in self.connection:
                now = loop.time()
                event = protocol.parse_event(message)
                context = self.contexts.get(event.get("context_id") or "")
                if context is not None:
                    context.last = now
                    try:
                        if protocol.hear(event, context.generation, now):
                            context.finish()
                    except Failure as failed:
                        context.fail(failed)
                elif event["type"] == "error":
                    # It names no context, so it may be that of any.
                    self._fail_all(protocol.error_of(event))
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
        context = _Context(generation, self._target.timeout_seconds)
        self.contexts[generation.context_id] = context
        complete = False
        try:
            generation.sent = context.last = asyncio.get_running_loop().time()
            try:
                await self.connection.send(protocol.websocket_message(self._target, generation))
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
                with contextlib.suppress(ConnectionClosed):
                    await self.connection.send(protocol.cancel_message(generation.context_id))

    async def close(self) -> None:
        """Close it; whatever runs on it fails."""
        self.usable = False
        with contextlib.suppress(OSError, TimeoutError):
            await self.connection.close()
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
                max_size=None,
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
