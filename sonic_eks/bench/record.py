"""What became of one generation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sonic_eks.bench.playback import play
from sonic_eks.errors import one_line

_DETAIL_CHARACTERS = 200


class Outcome(StrEnum):
    """How a generation ended."""

    COMPLETED = "completed"
    ERROR = "error"
    """The service said so, or spoke something else."""
    REJECTED = "rejected"
    """Over capacity: status 429 or 503."""
    TIMEOUT = "timeout"
    """Nothing came for the longest wait."""
    CLOSED = "closed"
    """The connection ended before the generation did."""
    UNREACHABLE = "unreachable"
    """No connection could be made."""
    STOPPED = "stopped"
    """Ended by the client when the run was over; never counted."""


class Failure(Exception):  # noqa: N818 (an outcome, caught where generations are counted)
    """A generation that failed.

    Parameters
    ----------
    outcome : Outcome
        How.
    detail : str
        What the service or the system said, as it came; for anybody to read it is `said`.
    status : int, optional
        HTTP status, where there was one.
    """

    def __init__(self, outcome: Outcome, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.outcome, self.detail, self.status = outcome, detail, status

    def said(self, key: str) -> str:
        """Return the detail in one short line without the API key."""
        # The key first: of one that is cut or escaped the rest would remain.
        return clipped(self.detail.replace(key, "***") if key else self.detail)


def clipped(text: str) -> str:
    """Cut what a service or a program said to one line that a report can hold."""
    return one_line(text)[:_DETAIL_CHARACTERS]


def refused(status: int, detail: str) -> Failure:
    """Return the failure of an answer with an HTTP status that is no success."""
    outcome = Outcome.REJECTED if status in (429, 503) else Outcome.ERROR
    return Failure(outcome, f"status {status}: {detail}", status)


@dataclass(slots=True)
class Generation:
    """A generation while it runs. Moments are those of the event loop's clock, in seconds."""

    number: int
    context_id: str
    text: str
    counted: bool
    scheduled: float
    connect_seconds: float | None = None
    sent: float | None = None
    parts: list[tuple[float, int]] | None = None
    """Moment and bytes of each part of audio."""

    def heard(self, now: float, size: int) -> None:
        """Take a part of the audio."""
        if size:
            if self.parts is None:
                self.parts = []
            self.parts.append((now, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A generation that ended. Moments are in seconds since the start of the run.

    Attributes
    ----------
    scheduled, sent, first_audio, last_audio, end : float
        When it was due, when its request was written, when audio and its end arrived.
    connect_seconds : float or None
        How long its connection took, where one was opened for it.
    audio_seconds : float
        Length of the audio that arrived.
    longest_gap_seconds : float
        Longest time between two parts of audio.
    """

    number: int
    context_id: str
    counted: bool
    outcome: Outcome
    detail: str
    characters: int
    scheduled: float
    sent: float | None
    first_audio: float | None
    last_audio: float | None
    end: float
    connect_seconds: float | None
    audio_seconds: float
    longest_gap_seconds: float
    underruns: int
    stall_seconds: float

    @classmethod
    def of(
        cls,
        generation: Generation,
        *,
        outcome: Outcome,
        detail: str,
        start: float,
        end: float,
        bytes_per_second: int,
        buffer_seconds: float,
    ) -> Record:
        """Sum up a generation."""
        parts = generation.parts or []
        moments = [moment for moment, _ in parts]
        heard = play(
            [(moment, size / bytes_per_second) for moment, size in parts],
            buffer_seconds=buffer_seconds,
            end=end,
        )
        return cls(
            number=generation.number,
            context_id=generation.context_id,
            counted=generation.counted,
            outcome=outcome,
            detail=detail,
            characters=len(generation.text),
            scheduled=generation.scheduled - start,
            sent=_since(start, generation.sent),
            first_audio=_since(start, moments[0] if moments else None),
            last_audio=_since(start, moments[-1] if moments else None),
            end=end - start,
            connect_seconds=generation.connect_seconds,
            audio_seconds=sum(size for _, size in parts) / bytes_per_second,
            longest_gap_seconds=_longest_gap(moments),
            underruns=heard.underruns,
            stall_seconds=heard.stall_seconds,
        )

    @property
    def completed(self) -> bool:
        """Whether all of it arrived."""
        return self.outcome is Outcome.COMPLETED

    @property
    def ttfb_seconds(self) -> float:
        """Time from when it was due to its first audio; infinite when it failed, however late."""
        if not self.completed or self.first_audio is None:
            return math.inf
        return self.first_audio - self.scheduled

    @property
    def rtf(self) -> float:
        """Seconds from the request to the last audio, for each second of audio."""
        if not self.completed or self.sent is None or self.last_audio is None:
            return math.inf
        return (self.last_audio - self.sent) / self.audio_seconds

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Record:
        """Return it from plain data."""
        return cls(**{**data, "outcome": Outcome(data["outcome"])})


def _since(start: float, moment: float | None) -> float | None:
    return None if moment is None else moment - start


def _longest_gap(moments: Sequence[float]) -> float:
    return max((b - a for a, b in itertools.pairwise(moments)), default=0.0)
