"""The curve that the generations per GPU rest on, with the objective and the chosen point."""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.config.gpu_profile import Basis, budget_ms, first_audio, percentiles_of
from sonic_eks.config.profile import Profile
from sonic_eks.sizing.curve import Curve, NoCurve


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A point on a curve.

    Attributes
    ----------
    profile : Profile
        What was measured, and by whom.
    curve : Curve
        First audio in milliseconds, on the profile's side of the network.
    percentile : int
        Percentile of the curve: that of the objective, or a higher one where it is missing.
    budget_ms : int
        What the objective leaves for the profile's side, in milliseconds.
    generations : int
        Generations per GPU that the deployment counts on.
    basis : str
        `measured`, `assumed` (the profile is of another GPU) or `pinned`.
    """

    profile: Profile
    curve: Curve
    percentile: int
    budget_ms: int
    generations: int
    basis: Basis

    @property
    def kept(self) -> int:
        """Generations per GPU that keep the objective on the profile's GPU; 0 for none."""
        return self.curve.within(self.budget_ms)

    @property
    def first_audio_ms(self) -> float | None:
        """First audio at the chosen concurrency; None where it was not measured."""
        return self.curve.at(self.generations)


def chosen(config: Configuration) -> Chosen | None:
    """Return the chosen point of a deployment; None where no curve tells of its objective."""
    capacity, slo = config.gpu_capacity, config.slo
    profile = capacity.profile
    if profile is None:
        return None
    percentile = next((p for p in percentiles_of(profile) if p >= slo.percentile), None)
    if percentile is None:
        return None
    try:
        curve = first_audio(profile, percentile)
    except NoCurve:
        return None
    return Chosen(
        profile=profile,
        curve=curve,
        percentile=percentile,
        budget_ms=budget_ms(profile, slo),
        generations=capacity.generations,
        basis=capacity.basis,
    )
