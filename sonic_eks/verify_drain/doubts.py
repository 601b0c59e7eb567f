"""Reasons other than SIGTERM for which new work may have been refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonic_eks.verify_drain.findings import CapacitySeen, OverCapacity

_ID = re.compile(r"[0-9a-fA-F-]{8,}")


def doubt(
    capacity: CapacitySeen, beside: tuple[int, int], refusals: Sequence[str], waiting: int
) -> str:
    """Return why no new work after SIGTERM says nothing about it; empty where it does.

    Parameters
    ----------
    capacity : CapacitySeen
        What was seen over capacity before.
    beside : (int, int)
        New generations served, and asked for, beside as many long ones before SIGTERM.
    refusals : sequence of str
        What each refusal of new work after SIGTERM said.
    waiting : int
        New work that waited for an answer then.
    """
    if not refusals and not waiting:
        return ""
    if capacity.together <= 1:
        return "it makes one at a time, so it may have refused new ones only for want of room"
    if not beside[0] and beside[1]:
        return "new ones were not served before SIGTERM either, so they may not have come to it"
    over = capacity.kind in (OverCapacity.REJECTS, OverCapacity.FAILS)
    if over and not waiting and all(_alike(one) == _alike(capacity.detail) for one in refusals):
        return "its refusals are those over capacity, so SIGTERM may not be their reason"
    return ""


def _alike(said: str) -> str:
    """Leave out what names one request."""
    return _ID.sub("", said)
