"""Times at which more workers are wanted, whatever the demand is: KEDA's cron trigger."""

from __future__ import annotations

import re
from typing import Annotated, Self
from zoneinfo import available_timezones

from pydantic import Field, field_validator, model_validator

from sonic_eks.config.base import Int, Refusal, Section, Str

_NAME = r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
_ZONE = r"^[A-Za-z][A-Za-z0-9_+/-]{0,63}$"

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

# KEDA documentation, "Cron" scaler: the five fields of robfig/cron, whose Sunday is 0 alone.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)

Replicas = Annotated[Int, Field(ge=1, le=500)]
Cron = Annotated[Str, Field(max_length=100)]


class Schedule(Section):
    """A time of the day or the week at which workers are wanted before their callers come."""

    name: Annotated[Str, Field(pattern=_NAME)]
    """Name of the schedule."""
    timezone: Annotated[Str, Field(pattern=_ZONE)]
    """Time zone of `start` and `end` by its IANA name, such as Europe/Berlin."""
    start: Cron
    """When it begins: minute, hour, day of the month, month and day of the week, as in cron."""
    end: Cron
    """When it ends, written the same way; from then on scaling follows demand alone."""
    replicas: Replicas
    """Worker pods at least between the two."""
    models: Annotated[tuple[Str, ...], Field(max_length=20)] = ()
    """Names of the models that it is for; empty: each model."""

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        """`timezone` is the IANA name of a time zone, where this machine has a list of them."""
        known = available_timezones()
        if known and value not in known:
            lower = {name.lower(): name for name in known}
            raise Refusal(
                value,
                "the IANA name of a time zone, such as Europe/Berlin or UTC",
                nearest=lower.get(value.lower()),
            )
        return value

    @field_validator("start", "end")
    @classmethod
    def _cron(cls, value: str) -> str:
        """`start` and `end` have five fields; lists, ranges, steps and names of days are fine."""
        parts = value.split()
        if len(parts) != len(_FIELDS) or value != " ".join(parts):
            raise Refusal(
                value, "five fields with one space between them, such as 30 7 * * 1-5", nearest=None
            )
        for part, (what, low, high, names) in zip(parts, _FIELDS, strict=True):
            if not all(_is_entry(entry, low, high, names) for entry in part.split(",")):
                raise Refusal(value, f"{what}: {low} to {high}, *, lists, ranges or steps")
        return value

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """`start` and `end` differ."""
        if self.start == self.end:
            raise Refusal(self.end, f"another time than start ({self.start})", field="end")
        return self


def _is_entry(text: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    """Tell whether a text is one entry of a field: a number, a name, a range, *, with a step."""
    span, slash, step = text.partition("/")
    if slash and not (re.fullmatch(r"[1-9][0-9]{0,2}", step) and int(step) <= high):
        return False
    if span in ("*", "?"):
        return True
    first, dash, last = span.partition("-")
    ends = [_number(end, low, names) for end in ((first, last) if dash else (first,))]
    numbers = [end for end in ends if end is not None and low <= end <= high]
    return len(numbers) == len(ends) and numbers == sorted(numbers)


def _number(text: str, low: int, names: tuple[str, ...]) -> int | None:
    if text.lower() in names:
        return names.index(text.lower()) + low
    return int(text) if re.fullmatch(r"[0-9]{1,2}", text) else None
