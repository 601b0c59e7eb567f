"""Generations per GPU at the objective: pinned, from a measured profile, or assumed.

A GPU that nobody measured is assumed to carry what the nearest measured whole GPU carries, and no
more than the vendor recommends for it. Near is by memory bandwidth: a decoder that makes audio
step by step reads its weights at each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sonic_eks.config.base import Refusal
from sonic_eks.config.profile import Profile, load_profile
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.sizing.curve import Curve, NoCurve

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration
    from sonic_eks.config.service import Slo

# GB/s. NVIDIA's data sheets of the L4, A10, L40S, RTX PRO 4500 Blackwell, A100 (40 GB: the
# lower of the two), RTX PRO 6000 Blackwell Server Edition, H100 (SXM), H200, HGX B200 and HGX
# B300; the names are those of EC2's DescribeInstanceTypes.
BANDWIDTH_GB_PER_SECOND = {
    "L4": 300,
    "A10G": 600,
    "L40S": 864,
    "RTX PRO 4500": 896,
    "A100": 1555,
    "RTX PRO Server 6000": 1597,
    "H100": 3350,
    "H200": 4800,
    "B200": 8000,
    "B300": 8000,
}

MOST_GENERATIONS = 1024
"""Bound of `scaling.generationsPerGpu`, and so of what a profile may come to."""

Basis = Literal["pinned", "measured", "assumed"]


@dataclass(frozen=True)
class GpuCapacity:
    """Generations per GPU at the objective, and what they rest on.

    Attributes
    ----------
    generations : int
        Generations in progress that keep the objective.
    basis : str
        `pinned` by the configuration, `measured` on this GPU, or `assumed` from another one.
    reason : str
        Why, in a few words.
    profile : Profile or None
        What was measured, of this GPU or of the one that stands in for it.
    below_floor : bool
        Whether the objective is below all that was measured on the GPU that stands in.
    """

    generations: int
    basis: Basis
    reason: str
    profile: Profile | None
    below_floor: bool = False


@cache
def shipped_profiles() -> tuple[Profile, ...]:
    """Return the profiles that come with the project.

    Raises
    ------
    SonicEksError
        When there are none (exit status 1).
    """
    folder = Path(str(files("sonic_eks") / "profiles"))
    found = tuple(load_profile(path) for path in sorted(folder.glob("*.yaml")))
    if not found:
        raise SonicEksError(
            f"no profiles in {folder}: the installation is not complete", exit_status=PROBLEM_FOUND
        )
    return found


def same_gpu(one: str, other: str) -> bool:
    """Whether two names are of one GPU; the maker's name, case and spaces do not count."""
    return _plain(one) == _plain(other)


def _plain(gpu: str) -> str:
    return "".join(c for c in gpu.lower().replace("nvidia", "") if c.isalnum())


def profile_of(c: Configuration) -> Profile | None:
    """Return the profile of the deployment's GPU: its own, or a shipped one with points."""
    if c.profile is not None:
        return c.profile
    return next(
        (p for p in shipped_profiles() if p.points and same_gpu(p.gpu, c.gpu_type.gpu)), None
    )


def budget_ms(profile: Profile, slo: Slo) -> int:
    """Return what the objective leaves for what the profile measured, in milliseconds."""
    return slo.ttfb_ms if profile.side == "client" else slo.ttfb_ms - slo.path_budget_ms


def first_audio(profile: Profile, percentile: int) -> Curve:
    """Return the curve of first audio in milliseconds at a percentile.

    Raises
    ------
    NoCurve
        See `Curve.of`.
    """
    name = f"p{percentile}"
    # Fewer generations than GPUs leave some of them idle, and tell no more of a busy one.
    return Curve.of(
        (
            (point.concurrency / profile.gpus, getattr(point.first_audio_ms, name))
            for point in profile.points
            if point.concurrency >= profile.gpus
        ),
        name,
    )


def percentiles_of(profile: Profile) -> list[int]:
    """Return the percentiles that every point of a curve could have: those that one has."""
    return [
        percent
        for percent in (50, 90, 95, 99)
        if any(getattr(p.first_audio_ms, f"p{percent}") is not None for p in profile.points)
    ]


def gpu_capacity(c: Configuration) -> GpuCapacity:
    """Return the generations per GPU of a configuration.

    Raises
    ------
    Refusal
        When the profile of its GPU cannot tell, or says that the objective cannot be kept.
    """
    profile, pinned = profile_of(c), c.scaling.generations_per_gpu
    if pinned is not None:
        return GpuCapacity(pinned, "pinned", "as given, whatever a profile says", profile)
    if profile is not None:
        return _measured(profile, c.slo, named=c.scaling.profile)
    return _assumed(c.gpu_type.gpu, c.slo, shipped_profiles())


def measured_release(c: Configuration) -> str | None:
    """Return the vendor release that the capacity was measured with, where another one runs."""
    capacity = c.gpu_capacity
    release = capacity.profile.release if capacity.profile else None
    if capacity.basis != "measured" or release == c.registry.sonic_release:
        return None
    return release


def _measured(profile: Profile, slo: Slo, *, named: str | None) -> GpuCapacity:
    curve = curve_of(profile, slo.percentile, named=named)
    generations = min(curve.within(budget_ms(profile, slo)), MOST_GENERATIONS)
    if not generations:
        concurrency, floor = curve.first
        path = 0 if profile.side == "client" else slo.path_budget_ms
        least = math.ceil(floor) + path
        raise Refusal(
            slo.ttfb_ms,
            f"at least {least}, as p{slo.percentile} of the {profile.gpu} is {floor:g} ms at"
            f" concurrency {concurrency:g}, the lowest measured"
            + (f", and pathBudgetMs is {path}" if path else ""),
            nearest=str(least),
            field="slo.ttfbMs",
        )
    return GpuCapacity(generations, "measured", _why(profile, curve, slo, generations), profile)


def curve_of(profile: Profile, percentile: int, *, named: str | None) -> Curve:
    """Return the curve of a profile that must have one.

    Parameters
    ----------
    profile : Profile
        The profile.
    percentile : int
        Percentile of the objective.
    named : str or None
        The file as `scaling.profile` gives it; None for a shipped one.

    Raises
    ------
    Refusal
        When it has none at the percentile.
    """
    if not profile.points:
        raise Refusal(
            named,
            f"a profile with points: this one only recommends {profile.recommended_concurrency}",
            field="scaling.profile",
        )
    known = percentiles_of(profile)
    if percentile not in known:
        has = " or ".join(map(str, known)) or "no percentile"
        raise Refusal(
            percentile,
            f"{has}: the profile of the {profile.gpu} has no other; measure p{percentile} with"
            " `sonic-eks bench`, or set scaling.generationsPerGpu",
            field="slo.percentile",
        )
    try:
        return first_audio(profile, percentile)
    except NoCurve as fault:
        given = named or f"the profile of the {profile.gpu} in profiles/"
        raise Refusal(given, f"a profile of {fault}", field="scaling.profile") from None


def _why(profile: Profile, curve: Curve, slo: Slo, generations: int) -> str:
    budget = budget_ms(profile, slo)
    path = "" if budget == slo.ttfb_ms else f" ({slo.ttfb_ms} - {slo.path_budget_ms} for the path)"
    there = curve.at(generations)
    seen = curve.first[1] if there is None else there
    text = f"{profile.gpu}: p{slo.percentile} {seen:.0f} ms at {generations}, budget {budget} ms"
    beyond = f"; {generations + 1} were not measured" if generations + 1 > curve.last[0] else ""
    return f"{text}{path}{beyond}"


def _assumed(gpu: str, slo: Slo, profiles: Sequence[Profile]) -> GpuCapacity:
    """Return what a GPU without points may carry, as the nearest whole GPU that has them."""
    nearest = _nearest(gpu, [profile for profile in profiles if profile.points])
    # First audio that keeps a higher percentile within the budget keeps a lower one there too.
    percentile = next((p for p in percentiles_of(nearest) if p >= slo.percentile), None)
    if percentile is None:
        why = f"nothing is known of p{slo.percentile}, on the {nearest.gpu} neither"
        return GpuCapacity(1, "assumed", why, nearest, below_floor=True)
    curve, budget = curve_of(nearest, percentile, named=None), budget_ms(nearest, slo)
    generations = curve.within(budget)
    if not generations:
        concurrency, floor = curve.first
        why = (
            f"the nearest measured GPU, the {nearest.gpu}, has p{percentile} {floor:g} ms at"
            f" {concurrency:g}, more than the budget of {budget} ms"
        )
        return GpuCapacity(1, "assumed", why, nearest, below_floor=True)
    reason = f"as the nearest measured GPU, {_why(nearest, curve, slo, generations)}"
    if ours := _bandwidth(gpu):
        share = ours / (_bandwidth(nearest.gpu) or ours)
        reason += f"; the {gpu} has {share * 100:.0f} % of its memory bandwidth"
    advised = _nearest(gpu, [p for p in profiles if p.recommended_concurrency is not None])
    most = advised.recommended_concurrency or generations
    if most < generations:
        advice = f"no more than the vendor recommends for the {advised.gpu}"
        return GpuCapacity(most, "assumed", f"{advice}; {reason}", nearest)
    return GpuCapacity(generations, "assumed", reason, nearest)


def _nearest(gpu: str, profiles: Sequence[Profile]) -> Profile:
    """Return the profile of the whole GPU with the nearest bandwidth; of no GPU, the slowest."""
    whole = [(there, p) for p in profiles if (there := _bandwidth(p.gpu))]
    ours = _bandwidth(gpu) or 1
    return min(whole, key=lambda one: abs(math.log(one[0] / ours)))[1]


def _bandwidth(gpu: str) -> int | None:
    """Return GB/s; None for what is no whole GPU of the table."""
    known = BANDWIDTH_GB_PER_SECOND.items()
    return next((value for name, value in known if same_gpu(name, gpu)), None)
