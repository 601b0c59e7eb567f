"""One context of the wire protocol: text comes in, perhaps in parts, events go out."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from sidecar.stand_in import speech
from sidecar.stand_in.clock import Clock
from sidecar.stand_in.faults import CHUNKS_BEFORE, SLOWNESS
from sidecar.stand_in.speech import Speech

MAX_BUFFER_DELAY_MS = 3000
"""The vendor's default of `max_buffer_delay_ms`."""


@dataclass(frozen=True)
class Part:
    """A part of the audio, base64, with the milliseconds of work in it."""

    data: str
    step_ms: float


@dataclass
class GenerationError(Exception):
    """A generation that cannot go on."""

    status: int
    code: str
    message: str


class Context:
    """Collects text until it is complete, flushed or has waited long enough; says it; says done."""

    def __init__(
        self,
        context_id: str,
        generate: Callable[[str, Speech], AsyncGenerator[Part, None]],
        clock: Clock,
        fault: str = "",
    ) -> None:
        self.context_id = context_id
        self._generate, self._clock, self._fault = generate, clock, fault
        self._inputs: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._sent = 0
        self._flushes = 0

    def feed(self, request: Mapping[str, Any]) -> None:
        """Take one request of this context."""
        self._inputs.put_nowait(request)

    @staticmethod
    def audio(event: Mapping[str, Any]) -> bytes:
        """Return the audio of a chunk event."""
        return base64.b64decode(event["data"])

    async def events(self) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Events for the client; None: drop the connection."""
        if self._fault == "hang":
            await asyncio.Event().wait()
        if self._fault == "reject":
            yield speech.error_event(self.context_id, 429, "concurrency_limited", "too many")
            return
        try:
            final = False
            while not final:
                request, flush, final = await self._text()
                async with aclosing(self._say(request)) as parts:
                    async for event in parts:
                        yield event
                if flush:
                    self._flushes += 1
                    yield speech.flush_done_event(self.context_id, self._flushes)
            yield speech.done_event(self.context_id)
        except GenerationError as failure:
            yield speech.error_event(self.context_id, failure.status, failure.code, failure.message)
        except ValueError as error:
            yield speech.error_event(self.context_id, 400, "invalid_request", str(error))

    async def _text(self) -> tuple[dict[str, Any], bool, bool]:
        """Text to say now, whether it was flushed, and whether it is the last."""
        request = dict(await self._inputs.get())
        delay_ms = request.get("max_buffer_delay_ms", MAX_BUFFER_DELAY_MS)
        deadline = asyncio.get_running_loop().time() + self._clock.real(delay_ms / 1000)
        more: Mapping[str, Any] = request
        while more.get("continue") and not more.get("flush"):
            try:
                async with asyncio.timeout_at(deadline):
                    more = await self._inputs.get()
            except TimeoutError:
                return request, False, False
            request["transcript"] = str(request["transcript"]) + str(more.get("transcript", ""))
        return request, bool(more.get("flush")), not more.get("continue")

    async def _say(self, request: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any] | None, None]:
        text = Speech.of(request)
        if not text.transcript:
            return
        if request.get("add_timestamps"):
            yield speech.timestamps_event(self.context_id, text.timestamps())
        async with aclosing(self._generate(str(request.get("model_id", "")), text)) as parts:
            async for part in parts:
                if self._fault == "slow" and self._sent:
                    await self._clock.sleep(part.step_ms / 1000 * SLOWNESS)
                if self._fault in ("stall", "close") and self._sent >= CHUNKS_BEFORE:
                    if self._fault == "close":
                        yield None
                    await asyncio.Event().wait()
                self._sent += 1
                yield speech.chunk_event(self.context_id, part.data, part.step_ms)
