"""Reasons other than SIGTERM for which new work may have been refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonic_eks.verify_drain.findings import CapacitySeen, OverCapacity

_ID = re.compile(r"[0-9a-fA-F-]{8,}")


def doubt(
    capacity: CapacitySeen, pre_stop_served: tuple[int, int] | None, refusals: Sequence[str]
) -> str:
    """Return why refusals after SIGTERM say nothing about it; empty where they do.

    Parameters
    ----------
    capacity : CapacitySeen
        What was seen over capacity before.
    pre_stop_served : (int, int) or None
        New generations served, and asked for, while the preStop hook ran.
    refusals : sequence of str
        What each refusal of new work after SIGTERM said.
    """
    if not refusals:
        return ""
    if capacity.together <= 1:
        return "it makes one at a time, so it may have refused new ones only for want of room"
    if pre_stop_served is not None and not pre_stop_served[0] and pre_stop_served[1]:
        return "new ones were refused before SIGTERM too, so they may not have come to it at all"
    over = capacity.kind in (OverCapacity.REJECTS, OverCapacity.FAILS)
    if over and all(_alike(refusal) == _alike(capacity.detail) for refusal in refusals):
        return "its refusals are those over capacity, so SIGTERM may not be their reason"
    return ""


def _alike(said: str) -> str:
    """Leave out what names one request."""
    return _ID.sub("", said)
