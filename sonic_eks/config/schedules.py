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

# In Debian's folder of zones, and none: a cluster has its own, or none.
_NO_ZONES = {"localtime", "Factory"}

_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}

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
        known = available_timezones() - _NO_ZONES
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
        """`start` and `end` have five fields; lists, ranges, steps and names of days are fine.

        The day is one that its months have.
        """
        parts = value.split()
        if len(parts) != len(_FIELDS) or value != " ".join(parts):
            raise Refusal(
                value, "five fields with one space between them, such as 30 7 * * 1-5", nearest=None
            )
        for part, (what, low, high, names) in zip(parts, _FIELDS, strict=True):
            if not all(_is_entry(entry, low, high, names) for entry in part.split(",")):
                raise Refusal(value, f"{what}: {low} to {high}, *, lists, ranges or steps")
        if not _occurs(value):
            # KEDA takes a start that never comes for one that has come.
            raise Refusal(value, "a day that its months have")
        return value

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """`start` and `end` differ, in more than how they are written."""
        if _moments(self.start) == _moments(self.end):
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


def _moments(cron: str) -> tuple[frozenset[int], ...]:
    """Return what each field stands for."""
    return tuple(
        frozenset().union(*(_entries(entry, low, high, names) for entry in part.split(",")))
        for part, (_, low, high, names) in zip(cron.split(), _FIELDS, strict=True)
    )


def _entries(text: str, low: int, high: int, names: tuple[str, ...]) -> range:
    span, slash, step = text.partition("/")
    first, dash, last = span.partition("-")
    if span in ("*", "?"):
        begin, end = low, high
    else:
        begin = _number(first, low, names) or 0
        # From a single number a step goes on to the end.
        end = (_number(last, low, names) or 0) if dash else high if slash else begin
    return range(begin, end + 1, int(step or 1))


def _occurs(cron: str) -> bool:
    """Tell whether there is such a day: of the 30th of February there is none."""
    *_, days, months, _ = _moments(cron)
    # Where a day of the week is asked for, too, either will do (cron(5)).
    any_weekday = not {"*", "?"}.isdisjoint(cron.rsplit(maxsplit=1)[-1].split(","))
    longest = max(_LONGEST_MONTHS.get(month, 31) for month in months)
    return not any_weekday or min(days) <= longest
