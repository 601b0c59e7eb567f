"""The wire protocol of the API server: HTTP and WebSocket on one port, metrics on another."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol, TextIO

from sidecar.stand_in import web
from sidecar.stand_in.clock import Clock
from sidecar.stand_in.context import Context, GenerationError, Part
from sidecar.stand_in.engine import Engine
from sidecar.stand_in.faults import Faults
from sidecar.stand_in.speech import Speech, encode


class Backend(Protocol):
    """Where audio comes from."""

    def generate(self, model: str, text: Speech) -> AsyncGenerator[Part, None]:
        """Audio of one text; raises GenerationError."""

    def metrics(self) -> str:
        """Return what it adds to the metrics."""


class Standalone:
    """The model in the same process: one container that serves directly."""

    def __init__(self, engine: Engine, over_capacity: str = "take") -> None:
        self._engine, self._over_capacity = engine, over_capacity
        self._slots = asyncio.Semaphore(engine.capacity)

    async def generate(self, model: str, text: Speech) -> AsyncGenerator[Part, None]:
        """See `Backend`."""
        if self._over_capacity == "reject" and self._slots.locked():
            raise GenerationError(429, "concurrency_limited", "all slots are taken")
        slot = contextlib.nullcontext() if self._over_capacity == "take" else self._slots
        async with slot, aclosing(self._engine.say(text)) as parts:
            async for audio, step_ms in parts:
                yield Part(encode(audio), step_ms)

    def metrics(self) -> str:
        """See `Backend`."""
        return self._engine.metrics()


_GENERATE = (("POST", "/tts/sse"), ("POST", "/tts/bytes"))


class Api:
    """The HTTP and WebSocket server."""

    def __init__(
        self,
        backend: Backend,
        clock: Clock,
        faults: Faults,
        *,
        asks_key: bool = True,
        takes_faults: bool = False,
        log: TextIO | None = None,
    ) -> None:
        self._backend, self._clock, self._faults = backend, clock, faults
        self._asks_key, self._takes_faults, self._log = asks_key, takes_faults, log
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no generation runs."""
        await self._idle.wait()

    async def serve(self, request: web.Request) -> None:
        """Answer on the service port."""
        route = (request.method, request.path)
        if request.wants_websocket and request.path == "/tts/websocket":
            if await self._authorized(request):
                await self._websocket(request.upgrade())
        elif route == ("GET", "/status"):
            await request.answer(200, "ok\n")
        elif route == ("GET", "/"):
            await request.answer(200, {"ok": True, "version": "standin"})
        elif route == ("GET", "/voices"):
            if await self._authorized(request):
                await request.answer(200, {"data": [], "has_more": False})
        elif route in _GENERATE and await self._authorized(request):
            await self._post(request)

    async def serve_metrics(self, request: web.Request) -> None:
        """Answer on the metrics port; PUT /faults sets the fault, where that is allowed."""
        if request.path == "/metrics":
            await request.answer(200, self._backend.metrics())
        elif self._takes_faults and (request.method, request.path) == ("PUT", "/faults"):
            try:
                self._faults = Faults.parse(request.body.decode())
            except ValueError as error:
                await request.answer(400, f"{error}\n")
            else:
                await request.answer(200, "ok\n")

    async def _authorized(self, request: web.Request) -> bool:
        key = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not self._asks_key or key or request.headers.get("x-api-key"):
            return True
        await request.answer(401, {"title": "unauthorized", "message": "no API key"})
        return False

    def _context(self, context_id: str) -> Context:
        return Context(context_id, self._backend.generate, self._clock, self._faults.strike())

    async def _logged(self, context: Context) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Events of a context whose request is there now; writes down when its audio began."""
        loop = asyncio.get_running_loop()
        begin, first_ms = loop.time(), None
        self._running += 1
        self._idle.clear()
        try:
            async with aclosing(context.events()) as events:
                async for event in events:
                    if first_ms is None and event is not None and event["type"] == "chunk":
                        first_ms = (loop.time() - begin) * 1000
                    yield event
        finally:
            if self._log is not None:
                line = {"context_id": context.context_id, "first_audio_ms": first_ms}
                self._log.write(json.dumps(line) + "\n")
                self._log.flush()
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _websocket(self, socket: web.WebSocket) -> None:
        contexts: dict[str, Context] = {}
        tasks: dict[str, asyncio.Task[None]] = {}

        async def run(context: Context) -> None:
            with contextlib.suppress(OSError):
                async for event in self._logged(context):
                    if event is None:
                        socket.abort()
                    else:
                        await socket.send(event)
            contexts.pop(context.context_id, None)
            tasks.pop(context.context_id, None)

        try:
            async for message in socket:
                body = json.loads(message)
                context_id = str(body.get("context_id") or uuid.uuid4())
                if body.get("cancel"):
                    contexts.pop(context_id, None)
                    if task := tasks.pop(context_id, None):
                        task.cancel()
                    continue
                if context_id not in contexts:
                    contexts[context_id] = context = self._context(context_id)
                    tasks[context_id] = asyncio.create_task(run(context))
                contexts[context_id].feed(body)
        finally:
            for task in tasks.values():
                task.cancel()

    async def _post(self, request: web.Request) -> None:
        try:
            body = request.json()
            Speech.of(body)
        except ValueError as error:
            await request.answer(400, {"title": "bad request", "message": str(error)})
            return
        context = self._context(str(body.get("context_id") or uuid.uuid4()))
        context.feed({**body, "continue": False})
        sse = request.path == "/tts/sse"
        async with aclosing(self._logged(context)) as events:
            async for event in events:
                if event is None:
                    request.writer.transport.abort()
                    return
                if event["type"] == "error" and not request.answered:
                    await request.answer(event["status_code"], event)
                    return
                if not request.answered:
                    request.begin("text/event-stream" if sse else "application/octet-stream")
                if sse:
                    await request.chunk(f"data: {json.dumps(event)}\n\n".encode())
                elif event["type"] == "chunk":
                    await request.chunk(Context.audio(event))
                elif event["type"] == "error":
                    request.writer.transport.abort()
                    return
        await request.chunk(b"")


def parser() -> argparse.ArgumentParser:
    """Return the options that every server has."""
    options = argparse.ArgumentParser(description="stand-in for the API server")
    add = options.add_argument
    add("--host", default="127.0.0.1", help="address to serve on; * for all, of both families")
    add("--port", type=int, required=True)
    add("--metrics-port", type=int, required=True)
    add("--on-sigterm", choices=["exit", "drain", "ignore"], default="exit")
    add("--no-key", action="store_true", help="serve whoever asks, without an API key")
    add("--take-faults", action="store_true", help="let PUT /faults on the metrics port set one")
    add("--fault", default="", help="name or name:share, see faults.py")
    add("--log", type=Path, help="file for the time to first audio of each generation")
    add("--capacity", type=int, default=8, help="slots of the standalone model")
    add("--over-capacity", choices=["take", "reject", "queue"], default="take")
    add("--chunk-seconds", type=float, default=0.5)
    add("--clock", type=float, default=1.0, help="how many times faster than the wall clock")
    return options


def standalone(arguments: argparse.Namespace) -> Backend:
    """Return the backend of a server that has the model in its own process."""
    engine = Engine(Clock(arguments.clock), arguments.capacity, arguments.chunk_seconds)
    return Standalone(engine, arguments.over_capacity)


async def run(arguments: argparse.Namespace, backend: Backend) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    on_sigterm = {"exit": lambda: os._exit(0), "drain": stop.set, "ignore": lambda: None}
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, on_sigterm[arguments.on_sigterm])
    api = Api(
        backend,
        Clock(arguments.clock),
        Faults.parse(arguments.fault),
        asks_key=not arguments.no_key,
        takes_faults=arguments.take_faults,
        # Open for as long as the process runs.
        log=arguments.log.open("a") if arguments.log else None,
    )
    host = None if arguments.host == "*" else arguments.host
    listener = await web.listen(api.serve, host, arguments.port)
    await web.listen(api.serve_metrics, host, arguments.metrics_port)
    await stop.wait()
    listener.close()
    await api.idle()
    os._exit(0)  # with the connections that are left, without a word for each
