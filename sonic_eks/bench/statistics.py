"""What many generations say together. Failures stay in as infinitely late."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sonic_eks.bench.plan import Slo
from sonic_eks.bench.record import Outcome, Record

PERCENTILES = (50, 90, 95, 99)

LAG_LIMIT_SECONDS = 0.005
"""Scheduling lag of the client at its 99th percentile above which a run is not valid."""


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the nearest-rank percentile: the least value that `percent` % of all do not pass.

    Not a number when there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


FAILED_PERCENT = 1.0
"""Generations in percent that may fail: a percentile of 95 would let 5 % of all callers down."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run in numbers; times in seconds, percentiles by percent.

    Attributes
    ----------
    generations : int
        Those that count, chosen as they began: what became of them has no part in it.
    failures : dict
        Number of them by outcome.
    failures_outside : dict
        The same of those that only warmed up, or kept up the load at the end.
    ttfb, rtf, connect : dict
        Time to first byte from the scheduled send, real-time factor, time to connect. The last
        also of connections that the warm-up opened; none where `opening_lag` is too high.
    gap : dict
        Longest time between two parts of audio in a generation.
    stuttering : int
        Generations with an underrun.
    in_progress : float
        Generations in progress in the mean.
    characters_per_second, audio_per_second : float
        What the service produced, all generations together.
    busy : float
        Seconds that a generation was in progress for each second of audio.
    lag : float
        Scheduling lag of the client while generations count, 99th percentile of its worst process.
    opening_lag : float
        The same before: while a closed loop opens its connections.
    """

    generations: int
    failures: dict[str, int]
    failures_outside: dict[str, int]
    ttfb: dict[int, float]
    rtf: dict[int, float]
    connect: dict[int, float]
    gap: dict[int, float]
    underruns: int
    stuttering: int
    stall_seconds: float
    in_progress: float
    characters_per_second: float
    audio_per_second: float
    busy: float
    seconds: float
    lag: float
    opening_lag: float

    @property
    def valid(self) -> bool:
        """Whether the client was fast enough for its figures to be those of the service."""
        return self.lag <= LAG_LIMIT_SECONDS

    @property
    def failed(self) -> int:
        """Generations that failed."""
        return sum(self.failures.values())

    def misses(self, slo: Slo, ttfb_seconds: float) -> list[str]:
        """Return what of the objective it does not keep, a line each."""
        missed = []
        if not ttfb_seconds * 1000 <= slo.ttfb_ms:
            missed.append(
                f"TTFB p{slo.percentile:g} is {in_ms(ttfb_seconds)}, over {slo.ttfb_ms:g} ms"
            )
        if self.failed * 100 > FAILED_PERCENT * self.generations:
            missed.append(
                f"{self.failed} of {self.generations} generations failed, over {FAILED_PERCENT:g} %"
            )
        if self.stuttering * 100 > slo.underrun_percent * self.generations:
            missed.append(
                f"{self.stuttering} of {self.generations} generations stood still,"
                f" over {slo.underrun_percent:g} %"
            )
        return missed


def failed(record: Record) -> bool:
    """Whether the service let a caller down."""
    return record.outcome not in (Outcome.COMPLETED, Outcome.STOPPED)


def ttfb_percentile(records: Iterable[Record], percent: float) -> float:
    """Return a percentile of the time to first byte in seconds over the records that count."""
    return percentile((r.ttfb_seconds for r in records if r.counted), percent)


def summarize(records: Sequence[Record], lag: float, opening_lag: float = 0.0) -> Summary:
    """Sum up a run of which at least one generation counts."""
    counted = [record for record in records if record.counted]
    connects = [s for r in records if (s := _connect_seconds(r)) is not None]
    begin = min(record.scheduled for record in counted)
    end = max(record.end for record in counted)
    span = max(end - begin, 1e-9)
    shares = [_share_within(record, begin, end) for record in records]
    completed = [record for record in counted if record.completed]
    audio = sum(record.audio_seconds for record in completed)
    characters = sum(record.characters for record in completed)
    return Summary(
        generations=len(counted),
        failures=dict(Counter(str(r.outcome) for r in counted if not r.completed)),
        failures_outside=dict(
            Counter(str(r.outcome) for r in records if failed(r) and not r.counted)
        ),
        ttfb=_percentiles(record.ttfb_seconds for record in counted),
        rtf=_percentiles(record.rtf for record in counted),
        connect=_percentiles(connects if opening_lag <= LAG_LIMIT_SECONDS else ()),
        gap=_percentiles(r.longest_gap_seconds if r.completed else math.inf for r in counted),
        underruns=sum(record.underruns for record in counted),
        stuttering=sum(record.underruns > 0 for record in counted),
        stall_seconds=sum(record.stall_seconds for record in counted),
        in_progress=sum(
            (record.end - record.scheduled) * share
            for record, share in zip(records, shares, strict=True)
        )
        / span,
        characters_per_second=sum(
            _characters_made(record, characters / audio if audio else 0.0) * share
            for record, share in zip(records, shares, strict=True)
        )
        / span,
        audio_per_second=sum(
            record.audio_seconds * share for record, share in zip(records, shares, strict=True)
        )
        / span,
        busy=sum(r.end - r.scheduled for r in completed) / audio if audio else math.inf,
        seconds=span,
        lag=lag,
        opening_lag=opening_lag,
    )


def _characters_made(record: Record, characters_a_second: float) -> float:
    """Return the characters that became audio.

    Of a generation that the end of the run stopped, the part is told by its audio and by how many
    characters a second of audio has in the others. What failed was of no use to anybody.
    """
    if record.completed:
        return record.characters
    if record.outcome is Outcome.STOPPED:
        return min(record.audio_seconds * characters_a_second, record.characters)
    return 0.0


def _connect_seconds(record: Record) -> float | None:
    """Return how long its connection took: for ever where none could be made."""
    return math.inf if record.outcome is Outcome.UNREACHABLE else record.connect_seconds


def _share_within(record: Record, begin: float, end: float) -> float:
    """Return the share of a generation's time that lies between two moments."""
    length = record.end - record.scheduled
    if length <= 0:
        return float(begin <= record.scheduled <= end)
    return max(0.0, min(record.end, end) - max(record.scheduled, begin)) / length


def _percentiles(values: Iterable[float]) -> dict[int, float]:
    ordered = sorted(values)
    return {percent: percentile(ordered, percent) for percent in PERCENTILES} if ordered else {}


def in_ms(seconds: float) -> str:
    """Render seconds as milliseconds for people; "never" when infinite.

    >>> in_ms(0.0834)
    '83.4 ms'
    """
    return f"{seconds * 1000:.1f} ms" if math.isfinite(seconds) else "never"


def plain(value: Any) -> Any:
    """Return it as JSON can hold it: null for what is infinite or no number."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    return value
