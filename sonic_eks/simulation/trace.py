"""Traces of demand, and the generations that bring it.

A trace is a CSV file with the header ``seconds,generations``: demand in concurrent generations,
at even distances.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from sonic_eks.errors import SonicEksError, shown
from sonic_eks.simulation.serving import Floats

COLUMNS = ("seconds", "generations")

MOST_STEP_SECONDS = 900
"""A quarter of an hour: what happens in less would be hidden by more."""

LEAST_SECONDS = 1800
MOST_SECONDS = 31 * 86_400

MOST_GENERATIONS = 100_000

MOST_BYTES = 32 * 2**20
"""A point every two seconds of a month; there is no end to some files."""

MOST_ARRIVALS = 50_000_000
"""A generation takes 60 bytes while it is simulated."""

_EVEN = 1.5


@dataclass(frozen=True)
class Trace:
    """Demand by time, from second zero on; between two points it is on a straight line.

    Attributes
    ----------
    seconds, generations : ndarray, shape (n,)
        Points.
    """

    seconds: Floats
    generations: Floats

    @property
    def end_seconds(self) -> float:
        """Where it ends."""
        return float(self.seconds[-1])

    def at(self, seconds: Floats) -> Floats:
        """Return the demand; before the beginning it is that of the beginning."""
        return np.interp(seconds, self.seconds, self.generations)


def read_trace(path: Path) -> Trace:
    """Read a trace.

    Raises
    ------
    SonicEksError
        When it cannot be read or is too large, has gaps, numbers that are negative or none,
        instants that do not rise, or is too short or too long: with the line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            allowed = f"{MOST_BYTES // 2**20} MiB, so keep fewer points"
            raise SonicEksError(f"--trace {path}: got a larger file; allowed: {allowed}")
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "no CSV in UTF-8"
        raise SonicEksError(f"--trace {path}: cannot be read: {reason}") from None
    header = tuple(cell.strip() for cell in rows[0]) if rows else ()
    if header != COLUMNS:
        raise SonicEksError(
            f"{path}:1: got {shown(','.join(header))}; allowed: the header {','.join(COLUMNS)}"
        )
    points = [
        (line, *_numbers(f"{path}:{line}", row)) for line, row in enumerate(rows[1:], 2) if row
    ]
    _check(path, points)
    begin = points[0][1]
    return Trace(
        np.array([seconds - begin for _, seconds, _ in points]),
        np.array([generations for _, _, generations in points]),
    )


def _numbers(where: str, row: list[str]) -> tuple[float, float]:
    if len(row) != len(COLUMNS):
        raise SonicEksError(f"{where}: got {len(row)} columns; allowed: {' and '.join(COLUMNS)}")
    found = []
    for name, cell, most in zip(COLUMNS, row, (math.inf, MOST_GENERATIONS), strict=True):
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not (0 <= number <= most and math.isfinite(number)):
            limit = f"0 to {most}" if math.isfinite(most) else "a number, 0 or more"
            raise SonicEksError(f"{where}: {name}: got {shown(cell)}; allowed: {limit}")
        found.append(number)
    return found[0], found[1]


def _check(path: Path, points: list[tuple[int, float, float]]) -> None:
    """Refuse instants that no trace has."""
    if len(points) < 2:
        raise SonicEksError(f"{path}: got {len(points)} points; allowed: two or more")
    steps = []
    for (_, before, _), (line, after, _) in pairwise(points):
        if after <= before:
            raise SonicEksError(
                f"{path}:{line}: seconds: got {after:g} after {before:g}; allowed: more than that"
            )
        steps.append(after - before)
    usual = float(np.median(steps))
    if usual > MOST_STEP_SECONDS:
        raise SonicEksError(
            f"{path}: got a point every {usual:g} s; allowed: every {MOST_STEP_SECONDS} s or closer"
        )
    for (_, before, _), (line, after, _) in pairwise(points):
        if after - before > usual * _EVEN:
            raise SonicEksError(
                f"{path}:{line}: got a gap from {before:g} to {after:g} s, where points are"
                f" {usual:g} s apart; allowed: none, so fill it or cut the trace there"
            )
    length = points[-1][1] - points[0][1]
    if not LEAST_SECONDS <= length <= MOST_SECONDS:
        raise SonicEksError(
            f"{path}: got {length:g} s in all; allowed: {LEAST_SECONDS} to {MOST_SECONDS}"
        )


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """How long generations keep a slot: a lognormal distribution.

    Attributes
    ----------
    median_seconds : float
        Median.
    sigma : float
        Standard deviation of the natural logarithm.
    """

    median_seconds: float
    sigma: float

    @property
    def mean_seconds(self) -> float:
        """Mean."""
        return self.median_seconds * math.exp(self.sigma**2 / 2)


def draw(
    trace: Trace, lengths: Lengths, *, warm_up_seconds: float, seed: int
) -> tuple[Floats, Floats]:
    """Return arrivals by rising seconds (Poisson) and durations in seconds.

    Parameters
    ----------
    trace : Trace
        Demand.
    lengths : Lengths
        Durations. Arrivals a second are demand over their mean (Little's law).
    warm_up_seconds : float
        Seconds before second zero, at its demand.
    seed : int
        Of the draw.

    Raises
    ------
    SonicEksError
        When there are more than memory is for.
    """
    random = np.random.default_rng(seed)
    starts = np.arange(-warm_up_seconds, math.floor(trace.end_seconds))
    rates = trace.at(starts + 0.5) / lengths.mean_seconds
    if rates.sum() > MOST_ARRIVALS:
        raise SonicEksError(
            f"got a trace of {rates.sum():.3g} generations; allowed: {MOST_ARRIVALS:,}, so cut it"
        )
    counts = random.poisson(rates)
    times = np.repeat(starts, counts) + random.random(int(counts.sum()))
    durations = lengths.median_seconds * np.exp(lengths.sigma * random.standard_normal(len(times)))
    return np.sort(times), durations
