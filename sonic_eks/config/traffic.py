"""Traffic of a model, from which replicas and spare GPUs follow where they are unset."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sonic_eks.config.base import Fraction, Int, Refusal, Section

Count = Annotated[Int, Field(ge=0, le=100_000)]
Peak = Annotated[Int, Field(ge=1, le=100_000)]


class Traffic(Section):
    """What callers ask of a model, in generations in progress or in conversations."""

    peak_generations: Peak | None = None
    """Generations in progress in the busiest minutes, in the mean."""
    trough_generations: Count | None = None
    """Generations in progress in the quietest hours; unset: none."""
    ramp_generations_per_minute: Count | None = None
    """By how many they rise in a minute at the steepest; unset: slowly."""
    peak_conversations: Peak | None = None
    """Conversations at once in the busiest minutes, instead of generations."""
    trough_conversations: Count | None = None
    """Conversations at once in the quietest hours; unset: none."""
    ramp_conversations_per_minute: Count | None = None
    """By how many they rise in a minute at the steepest; unset: slowly."""
    speaking_share: Annotated[Fraction, Field(ge=0.01, le=1.0)] | None = None
    """Share of a conversation in which the service's audio plays; unset: 0.4, assumed."""
    real_time_factor: Annotated[Fraction, Field(ge=0.001, le=10.0)] | None = None
    """Seconds of work for a second of audio; unset: from the GPU's measured profile."""

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        """Either generations or conversations are given, and `trough` is at most `peak`.

        `speakingShare` and `realTimeFactor` are for conversations.
        """
        talks = self.peak_conversations is not None
        if talks == (self.peak_generations is not None):
            given = "both" if talks else None
            raise Refusal(given, "one of peakGenerations and peakConversations")
        others = (
            {
                "troughGenerations": self.trough_generations,
                "rampGenerationsPerMinute": self.ramp_generations_per_minute,
            }
            if talks
            else {
                "troughConversations": self.trough_conversations,
                "rampConversationsPerMinute": self.ramp_conversations_per_minute,
                "speakingShare": self.speaking_share,
                "realTimeFactor": self.real_time_factor,
            }
        )
        peak = "peakConversations" if talks else "peakGenerations"
        for field, value in others.items():
            if value is not None:
                raise Refusal(value, f"none beside {peak}", field=field)
        if self.trough > self.peak:
            field = "troughConversations" if talks else "troughGenerations"
            raise Refusal(
                self.trough, f"at most {peak} ({self.peak})", nearest=str(self.peak), field=field
            )
        return self

    @property
    def peak(self) -> int:
        """Generations or conversations in the busiest minutes."""
        return self.peak_conversations or self.peak_generations or 0

    @property
    def trough(self) -> int:
        """Generations or conversations in the quietest hours."""
        return self.trough_conversations or self.trough_generations or 0

    @property
    def ramp_per_minute(self) -> int:
        """By how many generations or conversations they rise in a minute."""
        return self.ramp_conversations_per_minute or self.ramp_generations_per_minute or 0
