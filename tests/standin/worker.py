"""Stand-in for a model worker: takes generations over NATS, one GPU's worth at a time.

    python -m tests.standin.worker --nats nats://127.0.0.1:4222 --metrics-port 8080

What the vendor's worker does on SIGTERM is not public; `--on-sigterm` has what it could do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from sidecar.stand_in import web
from sidecar.stand_in.clock import Clock
from sidecar.stand_in.engine import Engine
from sidecar.stand_in.speech import Speech, encode

ON_SIGTERM = {
    "drain": "unsubscribes, finishes what it has, exits",
    "exit": "exits at once",
    "keep-taking": "goes on taking work, exits at the first moment without any",
    "ignore": "does nothing until it is killed",
}


def request_subject(model: str) -> str:
    """Subject that requests for `model` are published on."""
    return f"standin.generate.{model}"


CANCEL_SUBJECT = "standin.cancel"


class Worker:
    """One worker process."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._clock = Clock(arguments.clock)
        self._engine = Engine(
            self._clock,
            arguments.capacity,
            arguments.chunk_seconds,
            arguments.first_audio_ms,
            arguments.realtime_factor,
            os.getpid(),
        )
        self._loaded = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Load, subscribe, and work until told to stop."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)
        await web.listen(self._serve_http, "127.0.0.1", self._arguments.metrics_port)
        connection = await connect(self._arguments.nats)
        await self._clock.sleep(self._arguments.load_seconds)
        await connection.subscribe(CANCEL_SUBJECT, cb=self._on_cancel)
        subscriptions = [
            await connection.subscribe(request_subject(model), "workers", cb=self._on_request)
            for model in self._arguments.model
        ]
        await connection.flush()
        self._connection, self._loaded = connection, True
        await self._stop.wait()
        if self._arguments.on_sigterm == "drain":
            for subscription in subscriptions:
                await subscription.drain()  # type: ignore[no-untyped-call]
        await self._engine.idle.wait()
        await connection.flush()

    def _on_sigterm(self) -> None:
        way = self._arguments.on_sigterm
        if way == "exit":
            os._exit(0)
        elif way in ("drain", "keep-taking"):
            self._stop.set()

    async def _serve_http(self, request: web.Request) -> None:
        if request.path == "/metrics":
            text = self._engine.metrics()
            if not self._loaded:
                text = text.replace(
                    f"inferno_worker_capacity {self._engine.capacity}", "inferno_worker_capacity 0"
                )
            await request.answer(200, text)

    async def _on_request(self, message: Msg) -> None:
        body = json.loads(message.data)
        # The callback must not wait: it is called for one message after another.
        task = asyncio.create_task(self._generate(message.reply, body))
        self._tasks[message.reply] = task
        task.add_done_callback(lambda _: self._tasks.pop(message.reply, None))

    async def _on_cancel(self, message: Msg) -> None:
        if task := self._tasks.get(message.data.decode()):
            task.cancel()

    async def _generate(self, reply: str, body: dict[str, Any]) -> None:
        text = Speech(body["transcript"], body["encoding"], body["sample_rate"])
        number = 0
        async for audio, step_ms in self._engine.say(text):
            part = {"seq": number, "data": encode(audio), "step_ms": round(step_ms, 3)}
            await self._connection.publish(reply, json.dumps(part).encode())
            number += 1
        await self._connection.publish(reply, json.dumps({"seq": number, "done": True}).encode())


async def connect(servers: str) -> Client:
    """Connect to the first of several comma-separated servers, to the next when it goes."""
    return await nats.connect(
        servers.split(","),
        dont_randomize=True,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.05,
        connect_timeout=5,
        error_cb=_ignore,
    )


async def _ignore(_error: Exception) -> None:
    """Connections come and go here; nats-py would print each."""


def main() -> None:
    """Run one worker."""
    parser = argparse.ArgumentParser(description="stand-in for a model worker")
    add = parser.add_argument
    add("--nats", required=True, help="servers, separated by commas")
    add("--metrics-port", type=int, required=True)
    add("--model", action="append", required=True, help="model id; repeat")
    add("--on-sigterm", choices=list(ON_SIGTERM), default="drain")
    add("--capacity", type=int, default=8)
    add("--load-seconds", type=float, default=0.0, help="time until the model is loaded")
    add("--first-audio-ms", type=float, help="instead of the profile's")
    add("--realtime-factor", type=float, help="instead of the profile's")
    add("--chunk-seconds", type=float, default=0.5)
    add("--clock", type=float, default=1.0, help="how many times faster than the wall clock")
    asyncio.run(Worker(parser.parse_args()).run())


if __name__ == "__main__":
    main()
