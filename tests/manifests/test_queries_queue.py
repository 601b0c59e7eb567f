"""The API's queue in the workers' query: what waits is demand, but no queue is no reason."""

from __future__ import annotations

import pytest

from tests.manifests.conftest import Evaluate
from tests.manifests.promql import Series, api_labels, labels, measured, query, series


def queue(pod: str, values: str, up: str = "1x500", **more: str) -> list[Series]:
    """The queue that an API pod tells of, with labels of its own."""
    labelled = api_labels(pod, 8080)
    target, gauge = measured(more.pop("metric", "api_queue_size"), labelled, values, up)
    extra = "".join(f',{name}="{value}"' for name, value in more.items())
    return [target, gauge | {"series": gauge["series"][:-1] + extra + "}"}]


def test_what_waits_is_demand(evaluate: Evaluate) -> None:
    # Two workers of two are full, and say so however many callers there are.
    data = [
        *series("a", "2x100"),
        *series("b", "2x100"),
        *queue("x", "5x100"),
        *queue("y", "1x100"),
    ]
    evaluate(query(), data, {"300s": 4 + 6})


def test_what_waits_counts_for_one_filling_of_the_workers(evaluate: Evaluate) -> None:
    # Two workers of two: of 40 that wait 4 count, of 3 all; with 1.5 sigmas and 4 in reserve.
    full = [*series("a", "2x100"), *series("b", "2x100")]
    margins = query(deployment="margins")
    evaluate(margins, [*full, *queue("x", "40x100")], {"300s": round(8 + 1.5 * 8**0.5 + 4, 3)})
    evaluate(margins, [*full, *queue("x", "3x100")], {"300s": round(7 + 1.5 * 7**0.5 + 4, 3)})
    # A worker that has nothing yet is to be filled, too.
    empty = series("a", "0x100")
    evaluate(margins, [*empty, *queue("x", "40x100")], {"300s": round(2 + 1.5 * 2**0.5 + 4, 3)})


def test_a_worker_with_several_values_is_filled_once(evaluate: Evaluate) -> None:
    # One worker of two, which says its load by a label of the vendor's.
    of_pod = labels("a")[:-1]
    data = [
        {"series": f"up{labels('a')}", "values": "1x100"},
        {"series": f'inferno_worker_load{of_pod},offering="p"}}', "values": "1x100"},
        {"series": f'inferno_worker_load{of_pod},offering="q"}}', "values": "1x100"},
        *queue("x", "40x100"),
    ]
    expected = round(4 + 1.5 * 4**0.5 + 4, 3)
    evaluate(query(deployment="margins"), data, {"300s": expected})


def test_a_queue_that_is_not_told_of_is_none(evaluate: Evaluate) -> None:
    evaluate(query(), series("a", "2x100"), {"300s": 2})
    evaluate(query(), [*series("a", "2x100"), *queue("x", "_x100")], {"300s": 2})
    # It alone is no load: whether there are workers is not known then.
    evaluate(query(), queue("x", "7x100"), {"300s": None})


def test_a_queue_that_grows_is_looked_ahead_of(evaluate: Evaluate) -> None:
    data = [*series("a", "4x200"), *queue("x", "0x59 0+1x100")]
    # 0.2 a second, from 300 s on; the window of 180 s holds nothing else after 480 s.
    evaluate(query(deployment="ahead"), data, {"510s": 4 + 42 + 36})


@pytest.mark.parametrize("lost", [1, 10])
def test_lost_scrapes_of_the_api_do_not_empty_the_queue(evaluate: Evaluate, lost: int) -> None:
    gap = " ".join(["stale", *["_"] * (lost - 1)])
    data = [*series("a", "2x300"), *queue("x", f"6x59 {gap} 6x100", up=f"1x59 0x{lost - 1} 1x100")]
    times = [f"{seconds}s" for seconds in range(290, 500, 5)]
    for deployment in ("present", "ahead"):
        evaluate(query(deployment=deployment), data, dict.fromkeys(times, 8))


def test_several_offerings_of_one_model_are_added(evaluate: Evaluate) -> None:
    data = [
        *series("a", "2x100"),
        *queue("x", "3x100", offering="p"),
        *queue("x", "4x100", offering="q")[1:],
    ]
    evaluate(query(), data, {"300s": 9})


def test_models_have_their_share_of_the_queue(evaluate: Evaluate) -> None:
    # One queue, which both API pods tell of; by the vendor's word for each model.
    data = [*series("a", "2x100"), *series("b", "1x100", model="sonic-2")]
    for pod in "xy":
        data += queue(pod, "5x100", metric="waiting", offering="sonic-3")
        data += queue(pod, "7x100", metric="waiting", offering="sonic-turbo")[1:]
    evaluate(query(deployment="schedules"), data, {"300s": 2 + 5})
    evaluate(query("sonic-worker-sonic-2", "schedules"), data, {"300s": 1 + 7})


def test_offerings_of_one_queue_are_added_before_it_counts_once(evaluate: Evaluate) -> None:
    data = series("a", "2x100")
    for pod in "xy":
        for number, tier in enumerate(("low", "high")):
            more = queue(pod, f"{3 + number}x100", metric="waiting", offering="sonic-3", tier=tier)
            data += more[number:]
    evaluate(query(deployment="schedules"), data, {"300s": 2 + 3 + 4})


def test_a_queue_without_models_is_nobodys_of_several(evaluate: Evaluate) -> None:
    data = [*series("a", "2x100"), *queue("x", "9x100")]
    evaluate(query(deployment="two-models"), data, {"300s": 2})
    assert "api_queue_size" not in query(deployment="two-models")


def test_a_queue_that_is_no_number_is_none(evaluate: Evaluate) -> None:
    data = [*series("a", "2x100"), *queue("x", " ".join(["NaN"] * 100))]
    evaluate(query(), data, {"300s": 2})


def test_a_restart_of_the_api_is_no_trend(evaluate: Evaluate) -> None:
    # Its queue is gone with it; the callers come again to the other pod.
    data = [
        *series("a", "4x200"),
        *queue("x", "3x59 stale _x3 0x100", up="1x59 0x3 1x100"),
        *queue("y", "3x60 6x100"),
    ]
    times = [f"{seconds}s" for seconds in range(330, 600, 15)]
    # Ten, and for the four scrapes that were lost three more.
    evaluate(f"sum(({query(deployment='ahead')}) > bool 13.5)", data, dict.fromkeys(times, 0))


RARE = "sonic-worker-rare"
"""May have no worker at all; three generations are held free."""


def rare_queue(values: str, up: str = "1x500") -> list[Series]:
    return queue("x", values, up, offering="rare")


def test_without_workers_the_queue_is_the_demand(evaluate: Evaluate) -> None:
    expression = query(RARE, "zero")
    evaluate(expression, rare_queue("0x59 4x100"), {"290s": 0 + 3, "300s": 4 + 3})
    # Another model's callers are nobody's reason.
    evaluate(expression, queue("x", "9x100", offering="sonic-3"), {"300s": None})


def test_with_workers_their_load_counts_too(evaluate: Evaluate) -> None:
    data = [*series("a", "_x29 0x30 2x100", up="_x29 1x500", model="rare"), *rare_queue("4x500")]
    evaluate(query(RARE, "zero"), data, {"140s": 4 + 3, "160s": 4 + 3, "320s": 2 + 4 + 3})


def test_without_workers_silence_is_no_zero(evaluate: Evaluate) -> None:
    # The API cannot be scraped: held for ten minutes, then nothing is known.
    data = rare_queue("5x59 stale", up="1x59 0x500")
    evaluate(query(RARE, "zero"), data, {"295s": 8, "800s": 8, "920s": None})
    evaluate(query(RARE, "zero"), [], {"300s": None})


def test_workers_that_say_nothing_are_no_zero_either(evaluate: Evaluate) -> None:
    data = [*series("a", "_x500", model="rare"), *rare_queue("0x500")]
    evaluate(query(RARE, "zero"), data, {"300s": None})


def test_a_queue_that_falls_silent_leaves_the_workers_load(evaluate: Evaluate) -> None:
    data = [*series("a", "2x500", model="rare"), *rare_queue("1x59 stale", up="1x59 stale")]
    evaluate(query(RARE, "zero"), data, {"295s": 2 + 1 + 3, "400s": 2 + 3})
