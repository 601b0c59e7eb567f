"""Traces of demand from a file: what is read, what is refused, and what is drawn from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sonic_eks.errors import SonicEksError
from sonic_eks.simulation.trace import Lengths, Trace, draw, read_trace

HEADER = "seconds,generations"
GAP = " allowed: none, so fill it or cut the trace there"


def written(folder: Path, rows: list[str], header: str = HEADER) -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def hour(**changed: str) -> list[str]:
    """Return 61 points, a minute apart, some replaced by their index."""
    rows = [f"{60 * minute},{10 + minute}" for minute in range(61)]
    for name, row in changed.items():
        rows[int(name.removeprefix("at_"))] = row
    return [row for row in rows if row != "gone"]


def test_a_trace_is_read_and_begins_at_zero(tmp_path: Path) -> None:
    rows = [f" {1000 + 60 * minute} , {10 + minute}" for minute in range(61)]
    trace = read_trace(written(tmp_path, ["", *rows, ""], header=f"\ufeff{HEADER}"))
    assert trace.end_seconds == 3600
    assert trace.at(np.array([-50.0, 0, 30, 3600])).tolist() == [10, 10, 10.5, 70]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (hour(at_3="180,-1"), "trace.csv:5: generations: got '-1'; allowed: 0 to 100000"),
        (hour(at_3="180,nan"), "trace.csv:5: generations: got 'nan'; allowed: 0 to 100000"),
        (hour(at_3="180,inf"), "trace.csv:5: generations: got 'inf'; allowed: 0 to 100000"),
        (hour(at_3="180,1e9"), "trace.csv:5: generations: got '1e9'; allowed: 0 to 100000"),
        (hour(at_3="180,"), "trace.csv:5: generations: got ''; allowed: 0 to 100000"),
        (hour(at_3="180,many"), "trace.csv:5: generations: got 'many'; allowed: 0 to 100000"),
        (hour(at_0="-60,1"), "trace.csv:2: seconds: got '-60'; allowed: a number, 0 or more"),
        (hour(at_3="nan,1"), "trace.csv:5: seconds: got 'nan'; allowed: a number, 0 or more"),
        (hour(at_3="180"), "trace.csv:5: got 1 columns; allowed: seconds and generations"),
        (hour(at_3="180,1,2"), "trace.csv:5: got 3 columns; allowed: seconds and generations"),
        (hour(at_3="120,5"), "trace.csv:5: seconds: got 120 after 120; allowed: more than that"),
        (hour(at_3="90,5"), "trace.csv:5: seconds: got 90 after 120; allowed: more than that"),
        (
            hour(at_3="gone"),
            "trace.csv:5: got a gap from 120 to 240 s, where points are 60 s apart;" + GAP,
        ),
        (hour()[:30], "trace.csv: got 1740 s in all; allowed: 1800 to 2678400"),
        (["0,1", "3e6,1"], "trace.csv: got a point every 3e+06 s; allowed: every 900 s or closer"),
        (["0,1"], "trace.csv: got 1 points; allowed: two or more"),
        ([], "trace.csv: got 0 points; allowed: two or more"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(
    tmp_path: Path, rows: list[str], said: str
) -> None:
    with pytest.raises(SonicEksError) as refused:
        read_trace(written(tmp_path, rows))
    assert refused.value.lines == [f"{tmp_path}/{said}"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ":1: got ''; allowed: the header seconds,generations"),
        (b"0,1\n60,2\n", ":1: got '0,1'; allowed: the header seconds,generations"),
        (b"seconds;generations\n", ":1: got 'seconds;generations'; allowed: the header"),
        (b"seconds,generations\n0,\xff\n", ": cannot be read: no CSV in UTF-8"),
    ],
)
def test_what_is_no_csv_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(SonicEksError) as refused:
        read_trace(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(SonicEksError, match=r"/dev/zero: got a larger file; allowed: 32 MiB"):
        read_trace(Path("/dev/zero"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SonicEksError, match=r"nothing\.csv: cannot be read: No such file"):
        read_trace(tmp_path / "nothing.csv")


FLAT = Trace(np.array([0.0, 7200.0]), np.array([45.3, 45.3]))
LENGTHS = Lengths(median_seconds=4, sigma=0.5)


def test_what_is_drawn_brings_the_demand() -> None:
    # exp(0.125) is 1.1331, so that the mean is 4.533 s and 9.994 arrive a second.
    assert LENGTHS.mean_seconds == pytest.approx(4.5326, abs=1e-4)
    times, durations = draw(FLAT, LENGTHS, warm_up_seconds=600, seed=1)
    assert len(times) == pytest.approx(9.994 * 7800, rel=0.015)
    assert durations.sum() / 7800 == pytest.approx(45.3, rel=0.02)
    assert np.median(durations) == pytest.approx(4, rel=0.02)
    assert (times.min(), times.max()) == pytest.approx((-600, 7200), abs=2)
    assert np.all(np.diff(times) >= 0)


def test_a_draw_follows_its_seed() -> None:
    first, again, other = (draw(FLAT, LENGTHS, warm_up_seconds=0, seed=n) for n in (1, 1, 2))
    assert np.array_equal(first[0], again[0])
    assert len(first[0]) != len(other[0])


def test_more_than_memory_is_for_is_refused() -> None:
    much = Trace(np.array([0.0, 86_400.0]), np.array([1e5, 1e5]))
    with pytest.raises(SonicEksError, match=r"1\.91e\+09 generations; allowed: 50,000,000"):
        draw(much, LENGTHS, warm_up_seconds=0, seed=1)
