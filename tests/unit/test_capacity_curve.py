"""The curve of first audio: values between points, worked by hand, and nothing beyond them."""

from __future__ import annotations

import pytest

from sonic_eks.sizing.curve import Curve, NoCurve
from tests.expected.vendor_capacity import TABLES

H100 = Curve.of([(row[0], float(row[2])) for row in TABLES["H100"]], "p95")
H100_MIG = Curve.of([(row[0], float(row[2])) for row in TABLES["H100 MIG"]], "p95")


@pytest.mark.parametrize(
    ("curve", "budget", "streams"),
    [
        (H100, 165, 8),  # a measured point, met exactly
        (H100, 164.9, 7),  # 4 + 4 * 49.9 / 50 = 7.99
        (H100, 80, 2),  # 2 + 2 * 25 / 60 = 2.83
        (H100, 85, 3),  # 2 + 2 * 30 / 60 = 3, exactly
        (H100, 84.9, 2),
        (H100, 55, 2),  # flat from 1 to 2: the higher one
        (H100, 54, 0),
        (H100, 300, 16),
        (H100, 10_000, 16),  # more was not measured
        (H100_MIG, 80, 1),  # 1 + 15 / 35 = 1.43
        (H100_MIG, 100, 2),
        (H100_MIG, 64, 0),
    ],
)
def test_the_highest_concurrency_within_a_budget(curve: Curve, budget: float, streams: int) -> None:
    assert curve.within(budget) == streams


@pytest.mark.parametrize(
    ("concurrency", "figure"),
    [(1, 55), (2, 55), (3, 85), (6, 140), (2.5, 70), (14, 262.5), (16, 300)],
)
def test_between_points_is_a_line(concurrency: float, figure: float) -> None:
    assert H100.at(concurrency) == pytest.approx(figure)


@pytest.mark.parametrize("concurrency", [0, 0.9, 16.1, 17, 1000])
def test_nothing_is_known_beyond_the_points(concurrency: float) -> None:
    assert H100.at(concurrency) is None


def test_a_curve_may_begin_above_one() -> None:
    curve = Curve.of([(1, None), (4, 80.0), (8, 120.0)], "p99")
    assert curve.first == (4, 80.0)
    assert curve.at(1) is None
    assert curve.within(79) == 0, "what is below the lowest measured concurrency is not known"
    assert curve.within(100) == 6


def test_nothing_is_known_behind_a_gap() -> None:
    """A percentile is missing where too many failed: what follows proves nothing."""
    curve = Curve.of([(1, 50.0), (2, 60.0), (4, None), (8, 70.0)], "p95")
    assert curve.last == (2, 60.0)
    assert curve.within(1000) == 2


def test_a_little_fall_is_noise_and_counts_as_none() -> None:
    curve = Curve.of([(1, 60.0), (2, 57.0), (4, 59.0), (8, 100.0)], "p95")
    assert curve.points == ((1, 60.0), (2, 60.0), (4, 60.0), (8, 100.0))
    assert curve.within(59.5) == 0, "the higher one counts"
    assert curve.within(70) == 5
    # Many small falls do not add up unseen: each is held against the highest.
    with pytest.raises(NoCurve, match="it is 60 at 1 and 56 at 4"):
        Curve.of([(1, 60.0), (2, 58.0), (4, 56.0)], "p95")


def test_a_share_of_a_gpu_need_not_be_whole() -> None:
    """Three GPUs with 4, 8 and 16 generations together."""
    curve = Curve.of([(4 / 3, 50.0), (8 / 3, 80.0), (16 / 3, 120.0)], "p95")
    assert curve.within(50) == 1  # not more than at 1.33
    assert curve.within(80) == 2  # 2.67
    assert curve.within(90) == 3  # 2.67 + 2.67 * 10 / 40 = 3.33
    assert curve.within(500) == 5


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "two concurrencies or more with p95; it has 0"),
        ([(4, 80.0)], "two concurrencies or more with p95; it has 1, at 4"),
        ([(4, 80.0), (8, None), (16, 90.0)], "it has 1, at 4"),
        (
            [(1, 50.0), (4, 120.0), (8, 90.5), (16, 80.0)],
            "p95 that does not fall as concurrency rises; it is 120 at 4 and 90.5 at 8",
        ),
    ],
)
def test_points_that_are_no_curve(points: list[tuple[int, float | None]], said: str) -> None:
    with pytest.raises(NoCurve) as caught:
        Curve.of(points, "p95")
    assert said in str(caught.value)


def test_every_budget_is_kept_at_the_answer_and_missed_above_it() -> None:
    for curve in (H100, H100_MIG):
        for tenths in range(500, 3200, 7):
            budget = tenths / 10
            found = curve.within(budget)
            there, above = curve.at(found), curve.at(found + 1)
            assert there is None or there <= budget + 1e-6
            assert above is None or above > budget
