"""Callers that use the vendor's own SDK, and a tally of what became of each generation."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cartesia import AsyncCartesia, CartesiaError
from websockets.exceptions import WebSocketException

from sidecar.stand_in.speech import Speech
from tests.standin.pod import Pod, TargetGroup

VOICE: Any = {"mode": "id", "id": "standin"}
ENCODING = "pcm_mulaw"


@dataclass
class Tally:
    """What became of the generations.

    completed
        All audio and the end arrived.
    cut
        Audio arrived, the end did not.
    retryable
        Failed before the first byte: a request that met a closing socket, a refused connection.
    """

    completed: int = 0
    cut: int = 0
    retryable: int = 0
    on: Counter[int] = field(default_factory=Counter)
    """Completed generations by port of the API pod that served them."""
    errors: Counter[str] = field(default_factory=Counter)
    connections: Counter[int] = field(default_factory=Counter)
    """Connections opened by port of the API pod."""


class Connection:
    """One WebSocket to one pod, through the SDK."""

    def __init__(self, pod: Pod, client: AsyncCartesia) -> None:
        self.pod, self.opened = pod, time.monotonic()
        self._manager = client.tts.websocket_connect(
            websocket_connection_options={"compression": None}
        )

    async def open(self) -> None:
        """Connect."""
        self._connection = await self._manager.enter()

    async def close(self) -> None:
        """Close; a connection that is gone already is fine."""
        with contextlib.suppress(OSError, WebSocketException):
            await self._connection.close()

    async def say(
        self, transcript: str, model: str, sample_rate: int, silence: float
    ) -> tuple[int, str]:
        """Generate; return bytes of audio and what ended it: "done" or an error's name."""
        # Without a timeout a dropped socket makes the SDK's receive() wait for ever.
        context = self._connection.context(timeout=silence)
        received = 0
        try:
            await context.send(
                model_id=model,
                transcript=transcript,
                voice=VOICE,
                output_format={
                    "container": "raw",
                    "encoding": ENCODING,
                    "sample_rate": sample_rate,
                },
                continue_=False,
            )
            async for event in context.receive():
                if event.type == "chunk":
                    received += len(event.audio or b"")
                elif event.type == "error":
                    return received, str(event.error_code)
                elif event.type == "done":
                    return received, "done"
        except (OSError, WebSocketException, CartesiaError) as error:
            return received, type(error).__name__
        return received, "ended"


@dataclass
class Callers:
    """A number of callers that generate, wait, and generate again until told to stop."""

    targets: TargetGroup
    tally: Tally = field(default_factory=Tally)
    transcript: str = "x" * 100
    """Longest text; what is said is a part of it, drawn from `shortest` to all."""
    shortest: float = 0.5
    model: str = "sonic-3"
    sample_rate: int = 8000
    gap_seconds: float = 4.0
    """Longest wait between two generations; drawn evenly from 0."""
    silence_seconds: float = 3.0
    """When a caller gives up on a generation that sends nothing."""
    seed: int = 1
    clients: dict[int, AsyncCartesia] = field(default_factory=dict)
    """The SDK's clients by port; they cost tens of milliseconds each, so groups share them."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, count: int, renew_seconds: float | None) -> None:
        """Start callers.

        Parameters
        ----------
        count
            How many.
        renew_seconds
            Longest life of a caller's connection, ended between generations; 0: a connection for
            each generation; None: kept for as long as it works.
        """
        for _ in range(count):
            dice = random.Random(self.seed * 1000 + len(self.tasks))
            self.tasks.append(asyncio.create_task(self._call(dice, renew_seconds)))

    async def stop(self) -> None:
        """Let each caller finish its generation, then end."""
        self._stopping.set()
        await asyncio.gather(*self.tasks)

    async def _call(self, dice: random.Random, renew_seconds: float | None) -> None:
        connection: Connection | None = None
        await self._pause(dice.uniform(0, self.gap_seconds))
        while not self._stopping.is_set():
            connection, works = await self._generate(connection, dice.uniform(self.shortest, 1))
            wait = dice.uniform(0, self.gap_seconds)
            if connection is not None and (renew_seconds is not None or not works):
                left = connection.opened + (renew_seconds or 0) - time.monotonic()
                # The next generation would outlive the connection's time: renew before it.
                if not works or left < wait + 1.0:
                    spare = min(wait, max(left, 0)) if works else 0
                    await self._pause(spare)
                    await connection.close()
                    connection, wait = None, wait - spare
            await self._pause(wait)
        if connection is not None:
            await connection.close()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _generate(
        self, connection: Connection | None, part: float
    ) -> tuple[Connection | None, bool]:
        """One generation, on a new connection if there is none."""
        transcript = self.transcript[: max(round(len(self.transcript) * part), 1)]
        try:
            if connection is None:
                pod = self.targets.pick()
                connection = Connection(pod, self._client(pod))
                await connection.open()
                self.tally.connections[pod.port] += 1
        except (OSError, WebSocketException) as error:
            self.tally.retryable += 1
            self.tally.errors[type(error).__name__] += 1
            await self._pause(0.1)
            return None, False
        received, end = await connection.say(
            transcript, self.model, self.sample_rate, self.silence_seconds
        )
        expected = Speech(transcript, ENCODING, self.sample_rate).audio_bytes
        self._count(connection.pod, received == expected, received, end)
        return connection, end == "done"

    def _count(self, pod: Pod, whole: bool, received: int, end: str) -> None:
        if end == "done" and whole:
            self.tally.completed += 1
            self.tally.on[pod.port] += 1
            return
        self.tally.errors[end] += 1
        if received:
            self.tally.cut += 1
        else:
            self.tally.retryable += 1

    def _client(self, pod: Pod) -> AsyncCartesia:
        if pod.port not in self.clients:
            address = f"127.0.0.1:{pod.port}"
            self.clients[pod.port] = AsyncCartesia(
                api_key="standin",
                base_url=f"http://{address}",
                websocket_base_url=f"ws://{address}",
            )
        return self.clients[pod.port]
