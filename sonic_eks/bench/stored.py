"""A result that an earlier `bench --json` printed, read back: nothing in it is taken on trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonic_eks.bench.plan import Arrivals
from sonic_eks.errors import SonicEksError

Figure = Annotated[float, Field(ge=0, le=1e9)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Percent = Literal["50", "90", "95", "99"]


class _Part(BaseModel):
    """A part of a result; what nobody reads may be anything."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Percentiles(_Part):
    p50: Figure | None = Field(alias="50")
    p90: Figure | None = Field(alias="90")
    p95: Figure | None = Field(alias="95")
    p99: Figure | None = Field(alias="99")


class _Nothing(_Part):
    """No percentiles, since nothing was measured."""

    model_config = ConfigDict(extra="forbid")


class _Load(_Part):
    arrivals: Annotated[Arrivals, Field(strict=False)]
    generations: Count
    concurrency: Count
    rate: Figure


class _Run(_Part):
    load: _Load
    valid: bool
    slo_kept: bool = Field(alias="sloKept")
    examples: dict[str, str]
    generations: Annotated[Count, Field(ge=1)]
    failures: dict[str, Count]
    failures_outside: dict[str, Count]
    ttfb: _Percentiles
    rtf: _Percentiles
    connect: _Percentiles | _Nothing
    stuttering: Count
    in_progress: Figure
    characters_per_second: Figure
    lag: Figure


class _Target(_Part):
    url: str
    protocol: str
    model: str
    encoding: str
    sample_rate: Count
    buffer_delay_ms: Count
    contexts_per_socket: Count


class _Slo(_Part):
    ttfb_ms: Figure
    percentile: Figure
    underrun_percent: Figure


class _Capacity(_Part):
    generations: Count
    at_least: bool = Field(alias="atLeast")
    on_average: Figure = Field(alias="conversationsOnAverage")
    alone: Count = Field(alias="conversationsAlone")


class _Result(_Part):
    version: str
    begun: str
    target: _Target
    slo: _Slo
    speaking_percent: Figure = Field(alias="speakingPercent")
    runs: Annotated[list[_Run], Field(min_length=1)]
    capacity: _Capacity | None
    problems: list[str]


def read_result(path: Path) -> dict[str, Any]:
    """Return a result as `measure.Result.to_dict` gave it.

    Raises
    ------
    SonicEksError
        When the file cannot be read or is anything else, with the first fault.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text("utf-8"))
        _Result.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _no_result(path, f" ({where}: {first['msg']})" if where else "") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SonicEksError(f"--read {path}: cannot be read: {reason}") from None
    except (ValueError, RecursionError):
        raise _no_result(path, "") from None
    return data


def _no_result(path: Path, why: str) -> SonicEksError:
    return SonicEksError(f"--read {path}: not the JSON that `sonic-eks bench --json` prints{why}")
