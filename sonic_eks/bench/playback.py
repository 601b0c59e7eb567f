"""A client's playback buffer: when what has arrived runs out before more arrives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Playback:
    """What a listener heard.

    Attributes
    ----------
    underruns : int
        How often the sound stopped before the end.
    stall_seconds : float
        How long it stood still in all.
    """

    underruns: int
    stall_seconds: float


def play(parts: Iterable[tuple[float, float]], *, buffer_seconds: float, end: float) -> Playback:
    """Play parts of audio as they arrive.

    Playback begins, and goes on after it ran out, as soon as `buffer_seconds` of audio are there
    or no more will come.

    Parameters
    ----------
    parts : iterable of (float, float)
        Moment of arrival and length of each part in seconds, in order of arrival.
    buffer_seconds : float
        Audio to collect before the sound starts; 0 plays at once.
    end : float
        Moment at which the generation ended, so that nothing more was to come.
    """
    underruns, stall = 0, 0.0
    waiting, held, started = True, 0.0, False
    stopped = 0.0
    """Moment at which the sound last stopped, while it waits."""
    empty = 0.0
    """Moment at which what is there runs out, while it plays."""
    for arrival, length in parts:
        if not waiting and arrival > empty:
            waiting, held, stopped = True, 0.0, empty
            underruns += 1
        if not waiting:
            empty += length
            continue
        held += length
        if held >= buffer_seconds:
            if started:
                stall += arrival - stopped
            waiting, started, empty = False, True, arrival + held
    if waiting and started and held:
        # The rest is shorter than the buffer: the end of the generation sets it free.
        stall += max(0.0, end - stopped)
    return Playback(underruns, stall)
