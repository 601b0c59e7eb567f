"""The world of the scaling comparison: demand at instants computed by hand, and its draw."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import traces

HOUR = 3600


@pytest.mark.parametrize(
    ("trace", "seconds", "demand"),
    [
        ("daily", 0, 60),
        ("daily", HOUR, 180),  # sin(30 deg) = 1/2
        ("daily", 3 * HOUR, 300),
        ("step", HOUR - 1, 60),
        ("step", HOUR, 300),
        ("step", 4 * HOUR, 60),
        ("bursts", 1.5 * HOUR, 280),
        ("bursts", 1.5 * HOUR + 300, 80 + 200 * 0.60653),  # exp(-1/2)
        ("bursts", 3 * HOUR, 280),
        ("bursts", 4.5 * HOUR, 280),
        ("bursts", 0, 80),
        ("opening", HOUR, 160),
        ("opening", HOUR + 120, 20 + 280 * 0.73106),  # 1 / (1 + 1/e)
        ("opening", 3 * HOUR, 300),
        ("opening", 5 * HOUR, 20),
        ("ramp", 0, 40),
        ("ramp", 0.75 * HOUR, 190),
        ("ramp", HOUR, 340),
        ("ramp", 4 * HOUR, 40),
    ],
)
def test_demand_is_what_was_fixed(trace: str, seconds: float, demand: float) -> None:
    (value,) = traces.TRACES[trace](np.array([float(seconds)]))
    assert value == pytest.approx(demand, rel=1e-4)


@pytest.mark.parametrize("trace", traces.TRACES)
def test_arrivals_bring_the_demand(trace: str) -> None:
    drawn = traces.arrivals(trace, 100)
    seconds = np.arange(-traces.WARM_UP_SECONDS, traces.TRACE_SECONDS) + 0.5
    wanted = traces.TRACES[trace](np.maximum(seconds, 0)).sum()
    # Little: occupied slots are arrivals times durations; a million draws leave a few thousandths.
    assert drawn.durations.sum() == pytest.approx(wanted, rel=0.01)
    assert np.all(np.diff(drawn.times) >= 0)
    assert drawn.times[0] >= -traces.WARM_UP_SECONDS
    assert drawn.times[-1] < traces.TRACE_SECONDS


def test_durations_are_lognormal_with_the_stated_median_and_sigma() -> None:
    logarithms = np.log(traces.arrivals("step", 101).durations)
    assert np.median(logarithms) == pytest.approx(math.log(4), abs=0.005)
    assert logarithms.std() == pytest.approx(0.5, abs=0.005)


def test_a_draw_depends_on_trace_and_seed_alone() -> None:
    first, again = traces.arrivals("daily", 100), traces.arrivals("daily", 100)
    assert np.array_equal(first.times, again.times)
    assert np.array_equal(first.durations, again.durations)
    assert len(first.times) != len(traces.arrivals("daily", 101).times)


def test_what_is_tuned_on_is_not_reported() -> None:
    assert not set(traces.TUNING_SEEDS) & set(traces.REPORTED_SEEDS)
    assert list(traces.REPORTED_SEEDS) == list(range(100, 120))
    assert math.isclose(traces.NODE + traces.IMAGE + traces.WEIGHTS, 1)
