"""The stand-in's model of speech: how long a generation takes, and what it sends.

Times come from `PROFILE`, the vendor's published figures for Sonic 3.5 on an H100
(docs.cartesia.ai, self-hosted hardware selection): time to first audio and real-time factor
(seconds of work for a second of audio) by generations in progress; interpolated between rows.
"""

from __future__ import annotations

import base64
import bisect
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CHARACTERS_PER_SECOND = 15.0
"""Characters that a second of English speech takes (assumed)."""

BYTES_PER_SAMPLE = {"pcm_f32le": 4, "pcm_s16le": 2, "pcm_mulaw": 1, "pcm_alaw": 1}

PROFILE = {
    # generations: time to first audio p50 and p95 in ms, real-time factor p50
    1: (50, 55, 0.10),
    2: (50, 55, 0.10),
    4: (80, 115, 0.15),
    8: (120, 165, 0.20),
    12: (125, 225, 0.20),
    16: (195, 300, 0.30),
}

_P95 = 1.6449  # standard normal


def figures(generations: int) -> tuple[float, float, float]:
    """Time to first audio p50 and p95 in ms and real-time factor at `generations` in progress."""
    counts = sorted(PROFILE)
    n = max(generations, counts[0])
    if n >= counts[-1]:
        # Past the table a GPU shares itself out.
        share = n / counts[-1]
        p50, p95, factor = PROFILE[counts[-1]]
        return p50 * share, p95 * share, factor * share
    at = bisect.bisect_right(counts, n)
    low, high = counts[at - 1], counts[at]
    part = (n - low) / (high - low)
    a, b, c = (x + (y - x) * part for x, y in zip(PROFILE[low], PROFILE[high], strict=True))
    return a, b, c


def first_audio_seconds(generations: int, dice: random.Random) -> float:
    """Draw a time to first audio: log-normal with the profile's p50 and p95."""
    p50, p95, _ = figures(generations)
    return p50 / 1000 * math.exp(dice.gauss(0, math.log(p95 / p50) / _P95))


@dataclass(frozen=True)
class Speech:
    """What a request asks to be said, and in which format."""

    transcript: str
    encoding: str = "pcm_f32le"
    sample_rate: int = 44100

    @property
    def audio_seconds(self) -> float:
        """Length of the audio in seconds."""
        return max(len(self.transcript), 1) / CHARACTERS_PER_SECOND

    @property
    def audio_bytes(self) -> int:
        """Length of the audio in bytes."""
        return round(self.audio_seconds * self.sample_rate) * BYTES_PER_SAMPLE[self.encoding]

    def chunks(self, seconds: float) -> Iterator[bytes]:
        """Audio in parts of `seconds` each, a quiet tone's worth of bytes."""
        step = max(1, round(seconds * self.sample_rate)) * BYTES_PER_SAMPLE[self.encoding]
        left = self.audio_bytes
        while left > 0:
            yield b"\x2a" * min(step, left)
            left -= step

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Speech:
        """Read a generation request of the wire protocol; raises ValueError for a bad one."""
        output = request.get("output_format") or {}
        transcript = request.get("transcript", "")
        encoding, rate = output.get("encoding", "pcm_f32le"), output.get("sample_rate", 44100)
        if not isinstance(transcript, str):
            raise ValueError("transcript is not text")
        if encoding not in BYTES_PER_SAMPLE:
            raise ValueError(f"encoding {encoding!r} is not one of {', '.join(BYTES_PER_SAMPLE)}")
        if not isinstance(rate, int) or not 100 <= rate <= 192_000:
            raise ValueError(f"sample_rate {rate!r} is not from 100 to 192000")
        return cls(transcript, encoding, rate)

    def timestamps(self) -> dict[str, list[Any]]:
        """Word timestamps at an even pace."""
        words = self.transcript.split()
        step = self.audio_seconds / max(len(words), 1)
        starts = [round(index * step, 3) for index in range(len(words))]
        return {"words": words, "start": starts, "end": [round(s + step, 3) for s in starts]}


# ---- events of the wire protocol, as the SDK's types name them


def chunk_event(context_id: str, data: str, step_ms: float) -> dict[str, Any]:
    """Audio; `data` is base64."""
    return {
        "type": "chunk",
        "context_id": context_id,
        "data": data,
        "done": False,
        "status_code": 206,
        "step_time": step_ms,
    }


def encode(audio: bytes) -> str:
    """Audio as it goes into a chunk event."""
    return base64.b64encode(audio).decode()


def done_event(context_id: str) -> dict[str, Any]:
    """End of a context."""
    return {"type": "done", "context_id": context_id, "done": True, "status_code": 200}


def flush_done_event(context_id: str, flush_id: int) -> dict[str, Any]:
    """Return the event that says that a flushed part of a context is complete."""
    return {
        "type": "flush_done",
        "context_id": context_id,
        "flush_id": flush_id,
        "flush_done": True,
        "done": False,
        "status_code": 206,
    }


def timestamps_event(context_id: str, words: dict[str, list[Any]]) -> dict[str, Any]:
    """Word timestamps."""
    return {
        "type": "timestamps",
        "context_id": context_id,
        "word_timestamps": words,
        "done": False,
        "status_code": 206,
    }


def error_event(context_id: str | None, status: int, code: str, message: str) -> dict[str, Any]:
    """Return the event of a failure, which ends its context."""
    return {
        "type": "error",
        "context_id": context_id,
        "status_code": status,
        "error_code": code,
        "title": code.replace("_", " "),
        "message": message,
        "request_id": context_id or "none",
        "done": True,
    }
