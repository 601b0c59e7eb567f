"""The capacity profile of a measurement, for `scaling.profile` of a deployment."""

from __future__ import annotations

from datetime import date
from typing import Any

import yaml
from pydantic import ValidationError

from sonic_eks.config.profile import Profile, no_profile
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError


def check_names(*, gpu: str, gpus: int, model: str, release: str | None) -> None:
    """Refuse what no profile can hold, before hours of measuring.

    Raises
    ------
    SonicEksError
        With the first of them.
    """
    day = date.min.isoformat()
    _profile(gpu=gpu, gpus=gpus, model=model, release=release, dated=day, recommended_concurrency=1)


def _profile(**fields: Any) -> Profile:
    try:
        return Profile(**{"side": "client", "source": "sonic-eks bench", **fields})
    except ValidationError as error:
        raise no_profile("--profile", error) from None


def to_yaml(profile: Profile) -> str:
    """Return a profile as its file."""
    data = profile.model_dump(by_alias=True, exclude_defaults=True, mode="json")
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def from_result(result: dict[str, Any], *, gpu: str, gpus: int, release: str | None) -> Profile:
    """Return the profile of a measurement: its valid runs in closed loop without a failed point.

    Parameters
    ----------
    result : dict
        What `measure.Result.to_dict` returns.
    gpu, gpus, release : str, int, str or None
        What the measurement cannot see: the GPU behind the service and how many there are, the
        vendor's release.

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
        gpus=gpus,
        model=result["target"]["model"],
        release=release,
        source=f"sonic-eks bench {result['version']}, {_counted(last)} generations a point or more",
        dated=result["begun"][:10],
        points=tuple(_point(count, last[count]) for count in sorted(last)),
    )


def _counted(runs: dict[int, dict[str, Any]]) -> int:
    return min(int(one["generations"]) for one in runs.values())


def _point(concurrency: int, one: dict[str, Any]) -> dict[str, Any]:
    return {
        "concurrency": concurrency,
        "firstAudioMs": _percentiles(one["ttfb"], 1000, 1),
        "rtf": _percentiles(one["rtf"], 1, 3) or None,
        "charactersPerSecond": _rounded(one["characters_per_second"], 1) or None,
    }


def _percentiles(values: dict[str, float | None], factor: float, digits: int) -> dict[str, float]:
    # A percentile that is infinite, because so many failed, is left out, and so is one of nothing.
    return {
        f"p{percent}": _rounded(value * factor, digits)
        for percent, value in values.items()
        if value
    }


def _rounded(value: float, digits: int) -> float:
    """Round to digits after the point; what would be nothing keeps two digits of its own."""
    return round(value, digits) or float(f"{value:.2g}")
