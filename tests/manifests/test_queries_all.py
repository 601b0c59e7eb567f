"""What holds for every scaler's query: workers, API, servers that stand alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.manifests.conftest import Evaluate
from tests.manifests.deployments import DOCUMENTS, kinds
from tests.manifests.promql import (
    WORKER,
    Series,
    api_labels,
    labels,
    measured,
    query,
    standalone_labels,
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Scaler:
    """A scaler: its query, the gauge that it reads and what one of that counts for."""

    name: str
    deployment: str
    metric: str
    labelled: Callable[[str], str]
    each: float = 1
    ahead: int = 0

    @property
    def query(self) -> str:
        return query(self.name, self.deployment)

    def pods(self, count: int, values: str, up: str = "1x500", first: int = 0) -> list[Series]:
        found: list[Series] = []
        for number in range(first, first + count):
            found += measured(self.metric, self.labelled(f"p{number}"), values, up)
        return found


SCALERS = {
    "worker": Scaler(WORKER, "present", "inferno_worker_load", labels),
    "worker-ahead": Scaler(WORKER, "ahead", "inferno_worker_load", labels, ahead=180),
    "api": Scaler("sonic-api", "ahead", "sonic_active_streams", api_labels),
    "standalone": Scaler(
        "sonic-standalone",
        "standalone",
        "sonic_active_streams",
        standalone_labels,
        each=0.25,
        ahead=180,
    ),
    "standalone-load": Scaler(
        "sonic-standalone",
        "standalone-load",
        "streams_in_progress",
        lambda pod: standalone_labels(pod, 9090),
        ahead=180,
    ),
}


@pytest.fixture(params=SCALERS)
def scaler(request: pytest.FixtureRequest) -> Scaler:
    return SCALERS[request.param]


def test_none_is_left_out() -> None:
    names = {s["metadata"]["name"] for d in DOCUMENTS for s in kinds(d, "ScaledObject")}
    # Workers differ by their model alone.
    assert {n for n in names if not n.startswith("sonic-worker-")} == {
        s.name for s in SCALERS.values() if s.name != WORKER
    }


def test_rising(evaluate: Evaluate, scaler: Scaler) -> None:
    # 0.4 a second and pod; after 300 s 120 each.
    expected = scaler.each * (2 * 120 + scaler.ahead * 2 * 0.4)
    evaluate(scaler.query, scaler.pods(2, "0+2x200"), {"300s": expected})


def test_falling(evaluate: Evaluate, scaler: Scaler) -> None:
    evaluate(scaler.query, scaler.pods(2, "200-1x150"), {"300s": scaler.each * 280})


@pytest.mark.parametrize("lost", [1, 10])
@pytest.mark.parametrize("how", ["failed", "away"])
def test_gap(evaluate: Evaluate, scaler: Scaler, lost: int, how: str) -> None:
    # A failed scrape leaves up at 0 and a marker; of an absent Prometheus there is nothing.
    marker, up = ("stale", f"1x59 0x{lost - 1} 1x200")
    if how == "away":
        marker, up = "_", f"1x59 {' '.join(['_'] * lost)} 1x200"
    values = f"8x59 {' '.join([marker, *['_'] * (lost - 1)])} 8x200"
    times = [f"{seconds}s" for seconds in range(280, 560, 10)]
    evaluate(scaler.query, scaler.pods(3, values, up), dict.fromkeys(times, scaler.each * 24))


def test_three_of_ten_unscraped(evaluate: Evaluate, scaler: Scaler) -> None:
    data = scaler.pods(7, "4x300") + scaler.pods(3, "4x60 stale", "1x60 0x300", first=7)
    times = [f"{seconds}s" for seconds in range(290, 890, 30)]
    evaluate(scaler.query, data, dict.fromkeys(times, scaler.each * 40))


def test_restart(evaluate: Evaluate, scaler: Scaler) -> None:
    # Away for three scrapes, empty for ten more, then as busy as before.
    data = scaler.pods(3, "4x300")
    data += scaler.pods(1, "4x59 stale _x2 0x10 4x200", "1x59 0x2 1x300", first=3)
    held = {"310s": 16.0, "320s": 12.0, "360s": 12.0}
    limits = [f"{seconds}s" for seconds in range(300, 700, 10)]
    if not scaler.ahead:
        evaluate(scaler.query, data, {t: v * scaler.each for t, v in held.items()})
    # A line through a step at a share f of its window rises by 6 f (1 - f) of the step over the
    # window: what comes back counts for one and a half of itself at most, while it looks new.
    most = scaler.each * (16 + 1.5 * 4)
    evaluate(f"sum(({scaler.query}) > bool {most})", data, dict.fromkeys(limits, 0))
    evaluate(scaler.query, data, {"700s": scaler.each * 16})


def test_gone(evaluate: Evaluate, scaler: Scaler) -> None:
    data = scaler.pods(2, "4x300") + scaler.pods(1, "4x60 stale", "1x60 stale", first=2)
    evaluate(scaler.query, data, {"300s": scaler.each * 12, "340s": scaler.each * 8})
    evaluate(scaler.query, scaler.pods(2, "4x60 stale", "1x60 stale"), {"340s": None})
    evaluate(scaler.query, [], {"340s": None})


def test_no_number(evaluate: Evaluate, scaler: Scaler) -> None:
    data = scaler.pods(2, "4x300") + scaler.pods(1, " ".join(["NaN"] * 100), first=2)
    evaluate(scaler.query, data, {"300s": scaler.each * 8})


def test_nothing_in_progress(evaluate: Evaluate, scaler: Scaler) -> None:
    evaluate(scaler.query, scaler.pods(3, "0x300"), {"300s": 0})
