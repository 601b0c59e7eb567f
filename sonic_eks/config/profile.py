"""Capacity profiles: what a GPU was seen to do, and by whom.

A profile is a YAML file, in ``profiles/`` those that the vendor publishes; `sonic-eks bench` writes
others. docs/benchmarking.md describes the fields.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AllowInfNan, Field, Strict, ValidationError, model_validator

from sonic_eks.config.base import Int, Refusal, Section, Str
from sonic_eks.config.faults import first_fault
from sonic_eks.config.read import FileFault, read_mapping
from sonic_eks.config.values import Day
from sonic_eks.errors import SonicEksError

_SEE = "see docs/benchmarking.md"

Positive = Annotated[float, Strict(), Field(gt=0), AllowInfNan(False)]
Concurrency = Annotated[Int, Field(ge=1, le=100_000)]


class Percentiles(Section):
    """Percentiles of a figure; one that is not known is left out."""

    p50: Positive | None = None
    """Half of the generations are at or below it."""
    p90: Positive | None = None
    """90 % are."""
    p95: Positive | None = None
    """95 % are."""
    p99: Positive | None = None
    """99 % are."""

    @model_validator(mode="after")
    def _rise(self) -> Self:
        """Percentiles rise, and there is one at least."""
        known = [value for value in (self.p50, self.p90, self.p95, self.p99) if value is not None]
        if not known or known != sorted(known):
            raise Refusal(known, "one percentile or more, none below a lower one")
        return self


class Point(Section):
    """What was seen at one concurrency."""

    concurrency: Concurrency
    """Generations in progress, on all `gpus` together."""
    first_audio_ms: Percentiles
    """Time to first audio in milliseconds, on the profile's side."""
    rtf: Percentiles | None = None
    """Real-time factor: seconds of work for a second of audio."""
    characters_per_second: Positive | None = None
    """Characters of text that became audio in a second, all generations together."""


class Profile(Section):
    """Capacity of a GPU for one model."""

    gpu: Annotated[Str, Field(max_length=80)]
    """GPU as its maker names it, such as L40S."""
    model: Annotated[Str, Field(max_length=80)]
    """Model."""
    release: Annotated[Str, Field(max_length=128)] | None = None
    """Vendor release, such as sonic-20260503; unset: not known."""
    side: Literal["client", "worker"]
    """Where first audio was measured: `client` holds network, API and NATS too, `worker` not."""
    source: Annotated[Str, Field(max_length=400)]
    """Who says so: a document, or the measurement."""
    dated: Day
    """Day on which it was measured, or was read in the document (YYYY-MM-DD)."""
    gpus: Annotated[Int, Field(ge=1, le=1000)] = 1
    """GPUs that shared the generations of each point, evenly."""
    points: Annotated[tuple[Point, ...], Field(max_length=200)] = ()
    """What was seen, by rising concurrency."""
    recommended_concurrency: Concurrency | None = None
    """Generations per GPU that the source recommends: an advice, no measurement of an objective."""

    @model_validator(mode="after")
    def _points(self) -> Self:
        """Concurrency rises, and the profile says something."""
        counts = [point.concurrency for point in self.points]
        for index, (before, count) in enumerate(pairwise(counts), start=1):
            if count <= before:
                raise Refusal(
                    count,
                    f"each concurrency once, rising: more than {before}",
                    field=f"points.{index}.concurrency",
                )
        if not counts and self.recommended_concurrency is None:
            raise Refusal((), "a point or more, or a recommendedConcurrency", field="points")
        return self


def load_profile(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    SonicEksError
        When the file cannot be read or is no profile, with the first fault.
    """
    try:
        data = read_mapping(path, begin=_SEE)
        return Profile.model_validate(data, by_alias=True, by_name=False)
    except FileFault as fault:
        raise SonicEksError(f"{path}: {fault}") from None
    except ValidationError as error:
        raise no_profile(str(path), error) from None


def no_profile(source: str, error: ValidationError) -> SonicEksError:
    """Return the first fault of what was to be a profile, in one line."""
    fault = first_fault(error, whole="profile")
    return SonicEksError(f"{source}: {fault}; {_SEE}")
