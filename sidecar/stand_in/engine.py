"""The GPU that is not there: turns text into audio in the time that `speech.PROFILE` says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from sidecar.stand_in import speech
from sidecar.stand_in.clock import Clock
from sidecar.stand_in.speech import Speech


@dataclass
class Engine:
    """Generations in progress and their pace."""

    clock: Clock = field(default_factory=Clock)
    capacity: int = 8
    """Generations that it says it can process; more are taken, and all get slower."""
    chunk_seconds: float = 0.5
    """Audio in a chunk."""
    first_audio_ms: float | None = None
    """Fixed time to first audio instead of the profile's."""
    realtime_factor: float | None = None
    """Fixed real-time factor instead of the profile's."""
    seed: int = 0
    load: int = field(default=0, init=False)
    last_ttfa_seconds: float = field(default=0.0, init=False)
    last_rtf: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self.idle = asyncio.Event()
        self.idle.set()

    async def say(self, text: Speech) -> AsyncGenerator[tuple[bytes, float], None]:
        """Audio in parts, each with the milliseconds of work in it."""
        self.load += 1
        self.idle.clear()
        try:
            wait = (
                speech.first_audio_seconds(self.load, self._dice)
                if self.first_audio_ms is None
                else self.first_audio_ms / 1000
            )
            self.last_ttfa_seconds = wait
            for audio in text.chunks(self.chunk_seconds):
                await self.clock.sleep(wait)
                yield audio, wait * 1000
                factor = self.realtime_factor
                self.last_rtf = speech.figures(self.load)[2] if factor is None else factor
                wait = self.chunk_seconds * self.last_rtf
        finally:
            self.load -= 1
            if not self.load:
                self.idle.set()

    def metrics(self) -> str:
        """Return the worker's metrics; which types the vendor's have is not public: gauges here."""
        values = {
            "inferno_worker_load": self.load,
            "inferno_worker_capacity": self.capacity,
            "inferno_worker_ttfa": round(self.last_ttfa_seconds, 4),
            "inferno_worker_rtf": round(self.last_rtf, 4),
        }
        return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in values.items())
