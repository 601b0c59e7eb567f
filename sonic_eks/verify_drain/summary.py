"""What the generations around SIGTERM say together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sonic_eks.verify_drain.attempt import Attempt
from sonic_eks.verify_drain.findings import SigtermSeen

_LEAST_PATIENCE_SECONDS = 2.0
_PATIENCE = 3.0
"""How many times the longest wait from before a new wait must last to say something."""


@dataclass(frozen=True)
class Times:
    """When it was, in seconds of the event loop's clock, and for how long.

    Attributes
    ----------
    signalled : float
        When SIGTERM had surely arrived.
    exited : float or None
        When the subject was seen to have ended.
    watched_seconds : float
        How long it was watched.
    late_seconds : float
        How much later than its end it may have been seen.
    patience_seconds : float
        From when on a generation without an answer is waiting.
    """

    signalled: float
    exited: float | None
    watched_seconds: float
    late_seconds: float
    patience_seconds: float


def patience_of(attempts: Sequence[Attempt]) -> float:
    """Return how long a new generation may take to begin, by those from before."""
    waits = [one.span[0] - one.began for one in attempts if one.delivered]
    return max([_LEAST_PATIENCE_SECONDS, *(_PATIENCE * wait for wait in waits)])


def sum_up(
    old: Sequence[Attempt], new: Sequence[Attempt], times: Times
) -> tuple[SigtermSeen, list[str]]:
    """Return what was seen around SIGTERM, and what each refusal said.

    Parameters
    ----------
    old, new : sequence of Attempt
        Those that were in progress, one at least, and those that were asked for after it.
    times : Times
        When it was.
    """
    signalled, exited = times.signalled, times.exited
    # What begins later says nothing of it: a container that was started anew may have taken it,
    # also from a queue.
    alive_until = math.inf if exited is None else exited - times.late_seconds
    begun = [one for one in new if one.delivered and one.span[0] <= alive_until]
    # It refuses and lets wait while it has work; afterwards it may not be there.
    last_audio = max(one.span[1] for one in old)
    refused = [one for one in new if one.refused and one.end < last_audio]
    waiting = [
        one
        for one in new
        if one not in begun
        and one not in refused
        and min(one.end, last_audio) - one.began >= times.patience_seconds
    ]
    completed = sum(one.completed for one in old)
    seen = SigtermSeen(
        old_completed=completed,
        old_cut=len(old) - completed,
        new_served=sum(one.completed for one in begun),
        new_refused=len(refused),
        exit_seconds=None if exited is None else exited - signalled,
        # Of one that was cut the end may be that of somebody's patience in between.
        old_end_seconds=max(0.0, last_audio - signalled),
        watched_seconds=times.watched_seconds,
        new_waiting=len(waiting),
        new_cut=sum(one.cut for one in begun),
        late_seconds=times.late_seconds,
    )
    return seen, [one.failure for one in refused]
