"""What is to be measured, as plain data that goes to other processes as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

BYTES_PER_SAMPLE = {"pcm_f32le": 4, "pcm_s16le": 2, "pcm_mulaw": 1, "pcm_alaw": 1}


class Protocol(StrEnum):
    """How audio is asked for."""

    WEBSOCKET = "websocket"
    SSE = "sse"
    BYTES = "bytes"


class Arrivals(StrEnum):
    """When the next generation begins."""

    CLOSED = "closed"
    """When one has ended: a fixed number is in progress."""
    POISSON = "poisson"
    """At random moments, whatever became of those before."""
    CONSTANT = "constant"
    """At even distances, whatever became of those before."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The service, and what every generation asks of it.

    Attributes
    ----------
    url : str
        ``http://host:port`` or ``https://...``, perhaps with a path in front of the service's.
    key : str
        API key. It is in no repr; whoever writes a target down leaves it out.
    buffer_delay_ms : int
        ``max_buffer_delay_ms`` of each request (WebSocket).
    timeout_seconds : float
        Longest wait for a connection, for an answer, and for the next part of audio: then it is
        a hang. Nothing else that comes meanwhile makes it longer.
    contexts_per_socket : int
        Generations that may share a WebSocket at a time.
    playback_buffer_seconds : float
        Audio that a listener collects before the sound starts.
    """

    url: str
    key: str = field(repr=False)
    protocol: Protocol = Protocol.WEBSOCKET
    model: str = "sonic-3"
    voice: str = ""
    language: str = "en"
    encoding: str = "pcm_s16le"
    sample_rate: int = 24000
    buffer_delay_ms: int = 0
    timeout_seconds: float = 10.0
    contexts_per_socket: int = 1
    playback_buffer_seconds: float = 0.0

    @property
    def bytes_per_second(self) -> int:
        """Bytes of a second of audio."""
        return BYTES_PER_SAMPLE[self.encoding] * self.sample_rate


@dataclass(frozen=True, kw_only=True)
class Load:
    """One run.

    Attributes
    ----------
    generations : int
        Generations that count.
    concurrency : int
        Generations in progress at a time (closed loop).
    rate : float
        Generations a second (open loop).
    seed : int
        Of texts and random moments.
    """

    arrivals: Arrivals = Arrivals.CLOSED
    generations: int = 300
    concurrency: int = 1
    rate: float = 1.0
    seed: int = 1

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        if self.arrivals == Arrivals.CLOSED:
            return f"{self.concurrency} in progress"
        return f"{self.rate:g} a second, {self.arrivals}"


@dataclass(frozen=True, kw_only=True)
class Slo:
    """What a run has to keep.

    Attributes
    ----------
    ttfb_ms : float
        Time to first byte of audio in milliseconds.
    percentile : float
        Percentile of generations that keeps it; failures count as infinitely late.
    underrun_percent : float
        Generations in percent that may stand still once the sound has begun.
    """

    ttfb_ms: float = 100.0
    percentile: float = 95.0
    underrun_percent: float = 1.0
