"""The API server's way to its workers: requests and answers over NATS."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from sidecar.stand_in.context import GenerationError, Part
from sidecar.stand_in.speech import Speech
from tests.standin.worker import CANCEL_SUBJECT, connect, request_subject


class Distributed:
    """Workers behind NATS."""

    def __init__(self, connection: Client, silence_seconds: float) -> None:
        self._connection, self._silence = connection, silence_seconds
        self._inbox = f"standin.reply.{uuid.uuid4().hex}"
        self._waiting: dict[str, asyncio.Queue[Msg]] = {}
        self._queued = self._unserviceable = 0

    @classmethod
    async def start(cls, servers: str, silence_seconds: float) -> Distributed:
        """Connect and subscribe to the answers."""
        backend = cls(await connect(servers), silence_seconds)
        await backend._connection.subscribe(f"{backend._inbox}.*", cb=backend._on_answer)
        await backend._connection.flush()
        return backend

    async def _on_answer(self, message: Msg) -> None:
        if queue := self._waiting.get(message.subject):
            queue.put_nowait(message)

    async def generate(self, model: str, text: Speech) -> AsyncGenerator[Part, None]:
        """See `api.Backend`."""
        reply = f"{self._inbox}.{uuid.uuid4().hex}"
        queue: asyncio.Queue[Msg] = asyncio.Queue()
        self._waiting[reply] = queue
        body = {
            "transcript": text.transcript,
            "encoding": text.encoding,
            "sample_rate": text.sample_rate,
        }
        self._queued += 1
        queued, finished = True, False
        try:
            await self._connection.publish(
                request_subject(model), json.dumps(body).encode(), reply=reply
            )
            for number in range(1 << 31):
                part = await self._next(queue, number)
                if queued:
                    queued, self._queued = False, self._queued - 1
                if part.get("done"):
                    finished = True
                    return
                yield Part(part["data"], part["step_ms"])
        finally:
            self._queued -= queued
            self._waiting.pop(reply, None)
            if not finished and self._connection.is_connected:
                await self._connection.publish(CANCEL_SUBJECT, reply.encode())

    async def _next(self, queue: asyncio.Queue[Msg], number: int) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._silence):
                message = await queue.get()
        except TimeoutError:
            raise GenerationError(504, "worker_silent", "no answer from the worker") from None
        if message.headers and message.headers.get("Status") == "503":
            self._unserviceable += 1
            raise GenerationError(503, "unserviceable", "no worker serves this model")
        part: dict[str, Any] = json.loads(message.data)
        if part["seq"] != number:
            raise GenerationError(500, "audio_lost", f"part {number} of the audio is missing")
        return part

    def metrics(self) -> str:
        """See `api.Backend`."""
        values = {
            "api_queue_size": self._queued,
            "api_unserviceable_requests_size": self._unserviceable,
        }
        return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in values.items())
