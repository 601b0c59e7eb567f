"""Capacity profiles: what a GPU was seen to do, and by whom.

A profile is a YAML file, in ``profiles/`` those that the vendor publishes; `sonic-eks bench` writes
others. docs/benchmarking.md describes the fields.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AllowInfNan, Field, Strict, ValidationError, field_validator, model_validator

from sonic_eks.config.base import Int, Refusal, Section, Str
from sonic_eks.config.read import FileFault, read_mapping
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown

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
    """Generations in progress."""
    first_audio_ms: Percentiles
    """Time to first audio in milliseconds, on the profile's side."""
    rtf: Percentiles | None = None
    """Real-time factor: seconds of work for a second of audio."""
    characters_per_second: Positive | None = None
    """Characters of text that became audio in a second, all generations together."""


class Profile(Section):
    """Capacity of one GPU for one model."""

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
    dated: Annotated[Str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day on which it was measured, or was read in the document (YYYY-MM-DD)."""
    points: Annotated[tuple[Point, ...], Field(max_length=200)] = ()
    """What was seen, by rising concurrency."""
    recommended_concurrency: Concurrency | None = None
    """Generations per GPU that the source recommends: an advice, no measurement of an objective."""

    @field_validator("dated")
    @classmethod
    def _day(cls, value: str) -> str:
        """`dated` is a day of the calendar."""
        try:
            date.fromisoformat(value)
        except ValueError:
            raise Refusal(value, "a day as YYYY-MM-DD") from None
        return value

    @model_validator(mode="after")
    def _points(self) -> Self:
        """Concurrency rises, and the profile says something."""
        counts = [point.concurrency for point in self.points]
        if counts != sorted(set(counts)):
            raise Refusal(counts, "each concurrency once, rising", field="points")
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
        data = read_mapping(path)
        return Profile.model_validate(data, by_alias=True, by_name=False)
    except FileFault as fault:
        raise SonicEksError(f"{path}: {fault}") from None
    except ValidationError as error:
        raise _no_profile(str(path), error) from None


def _no_profile(source: str, error: ValidationError) -> SonicEksError:
    first = error.errors(include_url=False)[0]
    refusal = first.get("ctx", {}).get("error")
    where = ".".join(str(part) for part in first["loc"]) or "profile"
    if isinstance(refusal, Refusal):
        where = ".".join(filter(None, (where, refusal.field)))
        said = f"got {shown(refusal.given)}; allowed: {refusal.allowed}"
    else:
        said = first["msg"]
    return SonicEksError(f"{source}: {where}: {said}; see docs/benchmarking.md")


def check_names(*, gpu: str, model: str, release: str | None) -> None:
    """Refuse names that no profile can hold, before hours of measuring.

    Raises
    ------
    SonicEksError
        With the first of them.
    """
    day = date.min.isoformat()
    _profile(gpu=gpu, model=model, release=release, dated=day, recommended_concurrency=1)


def _profile(**fields: Any) -> Profile:
    try:
        return Profile(**{"side": "client", "source": "sonic-eks bench", **fields})
    except ValidationError as error:
        raise _no_profile("--profile", error) from None


def to_yaml(profile: Profile) -> str:
    """Return a profile as its file."""
    data = profile.model_dump(by_alias=True, exclude_none=True, mode="json")
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def from_result(result: dict[str, Any], *, gpu: str, release: str | None) -> Profile:
    """Return the profile of a measurement: its valid runs in closed loop without a failed point.

    Parameters
    ----------
    result : dict
        What `measure.Result.to_dict` returns.
    gpu, release : str
        What the measurement cannot see: the GPU behind the service, the vendor's release.

    Raises
    ------
    SonicEksError
        When no run can be a point of a profile.
    """
    last: dict[int, dict[str, Any]] = {}
    for one in result["runs"]:
        if one["valid"] and one["load"]["arrivals"] == "closed" and one["ttfb"]["50"]:
            last[one["load"]["concurrency"]] = one
    if not last:
        raise SonicEksError(
            "--profile: not written, there is no valid run in closed loop of which half completed",
            exit_status=PROBLEM_FOUND,
        )
    return _profile(
        gpu=gpu,
        model=result["target"]["model"],
        release=release,
        source=f"sonic-eks bench {result['version']}, {_counted(last)} generations a point or more",
        dated=result["begun"][:10],
        points=tuple(_point(count, last[count]) for count in sorted(last)),
    )


def _counted(runs: dict[int, dict[str, Any]]) -> int:
    return min(int(one["generations"]) for one in runs.values())


def _point(concurrency: int, one: dict[str, Any]) -> Point:
    return Point(
        concurrency=concurrency,
        first_audio_ms=_percentiles(one["ttfb"], 1000, 1),
        rtf=_percentiles(one["rtf"], 1, 3) if any(one["rtf"].values()) else None,
        characters_per_second=_rounded(one["characters_per_second"], 1) or None,
    )


def _percentiles(values: dict[str, float | None], factor: float, digits: int) -> Percentiles:
    # A percentile that is infinite, because so many failed, is left out, and so is one of nothing.
    known = {f"p{percent}": value for percent, value in values.items() if value}
    return Percentiles(**{name: _rounded(value * factor, digits) for name, value in known.items()})


def _rounded(value: float, digits: int) -> float:
    """Round to digits after the point; what would be nothing keeps two digits of its own."""
    return round(value, digits) or float(f"{value:.2g}")
