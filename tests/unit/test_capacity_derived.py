"""The derivation: every value with its mark and its reason, and what a pinned one risks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sonic_eks.capacity.derived import Derived, derive
from sonic_eks.config import Configuration, load_configuration
from tests.configuration import load, with_values
from tests.synth import ROOT

Changes = list[tuple[str, Any]]

EIGHT: Changes = [("nodes.gpu.instanceType", "p5.4xlarge"), ("slo.ttfbMs", 185)]
TRAFFIC = {"peakGenerations": 300, "troughGenerations": 60, "rampGenerationsPerMinute": 10}
BUSY: Changes = [*EIGHT, ("models", [{"traffic": TRAFFIC}])]

# What the cases count on: no margin for chance, a target below what a worker takes.
PLAIN: Changes = [("scaling.targetUtilization", 0.75), ("scaling.marginSigmas", 0.0)]


def derived(folder: Path, changes: Changes) -> dict[str, Derived]:
    found = derive(load(with_values(*changes), folder))
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def test_the_derivation_in_its_order(tmp_path: Path) -> None:
    found = derived(tmp_path, BUSY)
    assert [(one.name, one.value, one.unit, one.mark) for one in found.values()] == [
        ("scaling.generationsPerGpu", 8, "generations", "measured"),
        ("scaling.targetUtilization", 1.0, "", "default"),
        ("scaling.marginSigmas", 2.0, "", "default"),
        ("models.0.minReplicas", 10, "workers", "derived"),  # (60 + 2 sqrt(60)) / 8
        ("models.0.maxReplicas", 42, "workers", "derived"),  # (300 + 2 sqrt(300)) / 8
        ("models.0.maxConcurrentStreams", 8, "generations", "derived"),
        ("models.0.maxBatchSize", 8, "generations", "derived"),
        ("sonic-3: utilization at the peak", 0.893, "", "derived"),
        # Erlang C of 300 on 336: 0.0253.
        ("sonic-3: generations that wait at the peak", 0.0253, "", "derived"),
        ("scaling.reserveGenerations", 0, "generations", "derived"),
        ("scaling.headroomGpus", 2, "GPUs", "derived"),
        ("nodes.gpu.maxNodes", 44, "nodes", "derived"),
        ("nodes.gpu.overflow.maxNodes", 21, "nodes", "default"),
        ("api.minReplicas", 4, "API pods", "derived"),
        ("api.maxReplicas", 19, "API pods", "derived"),
        ("nodes.serving.maxNodes", 7, "nodes", "derived"),  # 3 API pods a node
    ]
    assert [one.name for one in found.values() if one.risk] == ["scaling.headroomGpus"]
    assert found["scaling.generationsPerGpu"].reason == (
        "H100: p95 165 ms at 8, budget 165 ms (185 - 20 for the path)"
    )
    assert found["models.0.maxReplicas"].reason == (
        "peak of 300 generations and 34.6 for chance, 8 a worker"
    )


def test_the_default_is_marked_as_assumed(tmp_path: Path) -> None:
    found = derived(tmp_path, [])
    assert found["nodes.gpu.maxNodes"].mark == "derived"  # of the default's workers
    first = found["scaling.generationsPerGpu"]
    assert (first.value, first.mark) == (2, "assumed")
    assert first.reason == (
        "as the nearest measured GPU, H100: p95 55 ms at 2, budget 80 ms (100 - 20 for the path);"
        " the L40S has 26 % of its memory bandwidth"
    )
    assert first.risk == "nobody measured the L40S: measure it before callers rely on it"
    rest = {one.mark for one in found.values()} - {first.mark}
    assert rest == {"default", "derived"}


def test_conversations_are_counted_in_generations(tmp_path: Path) -> None:
    traffic = {"peakConversations": 1000}
    changes: Changes = [
        ("nodes.gpu.instanceType", "p5.4xlarge"),
        ("models", [{"traffic": traffic}]),
    ]
    found = derived(tmp_path, changes)["sonic-3: generations at the peak"]
    assert found.value == 40.0
    assert found.reason.startswith("1000 conversations, 0.04 generations each in the mean")


@pytest.mark.parametrize(
    ("changes", "name", "risk"),
    [
        # Generations per GPU: the H100 keeps 165 ms up to 8, and has 195 ms at 10.
        ([*EIGHT, ("scaling.generationsPerGpu", 8)], "scaling.generationsPerGpu", ""),
        (
            [*EIGHT, ("scaling.generationsPerGpu", 10)],
            "scaling.generationsPerGpu",
            "more than the 8 that keep 165 ms: p95 is 195 ms at 10",
        ),
        (
            [*EIGHT, ("scaling.generationsPerGpu", 40)],
            "scaling.generationsPerGpu",
            "more than the 8 that keep 165 ms: p95 is what was never measured at 40",
        ),
        (
            [*EIGHT, ("scaling.generationsPerGpu", 5)],
            "scaling.generationsPerGpu",
            "8 would keep the objective: costs 1.6 times the GPUs",
        ),
        (
            [EIGHT[0], ("slo.ttfbMs", 60), ("scaling.generationsPerGpu", 1)],
            "scaling.generationsPerGpu",
            "the profile says that the objective cannot be kept: 55 ms at 1",
        ),
        (
            [*EIGHT, ("registry.sonicRelease", "sonic-20261101")],
            "scaling.generationsPerGpu",
            "measured with sonic-20260503, another release than runs",
        ),
        (
            [("scaling.generationsPerGpu", 3)],
            "scaling.generationsPerGpu",
            "no profile of the L40S backs it",
        ),
        (
            [("slo.ttfbMs", 60)],
            "scaling.generationsPerGpu",
            "nothing says that the L40S can keep the objective at all: measure it first",
        ),
        (
            [*BUSY, ("scaling.targetUtilization", 1.0), ("scaling.reserveGenerations", 0)],
            "scaling.targetUtilization",
            "no slot is free in the mean: half of the time, demand is above it",
        ),
        (
            [*BUSY, ("scaling.targetUtilization", 1.0), ("scaling.marginSigmas", 2.0)],
            "scaling.targetUtilization",
            "",
        ),
        # 300 generations want 50 workers.
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 30}])],
            "models.0.maxReplicas",
            ("the peak needs 50: 60 of 300 generations find no slot, and wait or are refused"),
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 40}])],
            "models.0.maxReplicas",
            "the peak needs 50: workers are 94 % full there",  # 300 / 320
        ),
        # Erlang C of 300 on 320: 17.6 %; on 336: 2.5 %, more than p99 allows.
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 40}])],
            "sonic-3: generations that wait at the peak",
            "17.6 % wait, and p95 lets 5 % miss the objective: it is not kept at the peak",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 42}])],
            "sonic-3: generations that wait at the peak",
            "",
        ),
        (
            [
                ("scaling.generationsPerGpu", 8),
                ("slo.percentile", 99),
                ("models", [{"traffic": TRAFFIC, "maxReplicas": 42}]),
            ],
            "sonic-3: generations that wait at the peak",
            "2.5 % wait, and p99 lets 1 % miss the objective: it is not kept at the peak",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 60}])],
            "models.0.maxReplicas",
            "the peak needs 50: a fault or an attack may start 10 GPUs more",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 50}])],
            "models.0.maxReplicas",
            "",
        ),
        (
            [*BUSY, ("nodes.gpu.maxNodes", 31)],
            "models.0.maxReplicas",
            ("the peak needs 50: 60 of 300 generations find no slot, and wait or are refused"),
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "minReplicas": 13}])],
            "models.0.minReplicas",
            "costs 3 GPUs around the clock: the trough needs 10",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "minReplicas": 11}])],
            "models.0.minReplicas",
            "costs 1 GPU around the clock: the trough needs 10",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "minReplicas": 4}])],
            "models.0.minReplicas",
            "the trough needs 10: only the scaler keeps them, no lower bound",
        ),
        (
            [("models", [{"maxConcurrentStreams": 5}])],
            "models.0.maxConcurrentStreams",
            "a busy worker takes 5, and the objective is counted on at 2",
        ),
        ([("models", [{"maxBatchSize": 2}])], "models.0.maxBatchSize", ""),
        (
            [("models", [{"maxBatchSize": 1}])],
            "models.0.maxBatchSize",
            "below the 2 that scaling counts on",
        ),
        (
            [("models", [{"minReplicas": 0}]), ("scaling.coldStartSeconds", 240)],
            "models.0.minReplicas",
            "a first caller waits for a cold start, 240 s",
        ),
        # 35 generations come before a new node has a worker, 20 slots are free.
        (
            [*BUSY, ("scaling.headroomGpus", 1)],
            "scaling.headroomGpus",
            "the ramp outruns them: 7 generations wait for a worker on a new node",
        ),
        (
            [*BUSY, ("scaling.headroomGpus", 3)],
            "scaling.headroomGpus",
            "costs 3 GPUs around the clock",
        ),
        (
            [("scaling.headroomGpus", 0)],
            "scaling.headroomGpus",
            "each new worker waits for a node",
        ),
        # Threshold 1.5: 20 generations are 13.3 workers.
        (
            [("scaling.reserveGenerations", 20)],
            "scaling.reserveGenerations",
            "costs about 13 GPUs around the clock",
        ),
        (
            [("scaling.reserveGenerations", 1)],
            "scaling.reserveGenerations",
            "costs about 1 GPU around the clock",
        ),
        # Two workers have 4 free slots; 10 a minute bring 14 in 84 s, but there are no more than 9.
        (
            [
                ("scaling.reserveGenerations", 0),
                ("models", [{"traffic": {"peakGenerations": 9, "rampGenerationsPerMinute": 10}}]),
            ],
            "scaling.reserveGenerations",
            "the ramp outruns it: 5 generations wait for a worker on a spare GPU",
        ),
        (
            [("nodes.gpu.maxNodes", 8)],
            "nodes.gpu.maxNodes",
            "no GPU is left for an update's surge while all workers run",
        ),
        (
            [("nodes.gpu.maxNodes", 9), ("scaling.headroomGpus", 3)],
            "nodes.gpu.maxNodes",
            "all workers together leave 1 of the 3 GPUs to spare",
        ),
        (
            [*BUSY, ("api.maxReplicas", 10)],
            "api.maxReplicas",
            "90 streams a pod at the peak, 50 were counted on",  # 900 / 10
        ),
    ],
)
def test_what_a_value_costs_or_risks(
    tmp_path: Path, changes: Changes, name: str, risk: str
) -> None:
    assert derived(tmp_path, [*PLAIN, *changes])[name].risk == risk


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ([("scaling.generationsPerGpu", 4)], "scaling.generationsPerGpu"),
        ([("scaling.targetUtilization", 0.75)], "scaling.targetUtilization"),
        ([("scaling.marginSigmas", 1.0)], "scaling.marginSigmas"),
        ([("scaling.reserveGenerations", 3)], "scaling.reserveGenerations"),
        ([("scaling.headroomGpus", 1)], "scaling.headroomGpus"),
        ([("models", [{"minReplicas": 2}])], "models.0.minReplicas"),
        ([("models", [{"maxReplicas": 8}])], "models.0.maxReplicas"),
        ([("models", [{"maxConcurrentStreams": 2}])], "models.0.maxConcurrentStreams"),
        ([("models", [{"maxBatchSize": 2}])], "models.0.maxBatchSize"),
        ([("nodes.gpu.maxNodes", 9)], "nodes.gpu.maxNodes"),
        ([("nodes.gpu.overflow.maxNodes", 3)], "nodes.gpu.overflow.maxNodes"),
        ([("nodes.serving.maxNodes", 4)], "nodes.serving.maxNodes"),
        ([("api.minReplicas", 3)], "api.minReplicas"),
        ([("api.maxReplicas", 6)], "api.maxReplicas"),
    ],
)
def test_what_the_configuration_gives_is_pinned(
    tmp_path: Path, changes: Changes, name: str
) -> None:
    """Also where it is what would follow."""
    found = derived(tmp_path, changes)
    assert [one.name for one in found.values() if one.mark == "pinned"] == [name]


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_deployment_of_the_project_is_derived(path: Path) -> None:
    config = load_configuration(path)
    found = derive(config)
    assert found[0].name == "scaling.generationsPerGpu"
    has_api = any(one.name == "api.maxReplicas" for one in found)
    assert has_api is (config.topology == "distributed")
    assert all(one.reason for one in found)
    assert all(text.isprintable() for one in found for text in (one.name, one.reason, one.risk))


@pytest.mark.parametrize("pinned", ["", "\nscaling: {generationsPerGpu: 3}\n"])
def test_a_stand_in_has_nothing_to_measure(tmp_path: Path, pinned: str) -> None:
    path = tmp_path / "smoke.yaml"
    path.write_text((ROOT / "config" / "smoke.yaml").read_text() + pinned)
    found = derive(load_configuration(path))
    assert found[0].risk == "a stand-in serves tones: there is no GPU to measure"
    risks = {one.name: one.risk for one in found}
    assert risks["scaling.headroomGpus"] == "costs 1 node around the clock"


@pytest.mark.parametrize(
    ("changes", "name", "value", "reason"),
    [
        (
            BUSY,
            "models.0.minReplicas",
            10,
            "trough of 60 generations and 15.5 for chance, 8 a worker; 2 or more",
        ),
        (
            BUSY,
            "models.0.maxReplicas",
            42,
            "peak of 300 generations and 34.6 for chance, 8 a worker",
        ),
        # 31 nodes hold 30 workers and a surge.
        (
            [*BUSY, ("nodes.gpu.maxNodes", 31)],
            "models.0.maxReplicas",
            30,
            (
                "peak of 300 generations and 34.6 for chance needs 42; nodes.gpu.maxNodes (31) hold"
                " no more"
            ),
        ),
        (
            [*BUSY, ("nodes.gpu.maxNodes", 5)],
            "models.0.minReplicas",
            4,
            "trough of 60 generations and 15.5 for chance needs 10; no more than maxReplicas",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "maxReplicas": 6}])],
            "models.0.minReplicas",
            6,
            "trough of 60 generations and 15.5 for chance needs 10; no more than maxReplicas",
        ),
        (
            [*EIGHT, ("models", [{"traffic": TRAFFIC, "minReplicas": 60}])],
            "models.0.maxReplicas",
            60,
            "peak of 300 generations and 34.6 for chance needs 42; no fewer than minReplicas",
        ),
        (
            [*EIGHT, ("models", [{"traffic": {"peakGenerations": 1}}])],
            "models.0.maxReplicas",
            2,
            "peak of 1 generation and 2.0 for chance needs 1; no fewer than minReplicas",
        ),
        # 42 workers and 2 to spare are 44 GPUs, 8 to a node.
        (
            [
                ("nodes.gpu.instanceType", "p5.48xlarge"),
                EIGHT[1],
                ("models", [{"traffic": TRAFFIC}]),
            ],
            "nodes.gpu.maxNodes",
            6,
            (
                "42 workers at most and 2 spare, for headroom or an update's surge, 8 to a"
                " p5.48xlarge; the base of 2 at least"
            ),
        ),
    ],
)
def test_the_reason_is_that_of_the_value(
    tmp_path: Path, changes: Changes, name: str, value: int, reason: str
) -> None:
    """Also where it is not the traffic that decides."""
    found = derived(tmp_path, changes)[name]
    assert (found.value, found.mark, found.reason) == (value, "derived", reason)


def test_margins_are_part_of_the_reason(tmp_path: Path) -> None:
    """Two square roots of 60 are 15.5, of 300 34.6; a reserve comes on top."""
    found = derived(tmp_path, [*BUSY, ("scaling.reserveGenerations", 10)])
    assert found["models.0.minReplicas"].value == 11  # 85.5 / 8
    assert found["models.0.minReplicas"].reason == (
        "trough of 60 generations, 15.5 for chance and 10 in reserve, 8 a worker; 2 or more"
    )
    assert found["models.0.maxReplicas"].value == 44  # 344.6 / 8
    assert found["models.0.maxReplicas"].reason == (
        "peak of 300 generations, 34.6 for chance and 10 in reserve, 8 a worker"
    )


def test_the_reason_of_spare_gpus_says_how_long_they_last(tmp_path: Path) -> None:
    """30 s, and 0.3 or all of a cold start of 180 s."""
    found = derived(tmp_path, BUSY)
    assert found["scaling.reserveGenerations"].reason == (
        "for a ramp of 10 generations a minute, free for the 84 s until a worker on a spare GPU is"
        " ready"
    )
    assert found["scaling.headroomGpus"].reason == (
        "for a ramp of 10 generations a minute, there for the 210 s until a worker on a new node is"
        " ready"
    )


counts = st.integers(0, 2000)
traffics = st.builds(
    lambda a, b, ramp: {
        "peakGenerations": max(a, b, 1),
        "troughGenerations": min(a, b),
        "rampGenerationsPerMinute": ramp,
    },
    counts,
    counts,
    st.integers(0, 300),
)
pins = st.fixed_dictionaries(
    {},
    optional={
        "scaling.generationsPerGpu": st.integers(1, 64),
        "scaling.targetUtilization": st.floats(0.1, 1.0),
        "scaling.marginSigmas": st.floats(0, 6),
        "scaling.reserveGenerations": st.integers(0, 200),
        "scaling.headroomGpus": st.integers(0, 50),
        "scaling.coldStartSeconds": st.integers(15, 3600),
        "scaling.rollout": st.sampled_from(["surge", "replace"]),
        "nodes.gpu.maxNodes": st.integers(2, 500),
        "nodes.gpu.instanceType": st.sampled_from(["g6e.2xlarge", "g6e.12xlarge", "p5.48xlarge"]),
        "api.minReplicas": st.integers(2, 200),
        "api.maxReplicas": st.integers(2, 200),
        "topology": st.just("distributed"),
    },
)
bounds = st.fixed_dictionaries(
    {}, optional={"minReplicas": st.integers(2, 500), "maxReplicas": st.integers(2, 500)}
)


def holds_together(config: Configuration) -> None:
    workers = 0
    for model in config.models:
        low, high = config.min_replicas(model), config.max_replicas(model)
        assert 2 <= low <= high <= 500
        assert model.min_replicas in (None, low)
        assert model.max_replicas in (None, high)
        workers += high
    assert workers <= config.gpu_max_nodes * config.nodes.gpu.workers_per_node
    assert 0 <= config.headroom_gpus <= 50
    assert config.gpu_burst_nodes >= 0
    assert config.api_min_replicas <= config.api_max_replicas <= 200
    for one in derive(config):
        assert one.reason


def test_whatever_is_accepted_holds_together() -> None:
    accepted: list[Configuration] = []

    @settings(max_examples=200)
    @given(st.lists(st.tuples(traffics, bounds), min_size=1, max_size=3), pins)
    def check(models: list[tuple[dict[str, int], dict[str, int]]], pinned: dict[str, Any]) -> None:
        listed = [
            {"name": f"m{index}", "traffic": traffic, **given}
            for index, (traffic, given) in enumerate(models)
        ]
        try:
            config = Configuration.model_validate(with_values(("models", listed), *pinned.items()))
        except ValidationError:
            return  # Refused; what the lines say is tested in test_capacity_traffic.
        accepted.append(config)
        holds_together(config)

    check()
    # Examples that are all refused would prove little.
    assert len(accepted) > 20
    assert any(len(config.models) > 1 for config in accepted)
    assert any(config.nodes.gpu.max_nodes is None for config in accepted)
