"""The nodes of the simulation, worked by hand: 40 s to a node, 30 s to its image, 30 s to ready."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sonic_eks.simulation.nodes import ColdStart, Fleet

COLD_START = ColdStart(node=40, image=30, weights=30)


def fleet(replicas: int = 1, **changed: Any) -> Fleet:
    one = Fleet(**{"cold_start": COLD_START, "keep_seconds": 600, **changed})
    one.begin(0, replicas)
    return one


def remove(one: Fleet, now: float, replicas: int, *, drained: float | None = None) -> None:
    one.ready(now)
    for pod in one.scale(now, replicas):
        one.end(pod, now if drained is None else drained)


def seconds(one: Fleet, end: float, begin: float = 0) -> float:
    return one.gpu_hours(begin, end) * 3600


def test_a_worker_without_a_node_waits_for_all_of_it() -> None:
    one = fleet()
    one.scale(5, 3)
    assert [pod.ready for pod in one.pods] == [0, 105, 105]
    assert one.ready(104) == []
    assert one.ready(105) == [(105, 2)]
    assert one.ready(200) == []
    # A node costs from its launch: 200 s, and twice 195 s.
    assert seconds(one, 200) == pytest.approx(590)
    assert seconds(one, 200, begin=100) == pytest.approx(300)


def test_a_freed_node_has_the_image_while_it_is_kept() -> None:
    one = fleet(2)
    remove(one, 10, 1, drained=25)
    one.scale(30, 2)
    assert one.pods[-1].ready == 60
    assert seconds(one, 100) == pytest.approx(200)


def test_a_node_is_free_once_its_last_generation_has_ended() -> None:
    one = fleet(2)
    remove(one, 10, 1, drained=25)
    one.scale(20, 2)
    assert one.pods[-1].ready == 120  # a node of its own


def test_a_node_goes_when_it_was_kept_for_long_enough() -> None:
    one = fleet(2)
    remove(one, 10, 1, drained=25)
    one.settle(624)
    one.settle(640)
    assert seconds(one, 1000) == pytest.approx(1000 + 625)
    one.scale(1000, 2)
    assert one.pods[-1].ready == 1100


def test_nodes_that_stay_in_any_case_are_not_taken_away() -> None:
    one = fleet(2, always=2)
    remove(one, 10, 1)
    one.settle(5000)
    assert seconds(one, 5000) == pytest.approx(10_000)


def test_a_placeholder_gives_way_at_once_and_gets_a_new_node() -> None:
    one = fleet(1, headroom=1)
    one.scale(100, 2)
    assert one.pods[-1].ready == 130
    # Three nodes from then on.
    assert seconds(one, 200) == pytest.approx(2 * 200 + 100)


def test_a_placeholders_node_that_is_on_its_way_is_a_workers_first() -> None:
    one = fleet(1, headroom=1)
    one.scale(100, 2)
    one.scale(110, 3)
    # Launched for the placeholder at 100: up at 140, its image at 170.
    assert one.pods[-1].ready == 200
    # At 250 the placeholder's third node, launched at 110, is up with its image.
    one.scale(250, 4)
    assert one.pods[-1].ready == 280


def test_a_free_node_is_taken_before_a_placeholders() -> None:
    one = fleet(2, headroom=1)
    remove(one, 10, 1)
    one.scale(20, 2)
    assert one.pods[-1].ready == 50
    assert seconds(one, 100) == pytest.approx(300)  # nothing was launched


def test_a_node_on_its_way_that_nobody_waits_for_is_taken_next() -> None:
    one = fleet(1)
    one.scale(0, 2)
    remove(one, 10, 1)
    one.scale(20, 2)
    assert one.pods[-1].ready == 100
    assert seconds(one, 200) == pytest.approx(400)
    # An image that was not there yet is pulled anew.
    other = fleet(1)
    other.scale(0, 2)
    remove(other, 50, 1)
    other.scale(90, 2)
    assert other.pods[-1].ready == 150


def test_nobody_gets_a_node_while_there_is_none_to_be_had() -> None:
    one = fleet(1, outages=[(50, 100)])
    one.scale(60, 3)
    assert [pod.ready for pod in one.pods] == [0, math.inf, math.inf]
    one.settle(99)
    assert one.pods[-1].ready == math.inf
    one.settle(100)
    assert [pod.ready for pod in one.pods] == [0, 200, 200]


def test_a_worker_gets_the_node_that_is_freed_before_a_placeholder_does() -> None:
    one = fleet(3, headroom=1, outages=[(0, 1000)])
    one.scale(10, 5)  # one takes the placeholder's, one waits, and so does the placeholder
    assert [pod.ready for pod in one.pods] == [0, 0, 0, 40, math.inf]
    first, waiting = one.pods[0], one.pods[-1]
    one.pods.remove(first)
    one.end(first, 20)
    one.settle(20)
    assert waiting.ready == 50


def test_what_serves_for_longest_is_removed_last() -> None:
    one = fleet(2, outages=[(100, 200)])
    one.scale(50, 3)
    one.ready(150)
    one.scale(150, 4)
    without_node, late, *early = sorted(one.pods, key=lambda pod: -pod.ready)
    assert without_node.ready == math.inf
    one.ready(160)
    assert one.scale(160, 3) == []
    assert without_node not in one.pods
    assert one.scale(161, 2) == [late]
    assert one.scale(162, 1) == [max(early, key=lambda pod: pod.number)]
