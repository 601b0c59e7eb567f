"""The HPA of the simulation, against examples worked in documents.

"The page" is Kubernetes' "Horizontal Pod Autoscaling"; "the controller's tests" are those of
kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal_test.go.
"""

from __future__ import annotations

import itertools

import pytest

from sonic_eks.capacity.policy import Direction, Limit
from sonic_eks.simulation.hpa import Hpa, wish_of_average_value, wish_of_utilization

# The page, "Default Behavior".
DEFAULT_UP = (Limit("Percent", 100, 15), Limit("Pods", 4, 15))
DEFAULT_DOWN = (Limit("Percent", 100, 15),)


def hpa(
    *,
    up: tuple[Limit, ...] = DEFAULT_UP,
    down: tuple[Limit, ...] = DEFAULT_DOWN,
    up_window: int = 0,
    down_window: int = 0,
    bounds: tuple[int, int] = (1, 1000),
) -> Hpa:
    return Hpa(
        up=Direction(window_seconds=up_window, limits=up, tolerance=0.1),
        down=Direction(window_seconds=down_window, limits=down, tolerance=0.1),
        min_replicas=bounds[0],
        max_replicas=bounds[1],
    )


def wish(total: float, target: float, replicas: int, up: float = 0.1, down: float = 0.1) -> int:
    return wish_of_average_value(total, target, replicas, up_tolerance=up, down_tolerance=down)


@pytest.mark.parametrize(
    ("total", "target", "replicas", "wanted"),
    [
        # The page, "Algorithm details": 200m on average for 100m doubles, 50m halves.
        (0.8, 0.1, 4, 8),
        (0.2, 0.1, 4, 2),
        # Its tolerance of 0.1: ten replicas at 110 % and at 90 % stay, a thousandth more acts.
        (1.1, 0.1, 10, 10),
        (1.101, 0.1, 10, 12),
        (0.9, 0.1, 10, 10),
        (0.899, 0.1, 10, 9),
        (0, 0.1, 3, 0),
        # No ratio to compare with.
        (1.05, 0.1, 0, 11),
        # 64 / 6.4 is 10, though not in binary: 6.4 has no finite fraction there.
        (6.4 * 10, 6.4, 5, 10),
    ],
)
def test_wish_is_the_total_by_the_target(
    total: float, target: float, replicas: int, wanted: int
) -> None:
    assert wish(total, target, replicas) == wanted


def test_tolerance_has_two_directions() -> None:
    # API reference, HPAScalingRules: a tolerance of 5 % down and 1 % up on a target of 100 acts
    # below 95 and above 101.
    assert [wish(total, 100, 1, up=0.01, down=0.05) for total in (101, 101.001)] == [1, 2]
    assert [wish(10 * total, 100, 10, up=0.01, down=0.05) for total in (95, 89)] == [10, 9]


@pytest.mark.parametrize(
    ("percent", "replicas", "wanted"),
    [
        (140, 4, 8),
        (35, 4, 2),
        (76, 4, 4),  # within a tenth of 70
        # The controller divides whole percents: 77.9 counts as 77, which is 1.1 * 70.
        (77.9, 10, 10),
        (78, 10, 12),  # 11.14
        (30, 10, 5),  # 4.29
    ],
)
def test_utilization_scales_the_ready_pods(percent: float, replicas: int, wanted: int) -> None:
    assert wish_of_utilization(percent, 70, replicas, tolerance=0.1) == wanted


def test_scaling_policies_as_the_page_works_them() -> None:
    # "Scaling policies": from 80 to 10, a tenth or 4 pods a minute. First 8; of 72 it is 7.2,
    # rounded up to 8; from 40 on it is 4 pods.
    down = hpa(down=(Limit("Pods", 4, 60), Limit("Percent", 10, 60)))
    replicas = [80]
    for minute in range(20):
        replicas.append(down.decide(60.0 * minute, replicas[-1], 10))
    assert replicas[:8] == [80, 72, 64, 57, 51, 45, 40, 36]
    steps = [before - after for before, after in itertools.pairwise(replicas) if before <= 40]
    assert set(steps[:7]) == {4}
    assert replicas[-1] == 10


def test_a_limit_holds_in_any_period_and_not_from_its_own_beginning() -> None:
    # A minute allows 4: one at a time is as good, and then the minute must pass.
    down = hpa(down=(Limit("Pods", 4, 60),))
    assert down.decide(0, 20, 19) == 19
    assert down.decide(15, 19, 10) == 16
    assert down.decide(30, 16, 10) == 16
    assert down.decide(60, 16, 10) == 15  # what was removed at 0 counts no more
    assert down.decide(75, 15, 10) == 12


def test_default_behavior_doubles_or_adds_four_every_15_seconds() -> None:
    # "Default Behavior": 4 pods or 100 % every 15 seconds.
    up = hpa()
    replicas = [1]
    for sync in range(5):
        replicas.append(up.decide(15.0 * sync, replicas[-1], 100))
    assert replicas == [1, 5, 10, 20, 40, 80]


def test_default_behavior_takes_the_highest_wish_of_five_minutes() -> None:
    # "Stabilization Window": all desired states of the past 5 minutes, the highest counts; then
    # everything may go at once.
    down = hpa(down_window=300)
    assert down.decide(0, 50, 50) == 50
    replicas = 50
    for seconds in range(15, 300, 15):
        replicas = down.decide(seconds, replicas, 3)
        assert replicas == 50
    assert down.decide(300, replicas, 3) == 3


def test_what_there_is_at_the_beginning_is_a_recommendation() -> None:
    # The controller's recordInitialRecommendation: a window holds what it finds, both ways.
    both = hpa(up_window=30, down_window=300)
    assert [both.decide(seconds, 10, 0) for seconds in range(0, 300, 15)] == [10] * 20
    assert both.decide(300, 10, 3) == 3
    up = hpa(up_window=30, down_window=300)
    assert [up.decide(seconds, 10, 20) for seconds in (0, 15, 30)] == [10, 10, 20]


def test_a_window_upwards_takes_the_lowest_wish() -> None:
    up = hpa(up_window=30)
    assert up.decide(0, 5, 5) == 5
    assert up.decide(15, 5, 9) == 5
    assert up.decide(30, 5, 8) == 8


def test_windows_keep_what_neither_direction_agrees_on() -> None:
    # A wish that swings between 3 and 9 neither adds to 6 nor takes from it.
    swinging = hpa(up_window=60, down_window=60)
    decided = [swinging.decide(15.0 * sync, 6, (3, 9)[sync % 2]) for sync in range(8)]
    assert decided[1:] == [6] * 7


@pytest.mark.parametrize(
    ("behavior", "replicas", "wanted", "decided"),
    [
        # The controller's tests, TestScalingWithRules, without earlier changes.
        ({}, 10, 50, 20),
        ({"up": (Limit("Percent", 1, 60),)}, 3, 1000, 4),
        ({"up": (Limit("Pods", 100, 60), Limit("Percent", 100, 60))}, 10, 500, 110),
        ({"up": (Limit("Pods", 2, 60), Limit("Percent", 100, 60))}, 10, 500, 20),
        ({"up": (Limit("Pods", 100, 60),)}, 10, 50, 50),
        ({"up": (Limit("Pods", 30, 60),)}, 10, 50, 40),
        ({"up": (Limit("Percent", 200, 60),)}, 10, 50, 30),
        ({"down": (Limit("Pods", 20, 60), Limit("Percent", 1, 60))}, 100, 2, 80),
        ({"down": (Limit("Pods", 2, 60), Limit("Percent", 1, 60))}, 100, 2, 98),
        ({"down": (Limit("Pods", 100, 60),)}, 10, 0, 1),
        ({"down": (Limit("Percent", 100, 60),), "bounds": (5, 1000)}, 10, 2, 5),
        ({"down": (Limit("Percent", 50, 60),)}, 10, 5, 5),
        ({"down": (Limit("Pods", 20, 60),), "bounds": (3, 2000)}, 1000, 3, 980),
        ({"bounds": (3, 8)}, 5, 7, 7),
        ({"bounds": (2, 8)}, 3, 1, 2),
        ({"bounds": (100, 150)}, 100, 1000, 150),
        # Beyond a bound the metric is not looked at (TestScaleUpRCImmediately and its sibling).
        ({"bounds": (2, 6)}, 1, 0, 2),
        ({"bounds": (2, 5)}, 6, 9, 5),
    ],
)
def test_limits_as_in_the_controllers_tests(
    behavior: dict[str, tuple[Limit, ...]], replicas: int, wanted: int, decided: int
) -> None:
    assert hpa(**behavior).decide(0, replicas, wanted) == decided  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "decided"),
    [
        # TestScalingWithRules: 15 were added in the last 120 seconds, 1, 5 and 9.
        (Limit("Pods", 150, 120), 235),  # 100 - 15 + 150
        (Limit("Percent", 200, 120), 255),  # 85 and 200 % of it
        (Limit("Pods", 5, 120), 100),  # 90 would be less than there are
    ],
)
def test_limits_count_from_the_replicas_at_the_periods_start(limit: Limit, decided: int) -> None:
    up = hpa(up=(limit,))
    replicas = 85
    # As if by an earlier, wider limit.
    for seconds, added in ((20, 1), (60, 5), (100, 9)):
        up.up = Direction(window_seconds=0, limits=(Limit("Pods", added, 15),), tolerance=0.1)
        up.down = Direction(window_seconds=0, limits=(Limit("Pods", 1, 120),), tolerance=0.1)
        replicas = up.decide(seconds, replicas, replicas + added)
    up.up = Direction(window_seconds=0, limits=(limit,), tolerance=0.1)
    assert replicas == 100
    assert up.decide(120, replicas, 500) == decided


def test_what_was_removed_in_the_period_may_be_added_again() -> None:
    # The controller takes the replicas at the start from both directions' changes.
    both = hpa(up=(Limit("Pods", 2, 60),), down=(Limit("Pods", 5, 60),))
    assert both.decide(0, 20, 10) == 15
    assert both.decide(15, 15, 40) == 22
