"""Replicas, spare GPUs and nodes from traffic: cases worked by hand, and what is refused.

A worker is wanted for each threshold (generations a GPU times target utilization, 0.75) of the
demand. Until a worker on a spare GPU is ready, 30 s + 0.3 * 180 s pass, on a new node 30 s + 180 s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonic_eks.config import Configuration
from sonic_eks.sizing.demand import waiting_share, workers_for
from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]

H100 = ("nodes.gpu.instanceType", "p5.4xlarge")
EIGHT: Changes = [H100, ("slo.ttfbMs", 185)]  # 8 generations a GPU, measured

# What the cases count on: no margin for chance, a target below what a worker takes.
PLAIN: Changes = [("scaling.targetUtilization", 0.75), ("scaling.marginSigmas", 0.0)]


def busy(peak: int, trough: int = 0, ramp: int = 0) -> dict[str, int]:
    return {
        "peakGenerations": peak,
        "troughGenerations": trough,
        "rampGenerationsPerMinute": ramp,
    }


def talking(peak: int, **others: Any) -> dict[str, Any]:
    return {"peakConversations": peak, **others}


def sized(config: Configuration) -> dict[str, Any]:
    return {
        "min": [config.min_replicas(model) for model in config.models],
        "max": [config.max_replicas(model) for model in config.models],
        "reserve": config.reserve_generations,
        "headroom": config.headroom_gpus,
        "nodes": config.gpu_max_nodes,
        "api": (config.api_min_replicas, config.api_max_replicas),
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # The default: no traffic.
        ([], {"min": [2], "max": [8], "reserve": 0, "headroom": 1, "nodes": 9, "api": (3, 6)}),
        # 60 / 6 = 10, 300 / 6 = 50. Free at the trough: 80 - 60 = 20. The ramp brings 14 within
        # 84 s, none of them without a slot, and 35 within 210 s: 15 / 8 GPUs. Streams: 3 for each
        # generation (a second of it, 2 s idle): 180 / 50, 900 / 50 + 1.
        (
            [*EIGHT, ("models", [{"traffic": busy(300, 60, 10)}])],
            {"min": [10], "max": [50], "reserve": 0, "headroom": 2, "nodes": 52, "api": (4, 19)},
        ),
        # On the L40S, assumed 2: 60 / 1.5, 300 / 1.5. Free: 80 - 60 = 20; 15 / 2 GPUs.
        (
            [("models", [{"traffic": busy(300, 60, 10)}])],
            {"min": [40], "max": [200], "reserve": 0, "headroom": 8, "nodes": 208, "api": (4, 19)},
        ),
        # Threshold 2. Two workers have 8 slots free, 84 come within 84 s: 76 in reserve, which
        # are 38 workers with 152 slots free; 210 - 152 = 58, at 4 a GPU 14.5. Peak: 376 / 2.
        # Streams: 900 / 50 and one.
        (
            [
                ("scaling.generationsPerGpu", 4),
                ("scaling.targetUtilization", 0.5),
                ("models", [{"traffic": busy(300, 0, 60)}]),
            ],
            {"min": [38], "max": [188], "reserve": 76, "headroom": 15, "nodes": 203,
             "api": (3, 19)},
        ),
        # The same ramp ends at a peak of 100: 84 come within 84 s, but no more than 100 ever do,
        # and 152 slots are free. Peak: 176 / 2.
        (
            [
                ("scaling.generationsPerGpu", 4),
                ("scaling.targetUtilization", 0.5),
                ("models", [{"traffic": busy(100, 0, 60)}]),
            ],
            {"min": [38], "max": [88], "reserve": 76, "headroom": 1, "nodes": 89, "api": (3, 7)},
        ),
        # A jump from 4 to 10: 6 come at once, whatever the ramp says. 3 workers (2.7) have 2 slots
        # free: 4 in reserve. 6 workers (5.3) then have 8 free. Peak: 14 / 1.5.
        (
            [("models", [{"traffic": busy(10, 4, 1000)}])],
            {"min": [6], "max": [10], "reserve": 4, "headroom": 1, "nodes": 11, "api": (3, 6)},
        ),
        # Two square roots of 100, and ten: 130 / 1.5 = 86.7.
        (
            [
                ("scaling.marginSigmas", 2.0),
                ("scaling.reserveGenerations", 10),
                ("models", [{"traffic": busy(100)}]),
            ],
            {"min": [7], "max": [87], "reserve": 10, "headroom": 1, "nodes": 88, "api": (3, 7)},
        ),
        # A cold start of 600 s: 30 + 180 = 210 s and 630 s; 4 slots free. Reserve 3.5 * 6 - 4 = 17,
        # 12 workers (11.3) with 24 slots; 63 - 24 = 39, at 2 a GPU 19.5. Peak: 87 / 1.5 = 58.
        (
            [("scaling.coldStartSeconds", 600), ("models", [{"traffic": busy(70, 0, 6)}])],
            {"min": [12], "max": [58], "reserve": 17, "headroom": 20, "nodes": 78, "api": (3, 6)},
        ),
        # 1000 conversations, 40 % of the time speaking at a real-time factor of 0.10: 40.
        (
            [H100, ("models", [{"traffic": talking(1000, troughConversations=100)}])],
            {"min": [3], "max": [27], "reserve": 0, "headroom": 1, "nodes": 28, "api": (3, 6)},
        ),
        # 0.5 * 0.25: 125; a ramp of 80 conversations is one of 10 generations, in 210 s 35, of
        # which the two workers without traffic have 4 slots; 31 / 2. Reserve 14 - 4: 6.7 workers.
        # Then 14 slots are free: 21 / 2 = 10.5.
        (
            [
                (
                    "models",
                    [
                        {
                            "traffic": talking(
                                1000,
                                rampConversationsPerMinute=80,
                                speakingShare=0.5,
                                realTimeFactor=0.25,
                            )
                        }
                    ],
                )
            ],
            {"min": [7], "max": [90], "reserve": 10, "headroom": 11, "nodes": 101, "api": (3, 9)},
        ),
        # Four GPUs a node: (200 + 8) / 4.
        (
            [
                ("nodes.gpu.instanceType", "g6e.12xlarge"),
                ("models", [{"traffic": busy(300, 60, 10)}]),
            ],
            {"min": [40], "max": [200], "reserve": 0, "headroom": 8, "nodes": 52, "api": (4, 19)},
        ),
        # Never below the base's size.
        (
            [("nodes.gpu.baseSize", 12), ("models", [{"traffic": busy(3)}])],
            {"min": [2], "max": [2], "reserve": 0, "headroom": 1, "nodes": 12, "api": (3, 6)},
        ),
        # A ramp asks for 350 / 2 spare GPUs: the field takes 50.
        (
            [
                ("scaling.reserveGenerations", 0),
                ("models", [{"traffic": busy(450, 0, 100)}]),
            ],
            {"min": [2], "max": [300], "reserve": 0, "headroom": 50, "nodes": 350,
             "api": (3, 28)},
        ),
        # Without traffic nodes follow from the workers: 8 and one, 8 to a node, but a base of 2.
        (
            [("nodes.gpu.instanceType", "p6-b200.48xlarge")],
            {"min": [2], "max": [8], "reserve": 0, "headroom": 1, "nodes": 2, "api": (3, 6)},
        ),
        (
            [("models", [{"name": "a", "maxReplicas": 20}, {"name": "b"}])],
            {"min": [2, 2], "max": [20, 8], "reserve": 0, "headroom": 1, "nodes": 29,
             "api": (3, 6)},
        ),
        # One pinned bound of the API takes the other along.
        ([("api.maxReplicas", 2)],
         {"min": [2], "max": [8], "reserve": 0, "headroom": 1, "nodes": 9, "api": (2, 2)}),
        ([("scaling.headroomGpus", 5)],
         {"min": [2], "max": [8], "reserve": 0, "headroom": 5, "nodes": 13, "api": (3, 6)}),
        ([("scaling.headroomGpus", 0)],
         {"min": [2], "max": [8], "reserve": 0, "headroom": 0, "nodes": 9, "api": (3, 6)}),
        ([("scaling.headroomGpus", 0), ("scaling.rollout", "replace")],
         {"min": [2], "max": [8], "reserve": 0, "headroom": 0, "nodes": 8, "api": (3, 6)}),
    ],
)  # fmt: skip
def test_sizes(tmp_path: Path, changes: Changes, expected: dict[str, Any]) -> None:
    assert sized(load(with_values(*PLAIN, *changes), tmp_path)) == expected


def test_margins_for_chance_are_the_default(tmp_path: Path) -> None:
    # Two square roots of 60 and of 300: 75.5 / 8 and 334.6 / 8. The rest as with 10 and 50.
    traffic = ("models", [{"traffic": busy(300, 60, 10)}])
    assert sized(load(with_values(*EIGHT, traffic), tmp_path)) == {
        "min": [10],
        "max": [42],
        "reserve": 0,
        "headroom": 2,
        "nodes": 44,
        "api": (4, 19),
    }


def test_models_share_spare_gpus_and_nodes(tmp_path: Path) -> None:
    """The largest reserve holds for each model's policy; spare GPUs add up."""
    config = load(
        with_values(
            *EIGHT,
            *PLAIN,
            (
                "models",
                [
                    {"name": "a", "traffic": busy(300, 60, 10)},  # needs 2 spare GPUs
                    {"name": "b", "traffic": busy(100, 10, 20)},
                    {"name": "c"},
                ],
            ),
        ),
        tmp_path,
    )
    # b: 2 workers, 16 - 10 = 6 free; 20 a minute bring 28 in 84 s: 22 in reserve, for a too.
    # a: 82 / 6 -> 14 workers, 112 - 60 = 52 free: 35 in 210 s are none too many.
    # b: 32 / 6 -> 6 workers, 48 - 10 = 38 free; 70 - 38 = 32: 4 GPUs.
    # Peaks: 322 / 6 -> 54, 122 / 6 -> 21. c has the default, 2 to 8.
    # Streams: 3 * (60 + 10 + 2 * 8) / 50 -> 6; 3 * (400 + 64) / 50 -> 28, and one.
    assert sized(config) == {
        "min": [14, 6, 2],
        "max": [54, 21, 8],
        "reserve": 22,
        "headroom": 4,
        "nodes": 54 + 21 + 8 + 4,
        "api": (6, 29),
    }


def test_two_models_that_rise(tmp_path: Path) -> None:
    config = load(
        with_values(
            *EIGHT,
            (
                "models",
                [
                    {"name": "a", "traffic": busy(400, 0, 60)},
                    {"name": "b", "traffic": busy(200, 0, 30)},
                ],
            ),
        ),
        tmp_path,
    )
    # 16 slots are free of each: 84 - 16 = 68 and 42 - 16 = 26; the larger is the reserve of both.
    # That are 9 workers (8.5) with 72 slots: 210 - 72 = 138, 18 GPUs, and 105 - 72 = 33, 5 GPUs.
    # Peaks: (400 + 2 sqrt(400) + 68) / 8 = 63.5, (200 + 2 sqrt(200) + 68) / 8 = 37.04. Streams:
    # 600 * 3 / 50 and one.
    assert sized(config) == {
        "min": [9, 9],
        "max": [64, 38],
        "reserve": 68,
        "headroom": 23,
        "nodes": 64 + 38 + 23,
        "api": (3, 37),
    }


def test_the_real_time_factor_is_the_profiles(tmp_path: Path) -> None:
    """Of a GPU's own concurrency, and of p95: 100 conversations * 0.4 * 0.2."""
    (tmp_path / "p.yaml").write_text(
        """\
gpu: L40S
gpus: 2
model: sonic-3
side: client
source: a test
dated: "2026-11-30"
points:
- {concurrency: 1, firstAudioMs: {p95: 90.0}, rtf: {p95: 0.9}}
- {concurrency: 2, firstAudioMs: {p95: 94.0}, rtf: {p50: 0.1, p95: 0.2}}
- {concurrency: 6, firstAudioMs: {p95: 114.0}, rtf: {p95: 0.8}}
"""
    )
    config = load(
        with_values(("scaling.profile", "p.yaml"), ("models", [{"traffic": talking(100)}])),
        tmp_path,
    )
    assert config.generations_per_gpu == 1  # 1 + 2 * 6 / 20 = 1.6
    assert config.max_replicas(config.models[0]) == 14  # 8 + 2 sqrt(8) = 13.7


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("models", [{"traffic": busy(300, 60, 10), "maxReplicas": 20}])], {"max": [20]}),
        # Below the trough's 10: the lower bound follows.
        (
            [("models", [{"traffic": busy(300, 60, 10), "maxReplicas": 5}])],
            {"max": [5], "min": [5]},
        ),
        (
            [("models", [{"traffic": busy(30, 6), "minReplicas": 9}])],
            {"min": [9], "max": [9]},
        ),
        # What is pinned is free at the trough too: 12 * 8 - 60 = 36, and 35 come.
        (
            [("models", [{"traffic": busy(300, 60, 10), "minReplicas": 12}])],
            {"min": [12], "headroom": 1},
        ),
        ([("scaling.headroomGpus", 0)], {"headroom": 0}),
        # Nodes are a budget: one for an update's surge, the rest for workers.
        ([("nodes.gpu.maxNodes", 31)], {"nodes": 31, "max": [30], "min": [10], "headroom": 2}),
        ([("nodes.gpu.maxNodes", 11)], {"nodes": 11, "max": [10], "min": [10], "headroom": 1}),
        ([("nodes.gpu.maxNodes", 5)], {"nodes": 5, "max": [4], "min": [4], "headroom": 1}),
        (
            [("nodes.gpu.maxNodes", 10), ("scaling.rollout", "replace")],
            {"nodes": 10, "max": [10], "min": [10], "headroom": 0},
        ),
        ([("api.minReplicas", 2)], {"api": (2, 19)}),
        ([("api.maxReplicas", 3)], {"api": (3, 3)}),
        ([("api.minReplicas", 30)], {"api": (30, 30)}),
        ([("scaling.generationsPerApiPod", 200)], {"api": (3, 6)}),
        ([("drain.idleSeconds", 4)], {"api": (6, 31)}),  # 5 streams a generation
    ],
)
def test_what_is_pinned_stays_and_the_rest_follows(
    tmp_path: Path, changes: Changes, expected: dict[str, Any]
) -> None:
    traffic = ("models", [{"traffic": busy(300, 60, 10)}])
    found = sized(load(with_values(*EIGHT, *PLAIN, traffic, *changes), tmp_path))
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("traffic", "fault"),
    [
        ({}, "models.0.traffic: got nothing; allowed: one of peakGenerations and"),
        (
            {"peakGenerations": 3, "peakConversations": 3},
            "models.0.traffic: got 'both'; allowed: one of peakGenerations and peakConversations",
        ),
        (
            {"troughGenerations": 3},
            "models.0.traffic: got nothing; allowed: one of peakGenerations and",
        ),
        (
            busy(30, 31),
            "models.0.traffic.troughGenerations: got 31; allowed: at most peakGenerations (30);",
        ),
        (
            talking(30, troughConversations=31, realTimeFactor=0.1),
            "models.0.traffic.troughConversations: got 31; allowed: at most peakConversations",
        ),
        (
            {"peakGenerations": 3, "speakingShare": 0.4},
            "models.0.traffic.speakingShare: got 0.4; allowed: none beside peakGenerations",
        ),
        (
            {"peakGenerations": 3, "realTimeFactor": 0.4},
            "models.0.traffic.realTimeFactor: got 0.4; allowed: none beside peakGenerations",
        ),
        (
            {"peakGenerations": 3, "troughConversations": 1},
            "models.0.traffic.troughConversations: got 1; allowed: none beside peakGenerations",
        ),
        (
            talking(3, rampGenerationsPerMinute=0),
            "models.0.traffic.rampGenerationsPerMinute: got 0; allowed: none beside peakConv",
        ),
        (
            talking(300),
            (
                "models.0.traffic.realTimeFactor: got nothing; allowed: seconds of work for a"
                " second of audio, which no profile says of the L40S at 2 generations or more; or"
                " peakGenerations"
            ),
        ),
        (
            busy(3000),
            (
                "models.0.traffic: got 3000; allowed: what 500 workers carry; at 2 generations a"
                " GPU these are 2000: share it out to several deployments"
            ),
        ),
        (busy(-1), "models.0.traffic.peakGenerations: got -1; allowed: a whole number, 1 to"),
        (busy(0), "models.0.traffic.peakGenerations: got 0; allowed: a whole number, 1 to 100000"),
        ({"peakGenerations": 1.5}, "models.0.traffic.peakGenerations: got 1.5; allowed: a whole"),
        ({"peakGenerations": 10**30}, "models.0.traffic.peakGenerations: got 1000"),
        (busy(3, -1), "models.0.traffic.troughGenerations: got -1; allowed: a whole number, 0 to"),
        (
            talking(3, speakingShare=float("nan")),
            "models.0.traffic.speakingShare: got nan; allowed: a number, 0.01 to 1.0",
        ),
        ({"peak": 3}, "models.0.traffic.peak: unknown key; allowed: peakGenerations, "),
        ([], "models.0.traffic: got a list of 0; allowed: a mapping of keys"),
    ],
)
def test_bad_traffic_is_one_line(tmp_path: Path, traffic: Any, fault: str) -> None:
    document = with_values(*PLAIN, ("models", [{"traffic": traffic}]))
    assert fault_of(document, tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            [
                (
                    "models",
                    [
                        {"name": "a", "traffic": busy(600)},
                        {"name": "b", "traffic": busy(600)},
                    ],
                )
            ],
            "nodes.gpu.maxNodes: got 801; allowed: at most 500: so many follow from all models'",
        ),
        # 301 workers of 1.5 for 451 generations, 300 more for a reserve of 450.
        (
            [
                ("scaling.reserveGenerations", 450),
                ("models", [{"traffic": busy(451)}]),
            ],
            (
                "models.0.traffic: got 451; allowed: what 500 workers carry; at 2 generations a GPU"
                " and 450 in reserve these are 601: share it out to several deployments"
            ),
        ),
        (
            [
                ("scaling.generationsPerApiPod", 1),
                ("models", [{"traffic": busy(100)}]),
            ],
            "api.maxReplicas: got 301; allowed: at most 200: so many follow from models[].traffic",
        ),
        # Two models share pinned nodes as the operator says.
        (
            [
                ("nodes.gpu.maxNodes", 20),
                (
                    "models",
                    [{"name": "a", "traffic": busy(20)}, {"name": "b", "traffic": busy(20)}],
                ),
            ],
            "nodes.gpu.maxNodes: got 20; allowed: at least 28: the models' maxReplicas add up to",
        ),
    ],
)
def test_what_follows_is_within_bounds(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*PLAIN, *changes), tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("demand", "sigmas", "reserve", "threshold", "workers"),
    [
        (0, 0, 0, 1.5, 0),
        (0, 3, 0, 1.5, 0),
        (6, 0, 0, 1.5, 4),
        (6.1, 0, 0, 1.5, 5),
        (100, 1, 0, 6, 19),  # 110 / 6 = 18.3
        (100, 0, 14, 6, 19),
        (0.3, 0, 0, 0.1, 3),  # 0.3 / 0.1 is a little below 3, or above, in binary
        (2.1, 0, 0, 0.7, 3),
    ],
)
def test_workers(
    demand: float, sigmas: float, reserve: float, threshold: float, workers: int
) -> None:
    assert workers_for(demand, threshold=threshold, sigmas=sigmas, reserve=reserve) == workers


@pytest.mark.parametrize(
    ("demand", "slots", "share"),
    [
        (0, 4, 0.0),
        (0.5, 1, 0.5),  # one slot: as often as it is busy
        (1, 2, 1 / 3),  # a^2/2 * 2/(2-a) over 1 + a + that
        (2, 3, 4 / 9),
        (3, 3, 1.0),
        (5, 3, 1.0),
        (300, 400, 0.0),
    ],
)
def test_waiting_share_is_erlangs(demand: float, slots: int, share: float) -> None:
    assert waiting_share(demand, slots) == pytest.approx(share, abs=1e-6)
