"""Looking ahead and margins: what the scalers make of the demand, worked out by hand."""

from __future__ import annotations

import math
import re

import pytest

from tests.manifests.conftest import Evaluate
from tests.manifests.deployments import one
from tests.manifests.promql import WORKER, Series, measured, query, series, standalone_labels

AHEAD = "ahead"
"""180 s ahead, by a straight line through the last 180 s."""


def threshold(deployment: str) -> float:
    (trigger,) = one(deployment, "ScaledObject", WORKER)["spec"]["triggers"]
    return float(trigger["metadata"]["threshold"])


def total(*loads: str) -> list[Series]:
    return [
        one for pod, load in zip("abcdefghij", loads, strict=False) for one in series(pod, load)
    ]


def test_rising_demand_is_met_before_it_is_there(evaluate: Evaluate) -> None:
    # 60 + 0.2 a second in all. After 300 s: 120, and 180 x 0.2 more.
    data = total("30+0.4x200", "30+0.6x200")
    evaluate(query(deployment=AHEAD), data, {"300s": 120 + 36, "600s": 180 + 36})
    evaluate(query(), data, {"300s": 120, "600s": 180})


def test_far_ahead_is_seen_by_no_more_points(evaluate: Evaluate) -> None:
    # Each point is a look through ten minutes of every worker, and KEDA waits for three seconds.
    expression = query(deployment="far")
    steps = {int(step) for step in re.findall(r"\[1800s:(\d+)s\]", expression)}
    assert len(steps) == 1
    assert 1800 / min(steps) <= 100
    data = [s | {"values": re.sub(r"x500$", "x600", s["values"])} for s in total("30+1x600")]
    evaluate(expression, data, {"2400s": 510 + 1800 * 0.2})


def test_the_example_of_the_documentation(evaluate: Evaluate) -> None:
    # docs/scaling.md, "The value": 8 a GPU; 144 in progress, 12 a minute more, 210 s ahead.
    evaluate(query(deployment="eight"), total("0+1x200"), {"720s": round(186 + 2 * 186**0.5, 3)})
    assert threshold("eight") == 8
    assert math.ceil((186 + 2 * 186**0.5) / 8) == 27
    assert math.ceil((144 + 2 * 144**0.5) / 8) == 21


def test_falling_and_level_demand_is_what_it_is(evaluate: Evaluate) -> None:
    falling = total("200-0.5x200", "40x200")
    evaluate(query(deployment=AHEAD), falling, {"300s": 170 + 40, "600s": 140 + 40})
    evaluate(query(deployment=AHEAD), total("7x200"), {"0s": 7, "300s": 7, "600s": 7})


def test_a_turn_is_never_below_the_present(evaluate: Evaluate) -> None:
    # Up by 3 a minute for five minutes, down by 3 a minute then.
    data = total("10+0.25x60 25-0.25x60")
    times = [f"{seconds}s" for seconds in range(300, 605, 5)]
    ahead, present = query(deployment=AHEAD), query()
    evaluate(f"sum(({ahead}) < bool ({present}))", data, dict.fromkeys(times, 0))


def test_a_step_counts_for_what_the_line_through_it_rises(evaluate: Evaluate) -> None:
    # From 10 to 22 at 240 s. After 302 s the line's points are those of 125, 130 .. 300 s, with
    # Prometheus 2 as with 3, which leaves a window's start out. Around their middle of 212.5 s
    # sum(x y) = 12 x 13 (270 - 212.5) = 8970 and sum(x x) = 25 x 36 x 1295 / 12 = 97125.
    data = total("10x47 22x100")
    evaluate(query(deployment=AHEAD), data, {"235s": 10, "302s": round(22 + 180 * 8970 / 97125, 3)})


@pytest.mark.parametrize("seconds", [0, 30, 60, 100])
def test_a_few_points_lead_nowhere(evaluate: Evaluate, seconds: int) -> None:
    # Prometheus has just started, its first look saw one worker of three: no rise of any size.
    first, rest = series("a", "4x200"), [*series("b", "_ 4x200"), *series("c", "_ 4x200")]
    late = [s | {"values": re.sub(r"^1x", "_ 1x", s["values"])} for s in rest]
    seen = 4 if seconds == 0 else 12
    evaluate(query(deployment=AHEAD), [*first, *late], {f"{seconds}s": seen})


def test_the_line_is_used_once_three_quarters_of_it_are_there(evaluate: Evaluate) -> None:
    # The 27th point of 36 comes after 130 s.
    data = total("0+1x200")
    evaluate(query(deployment=AHEAD), data, {"125s": 25, "130s": 26 + 36})


def test_workers_that_come_and_go_are_no_trend(evaluate: Evaluate) -> None:
    # 12 in all, first on two workers, from 100 s on four, from 300 s on three.
    data = [
        *series("a", "6x20 3x40 4x100"),
        *series("b", "6x20 3x40 4x100"),
        *series("c", "_x19 0x1 3x39 4x100", up="_x19 1x200"),
        *series("d", "_x19 0x1 3x40 stale", up="_x19 1x41 stale"),
    ]
    times = [f"{seconds}s" for seconds in range(110, 300, 15)]
    evaluate(query(deployment=AHEAD), data, dict.fromkeys(times, 12))


def test_margins_are_spare_generations(evaluate: Evaluate) -> None:
    # 16 + 1.5 x 4 + 4; none in progress: the reserve alone.
    evaluate(query(deployment="margins"), total("10x100", "6x100"), {"300s": 26})
    evaluate(query(deployment="margins"), total("0x100"), {"300s": 4})
    # A silent metric stays silent.
    evaluate(query(deployment="margins"), [], {"300s": None})
    evaluate(query(deployment=AHEAD), series("a", "_x100"), {"300s": None})


def test_servers_that_stand_alone_look_ahead_too(evaluate: Evaluate) -> None:
    # A quarter of a generation a stream: 0.25 x (40 + 0.4 x 300), and 180 x 0.25 x 0.4.
    data = measured("sonic_active_streams", standalone_labels("a"), "40+2x200")
    evaluate(query("sonic-standalone", "standalone"), data, {"300s": 40 + 18})


def test_models_look_ahead_by_their_own_workers(evaluate: Evaluate) -> None:
    data = [*series("a", "0+1x200", model="sonic-2"), *series("b", "5x200")]
    evaluate(query(deployment="two-models"), data, {"300s": 5})
    evaluate(query("sonic-worker-sonic-2", "two-models"), data, {"300s": 60 + 36})
