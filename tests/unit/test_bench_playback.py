"""The playback buffer: every case worked out by hand."""

from __future__ import annotations

import pytest

from sonic_eks.bench.playback import Playback, play

# parts as (arrival, length), buffer, end; underruns, seconds of stall
CASES = {
    "nothing": ([], 0.0, 5.0, 0, 0.0),
    "one part": ([(1, 2)], 0.0, 1.0, 0, 0.0),
    "always ahead": ([(0, 1), (0.5, 1), (1.0, 1)], 0.0, 1.0, 0, 0.0),
    "just in time": ([(0, 1), (1, 1)], 0.0, 1.0, 0, 0.0),
    # runs out at 1, goes on at 1.5: half a second
    "late once": ([(0, 1), (1.5, 1)], 0.0, 1.5, 1, 0.5),
    # out at 1, on at 1.5; out at 2.5, on at 4: 0.5 + 1.5
    "late twice": ([(0, 1), (1.5, 1), (4, 1)], 0.0, 4.0, 2, 2.0),
    # sound begins at 2 with 1.2 s, out at 3.2; the part of 2.5 is in time
    "buffer hides it": ([(0, 0.4), (1, 0.4), (2, 0.4), (2.5, 1)], 1.0, 2.5, 0, 0.0),
    # begins at 1 with 1 s, out at 2; at 3 only 0.5 s are there, at 4 there is 1 s: on at 4
    "buffer refills": ([(0, 0.5), (1, 0.5), (3, 0.5), (4, 0.5)], 1.0, 4.0, 1, 2.0),
    # as before, but the end at 3.5 sets the rest free
    "end sets the rest free": ([(0, 0.5), (1, 0.5), (3, 0.5)], 1.0, 3.5, 1, 1.5),
    # all of it is shorter than the buffer: it plays at the end, later than a listener would like,
    # but nothing that had begun stopped
    "shorter than the buffer": ([(0, 0.5)], 1.0, 2.0, 0, 0.0),
}


@pytest.mark.parametrize("case", CASES)
def test_underruns_and_stalls_are_exact(case: str) -> None:
    parts, buffer, end, underruns, stall = CASES[case]
    heard = play(parts, buffer_seconds=buffer, end=end)
    assert heard == Playback(underruns, pytest.approx(stall))


@pytest.mark.parametrize("late", range(1, 6))
def test_each_late_part_is_one_underrun(late: int) -> None:
    """Ten parts of 1 s, one a second; `late` of them come half a second after the sound ended."""
    now, parts = 0.0, []
    for index in range(10):
        parts.append((now, 1.0))
        now += 1.5 if index < late else 1.0
    heard = play(parts, buffer_seconds=0, end=now)
    assert (heard.underruns, heard.stall_seconds) == (late, pytest.approx(late * 0.5))
