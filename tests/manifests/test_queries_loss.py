"""Queries when scrapes are lost: a partial view is never taken for less, nor for a trend."""

from __future__ import annotations

import re

import pytest

from tests.manifests.conftest import Evaluate
from tests.manifests.deployments import DOCUMENTS, kinds
from tests.manifests.promql import Series, query, series

pytestmark = pytest.mark.slow

AHEAD = "ahead"

# How long a gap lasts, in scrapes, and how Prometheus writes it: a scrape that failed leaves an
# `up` of 0 and marks the series as stale; while Prometheus itself is away there is nothing at all.
GAPS = [(1, "failed"), (10, "failed"), (1, "away"), (10, "away"), (40, "away")]


def with_gap(pod: str, before: str, after: str, gap: tuple[int, str]) -> list[Series]:
    """A worker with a gap from the 61st scrape (300 s) on."""
    lost, how = gap
    if how == "away":
        missing = " ".join(["_"] * lost)
        return series(pod, f"{before} {missing} {after}", up=f"1x59 {missing} 1x200")
    stale = " ".join(["stale", *["_"] * (lost - 1)])
    return series(pod, f"{before} {stale} {after}", up=f"1x59 0x{lost - 1} 1x200")


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: f"{gap[0]}-{gap[1]}")
@pytest.mark.parametrize("deployment", ["present", AHEAD])
def test_a_gap_of_all_is_neither_less_nor_a_trend(
    evaluate: Evaluate, gap: tuple[int, str], deployment: str
) -> None:
    data = [s for pod in "abc" for s in with_gap(pod, "4x59", "4x200", gap)]
    times = [f"{seconds}s" for seconds in range(285, 720, 5)]
    evaluate(query(deployment=deployment), data, dict.fromkeys(times, 12))


@pytest.mark.parametrize("deployment", ["present", AHEAD])
def test_after_a_long_absence_nothing_is_a_trend(evaluate: Evaluate, deployment: str) -> None:
    # More than the five minutes for which a target is known: six.
    gap = (72, "away")
    data = [s for pod in "abc" for s in with_gap(pod, "4x59", "4x200", gap)]
    expression = query(deployment=deployment)
    times = [f"{seconds}s" for seconds in range(660, 900, 5)]
    evaluate(expression, data, {"590s": 12, "640s": None} | dict.fromkeys(times, 12))


@pytest.mark.parametrize("deployment", ["present", AHEAD])
def test_three_of_ten_that_are_not_scraped_do_not_scale_in(
    evaluate: Evaluate, deployment: str
) -> None:
    data = [s for pod in "abcdefg" for s in series(pod, "2x300")]
    for pod in "hij":
        data += series(pod, "2x60 stale", up="1x60 0x300")
    times = [f"{seconds}s" for seconds in range(300, 890, 15)]
    # Ten minutes later nobody knows what they have any more; a fall is no trend either.
    evaluate(query(deployment=deployment), data, dict.fromkeys(times, 20) | {"920s": 14})


def test_a_lost_scrape_in_a_rise_costs_next_to_nothing(evaluate: Evaluate) -> None:
    # 60 + 0.2 a second; one scrape of all of it fails, at 250 s. Of the line's points, those of
    # 125, 130 .. 300 s, one is lower by 1, at 37.5 s from their middle; sum(x x) is 97125.
    data = series("a", "60+1x49 stale 111+1x100", up="1x49 0 1x100")
    risen = {"302s": round(120 + 36 - 180 * 37.5 / 97125, 3), "450s": 150 + 36}
    evaluate(query(deployment=AHEAD), data, risen)


def test_a_gap_in_a_rise_is_never_below_the_present(evaluate: Evaluate) -> None:
    data = with_gap("a", "0+1x59", "70+1x100", (10, "away"))
    ahead, present = query(deployment=AHEAD), query()
    times = [f"{seconds}s" for seconds in range(200, 700, 5)]
    evaluate(f"sum(({ahead}) < bool ({present}))", data, dict.fromkeys(times, 0))
    # Once the gap has left the line's window all is as if there had been none.
    evaluate(ahead, data, {"540s": 108 + 36})


@pytest.mark.parametrize("deployment", ["present", AHEAD])
def test_what_is_no_number_does_not_count(evaluate: Evaluate, deployment: str) -> None:
    # Its highest value of the last seconds stands for it, then it has said nothing.
    data = [*series("a", "2x100"), *series("b", f"3x59 5{' NaN' * 100}")]
    expected = {"295s": 5.0, "300s": 7.0, "305s": 7.0, "325s": 7.0, "335s": 2.0}
    if deployment == AHEAD:
        expected = {"295s": 5.0, "500s": 2.0}
    evaluate(query(deployment=deployment), data, expected)
    evaluate(query(deployment=deployment), series("b", " ".join(["NaN"] * 100)), {"300s": None})


def test_a_fall_to_nothing_is_no_reset_of_a_counter(evaluate: Evaluate) -> None:
    # All that is read are gauges: what was there is gone, it was not counted on from zero.
    data = series("a", "50+0.5x59 0+0.5x100")
    evaluate(query(deployment=AHEAD), data, {"305s": 0.5, "310s": 1, "360s": 6})


SCENARIOS: dict[str, tuple[list[Series], float]] = {
    "level": ([s for pod in "abc" for s in series(pod, "4x200")], 12),
    "rising": (series("a", "0+1x200"), 105 + 36),
    "gap": (with_gap("a", "4x59", "4x100", (10, "failed")), 4),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_sample_less_in_every_window_is_the_same_value(evaluate: Evaluate, name: str) -> None:
    """Prometheus 3 leaves out a sample at the very start of a window; windows one second shorter
    leave it out, too, as samples and steps are whole multiples of five seconds."""
    data, expected = SCENARIOS[name]
    expression = query(deployment=AHEAD)
    shorter = re.sub(r"\[(\d+)s", lambda window: f"[{int(window[1]) - 1}s", expression)
    assert shorter.count("[29s") == expression.count("[30s")
    for one in (expression, shorter):
        evaluate(one, data, {"525s": expected})


def test_windows_hold_four_samples_also_without_the_first_one() -> None:
    seen = set()
    for deployment in DOCUMENTS:
        for scaler in kinds(deployment, "ScaledObject"):
            for trigger in scaler["spec"]["triggers"]:
                windows = re.findall(
                    r"\[(\d+)s(?::(\d+)s)?\]", trigger["metadata"].get("query", "")
                )
                seen |= {(int(window), int(step or 5)) for window, step in windows}
    # A scrape every five seconds, or the steps of a line.
    assert {(30, 5), (600, 5), (180, 5)} <= seen
    assert all((window - 1) // step >= 4 for window, step in seen)
