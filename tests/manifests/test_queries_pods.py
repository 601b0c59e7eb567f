"""Queries when pods drain: what counts is what will still be asked of the others."""

from __future__ import annotations

from tests.manifests.conftest import Evaluate
from tests.manifests.promql import (
    Series,
    api_labels,
    labels,
    measured,
    query,
    series,
    standalone_labels,
)


def draining(labelled: str, values: str, up: str = "1x500") -> list[Series]:
    """What the gate of a pod says, which is a target of its own."""
    return measured("sonic_draining", labelled, values, up)


def gate(pod: str) -> str:
    return labels(pod, port=8090)


def test_a_worker_that_drains_is_left_out_at_once(evaluate: Evaluate) -> None:
    data = [
        *series("a", "2x500"),
        *series("b", "3x500"),
        *draining(gate("a"), "0x500"),
        *draining(gate("b"), "0x60 1x500"),
    ]
    evaluate(query(), data, {"300s": 5, "305s": 2, "900s": 2})
    evaluate(query(deployment="ahead"), data, {"300s": 5, "305s": 2, "900s": 2})


def test_a_drain_that_is_over_counts_again(evaluate: Evaluate) -> None:
    # A worker that its probe had restarted, or a stray call.
    data = [*series("a", "2x500"), *series("b", "3x500"), *draining(gate("b"), "0x60 1x20 0x500")]
    evaluate(query(), data, {"350s": 2, "450s": 5})


def test_a_lost_scrape_of_the_gate_does_not_bring_a_worker_back(evaluate: Evaluate) -> None:
    data = [
        *series("a", "2x500"),
        *series("b", "3x500"),
        *draining(gate("b"), "0x60 1 stale _x3 1x100", up="1x61 0x3 1x100"),
    ]
    times = [f"{seconds}s" for seconds in range(305, 400, 5)]
    evaluate(query(), data, dict.fromkeys(times, 2))


def test_a_gate_that_says_nothing_is_no_reason_to_leave_a_worker_out(evaluate: Evaluate) -> None:
    data = [*series("a", "2x500"), *series("b", "3x500")]
    evaluate(query(), data, {"300s": 5})
    gone = draining(gate("b"), "0x60 1 stale", up="1x61 0x500")
    evaluate(query(), [*data, *gone], {"300s": 5, "330s": 2, "340s": 5})


def test_lost_scrapes_and_a_drain_at_the_same_time(evaluate: Evaluate) -> None:
    # Of ten workers three are not scraped, one drains: eight and a half of nine are no reason.
    data = [s for pod in "abcdefg" for s in series(pod, "2x300")]
    for pod in "hij":
        data += series(pod, "2x60 stale", up="1x60 0x300")
        data += draining(gate(pod), "0x60 stale", up="1x60 0x300")
    data += draining(gate("a"), "0x60 1x200")
    times = [f"{seconds}s" for seconds in range(305, 900, 15)]
    evaluate(query(), data, dict.fromkeys(times, 18))


def test_nobody_but_workers_that_drain_is_no_value(evaluate: Evaluate) -> None:
    data = [*series("a", "2x500"), *draining(gate("a"), "1x500")]
    evaluate(query(), data, {"300s": None})


def test_a_worker_that_takes_work_while_it_drains_counts(evaluate: Evaluate) -> None:
    # drain.worker: wait-idle; what it serves, the others will have to, once it is gone.
    data = [*series("a", "2x500"), *series("b", "3x500"), *draining(gate("b"), "1x500")]
    evaluate(query(deployment="wait-idle"), data, {"300s": 5})


def test_callers_of_a_front_that_drains_come_back_to_the_others(evaluate: Evaluate) -> None:
    data = []
    for pod, streams in (("a", 20), ("b", 30)):
        data += measured("sonic_active_streams", api_labels(pod), f"{streams}x100")
    data += draining(api_labels("b"), "1x100")[1:]
    evaluate(query("sonic-api"), data, {"300s": 50})

    data = []
    for pod, streams in (("a", 8), ("b", 4)):
        data += measured("sonic_active_streams", standalone_labels(pod), f"{streams}x100")
    data += draining(standalone_labels("b"), "1x100")[1:]
    evaluate(query("sonic-standalone", "standalone"), data, {"300s": 3})


def test_replacing_workers_one_by_one_is_no_trend(evaluate: Evaluate) -> None:
    # Each of three hands its 4 generations to its successor within a scrape or two.
    data: list[Series] = []
    for number in range(3):
        leaves = 40 + 12 * number
        data += series(
            f"old{number}",
            f"4x{leaves} 2 0x2 stale",
            up=f"1x{leaves + 3} stale",
        )
        data += draining(gate(f"old{number}"), f"0x{leaves} 1x3 stale", up=f"1x{leaves + 4} stale")
        data += series(f"new{number}", f"_x{leaves - 5} 0x5 4x100", up=f"_x{leaves - 5} 1x100")
    expression = query(deployment="ahead")
    times = [f"{seconds}s" for seconds in range(0, 500, 5)]
    # Never more than one worker's worth above what there is.
    evaluate(f"sum(({expression}) > bool 12 + 4)", data, dict.fromkeys(times, 0))
