"""The scalers' queries, as rendered, evaluated by Prometheus itself (promtool test rules)."""

from __future__ import annotations

import pytest

from tests.manifests.conftest import Evaluate
from tests.manifests.promql import (
    WORKER,
    api_labels,
    labels,
    measured,
    query,
    series,
    standalone_labels,
)


def test_rising_load_is_seen_at_once(evaluate: Evaluate) -> None:
    data = [*series("a", "0+1x20"), *series("b", "1x20")]
    evaluate(query(), data, {"0s": 1, "5s": 2, "50s": 11})


def test_models_and_namespaces_are_apart(evaluate: Evaluate) -> None:
    data = [
        *series("a", "2x20"),
        *series("b", "5x20", model="sonic-2"),
        *series("c", "9x20", namespace="other"),
    ]
    evaluate(query(WORKER, "two-models"), data, {"60s": 2})
    evaluate(query("sonic-worker-sonic-2", "two-models"), data, {"60s": 5})


def test_a_pod_that_is_gone_drops_out_with_the_window(evaluate: Evaluate) -> None:
    # Its target goes with the pod, so both series end.
    data = [*series("a", "2x100"), *series("b", "3x4 stale", up="1x4 stale")]
    evaluate(query(), data, {"20s": 5, "30s": 5, "60s": 2, "120s": 2})


@pytest.mark.parametrize("lost", [1, 2, 4], ids=lambda n: f"{n}-scrapes")
def test_lost_scrapes_are_not_lost_load(evaluate: Evaluate, lost: int) -> None:
    # A failed scrape: up is 0 and the series gets a staleness marker.
    gap = "stale" + " _" * (lost - 1)
    data = [
        *series("a", "2x100"),
        *series("b", f"3x5 {gap} 3x50", up="1x5" + " 0" * lost + " 1x50"),
    ]
    times = [f"{5 * n}s" for n in range(4, 12 + lost)]
    evaluate(query(), data, dict.fromkeys(times, 5))


def test_pods_that_cannot_be_scraped_keep_their_last_value(
    evaluate: Evaluate,
) -> None:
    # Three of four stop answering at 60 s for good; they count for ten minutes more.
    data = series("a", "1x500")
    for pod in ("b", "c", "d"):
        data += series(pod, "2x12 stale", up="1x12 0x500")
    evaluate(query(), data, {"60s": 7, "120s": 7, "500s": 7, "700s": 1})


def test_a_restarted_worker_counts_by_what_it_says_now(evaluate: Evaluate) -> None:
    # It answers again, without a load, while its model is loading.
    data = [*series("a", "1x500"), *series("b", "4x10 stale", up="1x10 0x1 1x400")]
    evaluate(query(), data, {"50s": 5, "75s": 5, "120s": 1})


def test_several_series_of_a_pod_are_added(evaluate: Evaluate) -> None:
    # The labels of the vendor's metrics are not public: one may name an offering.
    data = [
        {"series": f"up{labels('a')}", "values": "1x20"},
        {"series": f'inferno_worker_load{labels("a")[:-1]},offering="x"}}', "values": "1x20"},
        {"series": f'inferno_worker_load{labels("a")[:-1]},offering="y"}}', "values": "2x20"},
    ]
    evaluate(query(), data, {"60s": 3})


def test_no_answer_is_no_value(evaluate: Evaluate) -> None:
    evaluate(query(), series("a", "_x20"), {"60s": None})
    evaluate(query(), series("a", "2x5 stale", up="1x5 stale"), {"120s": None})
    evaluate(query(), series("a", "0x20"), {"60s": 0})


def test_a_restarted_worker_is_not_held_by_its_gate(evaluate: Evaluate) -> None:
    # The server answers again, without a load; the gate beside it is another target of the pod.
    data = [*series("a", "1x500"), *series("b", "4x10 stale", up="1x10 0x1 1x400")]
    data.append({"series": f"up{labels('b', port=8090)}", "values": "1x10 0x400"})
    evaluate(query(), data, {"50s": 5, "75s": 5, "120s": 1})


def test_the_api_is_scaled_on_its_own_active_streams(evaluate: Evaluate) -> None:
    streams = [("a", "0+1x20"), ("b", "3x20")]
    data = [*series("worker", "9x20")]
    for pod, values in streams:
        data += measured("sonic_active_streams", api_labels(pod), values)
    evaluate(query("sonic-api"), data, {"0s": 3, "50s": 13})
    # No gate has a value: a silent metric is no zero.
    evaluate(query("sonic-api"), series("worker", "9x20"), {"50s": None})


def test_a_gate_that_cannot_look_is_no_zero(evaluate: Evaluate) -> None:
    # It answers, leaves the value out and says that it cannot look: its last value is held.
    data = []
    for pod, values in (("a", "2x500"), ("b", "5x10 stale")):
        data += measured("sonic_active_streams", api_labels(pod), values)
    cannot = f'sonic_gate_source{api_labels("b")[:-1]},watch="sockets",source="none"}}'
    data.append({"series": cannot, "values": "_x10 1x400"})
    evaluate(query("sonic-api"), data, {"50s": 7, "75s": 7, "120s": 7, "500s": 7, "800s": 2})


@pytest.mark.parametrize(
    ("deployment", "metric", "port", "expected"),
    [
        # A quarter of a generation a stream: 0.25 x (8 + 4).
        ("standalone", "sonic_active_streams", 8090, 3),
        ("standalone-load", "streams_in_progress", 9090, 12),
    ],
)
def test_servers_that_stand_alone_are_counted_by_stream_or_by_load(
    evaluate: Evaluate, deployment: str, metric: str, port: int, expected: float
) -> None:
    data = []
    for pod, value in (("a", 8), ("b", 4)):
        data += measured(metric, standalone_labels(pod, port), f"{value}x100")
    expression = query("sonic-standalone", deployment)
    evaluate(expression, data, {"60s": expected, "300s": expected})
    evaluate(expression, [], {"60s": None})
