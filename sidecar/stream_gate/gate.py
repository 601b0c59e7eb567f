"""The loop that looks, and the HTTP server that answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import NoReturn

from sidecar.stream_gate.drain import Drain
from sidecar.stream_gate.log import log
from sidecar.stream_gate.settings import Settings
from sidecar.stream_gate.warm_up import WarmUp
from sidecar.stream_gate.watch import LoadWatch, SocketWatch, State, Watch

_REQUEST_TIMEOUT_SECONDS = 5.0
_MAX_UNFINISHED_REQUESTS = 128
_YOUNG_SECONDS = 1.0
_STALE_SECONDS = 10.0
_PROGRESS_SECONDS = 15.0


class Gate:
    """Looks at the pod again and again and answers HTTP."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._warm_up = _warm_up_of(settings)
        self._watches: dict[str, Watch] = {}
        idle = settings.idle_seconds
        if settings.watch_port:
            own = self._warm_up.own_ports if self._warm_up is not None else ()
            self._watches["sockets"] = SocketWatch(settings.watch_port, idle, own)
        if settings.load_url:
            self._watches["load"] = LoadWatch(settings.load_url, settings.load_metric, idle)
        self._seen: dict[str, State] = {}
        self._drain: Drain | None = None
        self._over = asyncio.Event()
        self._failed_looks = 0
        self._cut = 0
        self._unfinished: dict[asyncio.StreamWriter, float] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._ticked = clock()
        self._progress = 0.0

    # ---- looking

    async def warm_up(self) -> None:
        """Have the server answer what it must before callers come."""
        if self._warm_up is not None:
            await self._warm_up.run(log, lambda: self.draining)

    async def watch(self) -> NoReturn:
        """Look for ever; a fault of one look never stops the next, nor the drain's clock."""
        while True:
            begin = self._clock()
            for name, watch in self._watches.items():
                await self._look(name, watch)
            self._ticked = self._clock()
            if self._drain is not None and not self._drain.reason:
                self._advance(self._drain)
            spent = self._clock() - begin
            await asyncio.sleep(max(self._settings.poll_seconds - spent, 0.01))

    async def _look(self, name: str, watch: Watch) -> None:
        try:
            state = await watch.look(self._clock())
        except Exception as error:
            log("look_failed", watch=name, error=type(error).__name__)
            state = State(self._clock(), "none")
        before = self._seen.get(name)
        if before is None or before.source != state.source:
            log("source", watch=name, source=state.source)
        self._failed_looks += state.source == "none"
        self._seen[name] = state

    def _advance(self, drain: Drain) -> None:
        # The server's own count, where it can be read, knows more than the sockets do.
        states = [self._seen[name] for name in ("load", "sockets") if name in self._seen]
        state = next((state for state in states if state.source != "none"), states[0])
        if drain.step(state):
            self._cut += drain.cut or 0
            log("drain_ended", reason=drain.reason, seconds=round(drain.seconds, 2), cut=drain.cut)
            self._over.set()
        elif drain.seconds - self._progress >= _PROGRESS_SECONDS:
            self._progress = drain.seconds
            left = None if state.connections is None else len(state.connections)
            log("draining", seconds=round(drain.seconds), active=state.active, connections=left)

    def begin_drain(self) -> Drain:
        """Begin a drain, or the times of the one that is running anew.

        A call that joins has the whole of the drain's times still before it: a stray one, before
        the kubelet's, takes nothing from the streams.
        """
        if self._drain is None or self._drain.reason:
            self._drain = Drain(
                self._clock(),
                self._settings.propagation_seconds,
                self._settings.budget_seconds,
                waited=False,
            )
            self._over = asyncio.Event()
            self._progress = 0.0
            log("drain_started", budget_seconds=self._settings.budget_seconds)
            if self._warm_up is not None:
                self._warm_up.pause()
        else:
            self._drain.again(self._clock())
            self._progress = 0.0
        return self._drain

    async def drain(self) -> Drain:
        """Begin a drain, and wait until it is over."""
        drain, over = self.begin_drain(), self._over
        drain.waited = True
        await over.wait()
        return drain

    # ---- answering

    @property
    def draining(self) -> bool:
        """Whether a drain is running."""
        return self._drain is not None and not self._drain.reason

    def metrics(self) -> str:
        """Prometheus' text format; a value that could not be read is left out, never 0."""
        lines: list[str] = []

        def add(name: str, kind: str, text: str, value: float | None) -> None:
            if value is not None:
                lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
                lines.append(f"{name} {round(value, 3)}")

        sockets, load = self._seen.get("sockets"), self._seen.get("load")
        if sockets is not None and sockets.connections is not None:
            total, active = len(sockets.connections), sockets.active
            add("sonic_open_connections", "gauge", "Open client connections.", total)
            add("sonic_active_streams", "gauge", "Connections with payload just now.", active)
        if load is not None:
            add("sonic_load", "gauge", "Generations in progress.", load.active)
        drain = self._drain
        add("sonic_draining", "gauge", "1 while a drain runs.", float(self.draining))
        add("sonic_drain_seconds", "gauge", "Age of the drain.", drain.seconds if drain else 0)
        add("sonic_streams_cut_total", "counter", "Streams active at a budget's end.", self._cut)
        failed = self._failed_looks
        add("sonic_gate_failed_looks_total", "counter", "Looks that could not be made.", failed)
        name = "sonic_gate_source"
        lines.extend((f"# HELP {name} Where the values come from.", f"# TYPE {name} gauge"))
        for watch, state in self._seen.items():
            lines.append(f'{name}{{watch="{watch}",source="{state.source}"}} 1')
        return "\n".join(lines) + "\n"

    def _answer(self, path: str) -> tuple[int, str, str]:
        fresh = self._clock() - self._ticked < _STALE_SECONDS
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self.metrics()
        if path == "/live":
            # A restart would end a drain, and with it the streams it protects.
            return (200, "text/plain", "ok\n") if fresh or self.draining else _STALE
        if path == "/ready":
            # A gate that cannot read the pod still drains, to the budget: the pod stays in use.
            if self._warm_up is not None and not self._warm_up.done:
                return 503, "text/plain", "the server is not warm yet\n"
            return (200, "text/plain", "ok\n") if fresh and self._seen else _STALE
        if path == "/begin-drain":
            self.begin_drain()
            return 200, "text/plain", "draining\n"
        return 404, "text/plain", "/drain, /begin-drain, /metrics, /ready or /live\n"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close; slow, broken and idle clients are dropped."""
        # Tasks of our own: those of asyncio's streams print a traceback when they are cancelled.
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        now = self._clock()
        self._unfinished[writer] = now
        while len(self._unfinished) > _MAX_UNFINISHED_REQUESTS:
            oldest, since = next(iter(self._unfinished.items()))
            if now - since < _YOUNG_SECONDS:
                break  # a burst, whose requests are about to be read
            self._unfinished.pop(oldest)
            oldest.transport.abort()
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            self._unfinished.pop(writer, None)
            await _send(writer, *await self._respond(head))
        except asyncio.LimitOverrunError:
            with contextlib.suppress(OSError, TimeoutError):
                await _send(writer, 431, "text/plain", "request too long\n")
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._unfinished.pop(writer, None)
            writer.close()

    async def _respond(self, head: bytes) -> tuple[int, str, str]:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return 400, "text/plain", "not HTTP/1\n"
        if words[0] != b"GET":
            return 405, "text/plain", "GET only\n"
        path = words[1].split(b"?", 1)[0].decode("latin-1")
        if path != "/drain":
            return self._answer(path)
        done = await self.drain()
        body = {"reason": done.reason, "seconds": round(done.seconds, 2), "cut": done.cut}
        return 200, "application/json", json.dumps(body) + "\n"


def _warm_up_of(settings: Settings) -> WarmUp | None:
    if settings.warm_up_url is None:
        return None
    return WarmUp(
        settings.warm_up_url,
        settings.warm_up_body,
        settings.warm_up_requests,
        settings.warm_up_key_file,
    )


_STALE = (503, "text/plain", "no fresh look at the pod\n")


async def _send(writer: asyncio.StreamWriter, status: int, kind: str, body: str) -> None:
    data = body.encode()
    head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}\r\nContent-Type: {kind}\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
    async with asyncio.timeout(_REQUEST_TIMEOUT_SECONDS):
        await writer.drain()
