"""`sonic-eks simulate`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.simulation.deployment import world_of
from sonic_eks.simulation.nodes import ColdStart
from tests.configuration import load, with_values
from tests.console import Run, console

# The H100's table: 8 generations keep 165 ms.
EIGHT: list[tuple[str, Any]] = [
    ("nodes.gpu.instanceType", "p5.4xlarge"),
    ("slo.ttfbMs", 185),
    ("slo.pathBudgetMs", 20),
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return console(monkeypatch, capsys, "simulate")


def flat(folder: Path, generations: float, seconds: int = 3600) -> Path:
    path = folder / "trace.csv"
    rows = [f"{at},{generations}" for at in range(0, seconds + 1, 60)]
    path.write_text("\n".join(["seconds,generations", *rows, ""]))
    return path


def written(folder: Path, *changes: tuple[str, Any]) -> Path:
    path = folder / "deployment.yaml"
    path.write_text(yaml.safe_dump(with_values(*EIGHT, *changes)))
    return path


def test_a_demand_that_is_met(run: Run, tmp_path: Path) -> None:
    arguments = (written(tmp_path), "--trace", flat(tmp_path, 20), "--draws", 2)
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    # 20 at once, 4.53 s each, for an hour: 15 900 come.
    assert found["generations"] == pytest.approx(15_900, rel=0.03)
    assert found["lateShare"] < 0.01
    assert found["allowedShare"] == pytest.approx(0.05)
    # (20 + 2 sqrt(20)) / 8 is 3.6, at a peak of chance 5 or 6; one GPU is held free.
    assert 4 <= found["mostWorkers"] <= 8
    assert 4 < found["gpuHours"] < 9
    status, out, err = run(*arguments)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "sonic-3 on trace.csv: 1 h, mean of 2 draws"
    assert [line.split()[0] for line in lines[1:]] == [
        *("generations", "late", "refused", "GPU-hours", "cost", "workers", "removed")
    ]


def test_a_demand_beyond_the_bounds_is_a_problem(run: Run, tmp_path: Path) -> None:
    config = written(tmp_path, ("models", [{"maxReplicas": 2}]))
    status, out, err = run(config, "--trace", flat(tmp_path, 40), "--draws", 1)
    assert (status, err) == (1, "")
    assert "workers      2 at most: all that maxReplicas allows" in out
    late = next(line for line in out.splitlines() if line.startswith("  late"))
    assert late.endswith("(the objective leaves 5%)")


def test_cost_is_a_price_times_the_nodes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = tmp_path / "prices.yaml"
    sheet = {
        "region": "us-east-1",
        "dated": "2026-01-01",
        "source": "a test",
        "instanceHour": {"g6e.12xlarge": 10.0},
    }
    prices.write_text(yaml.safe_dump({"sheets": [sheet]}))
    # Four workers share a node's price.
    config = written(
        tmp_path, ("nodes.gpu.instanceType", "g6e.12xlarge"), ("scaling.generationsPerGpu", 8)
    )
    trace = flat(tmp_path, 5)
    arguments = (config, "--trace", trace, "--draws", 1, "--prices", prices, "--json")
    status, out, _ = run(*arguments)
    found = json.loads(out)
    assert status == 0
    assert found["usd"] == pytest.approx(found["gpuHours"] * 10 / 4, abs=0.01)


def test_a_region_without_prices_is_not_priced(run: Run, tmp_path: Path) -> None:
    config = written(
        tmp_path,
        ("deployment.region", "ap-northeast-3"),
        ("network.zones", ["ap-northeast-3a", "ap-northeast-3b"]),
    )
    status, out, _ = run(config, "--trace", flat(tmp_path, 5), "--draws", 1)
    assert status == 0
    assert "  cost         not priced\n" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--model", "other"), "--model: got 'other'; allowed: sonic-3"),
        (("--draws", 0), "Invalid value for '--draws'"),
        (("--median-seconds", 0), "Invalid value for '--median-seconds'"),
        (("--sigma", -1), "Invalid value for '--sigma'"),
        (("--median-seconds", "nan"), "Invalid value for '--median-seconds'"),
        (("--patience-seconds", "nan"), "Invalid value for '--patience-seconds'"),
        (("--sigma", "nan"), "Invalid value for '--sigma'"),
        (("--trace", "/nothing.csv"), "--trace /nothing.csv: cannot be read: No such file"),
    ],
)
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, more: tuple[object, ...], said: str
) -> None:
    status, out, err = run(written(tmp_path), "--trace", flat(tmp_path, 5), *more)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert said in line


def test_the_model_must_be_named_where_there_are_two(run: Run, tmp_path: Path) -> None:
    models = ("models", [{"name": "a"}, {"name": "b"}])
    config = written(tmp_path, models, ("nodes.gpu.maxNodes", 18))
    status, _, err = run(config, "--trace", flat(tmp_path, 5))
    assert (status, err) == (2, "--model: got nothing; allowed: one of a, b\n")
    assert run(config, "--trace", flat(tmp_path, 5), "--draws", 1, "--model", "b")[0] == 0


def test_a_model_that_may_have_no_worker_has_one_here(run: Run, tmp_path: Path) -> None:
    rare = {"name": "rare", "minReplicas": 0}
    config = written(
        tmp_path, ("models", [rare]), ("nodes.gpu.maxNodes", 18), ("scaling.headroomGpus", 0)
    )
    status, out, _ = run(config, "--trace", flat(tmp_path, 1), "--draws", 1, "--json")
    assert status == 0
    assert json.loads(out)["mostWorkers"] >= 1


CROWD: list[tuple[str, Any]] = [
    ("models", [{"maxReplicas": 20}]),
    ("nodes.gpu.maxNodes", 21),
    ("scaling.lookAheadSeconds", 0),
    ("scaling.marginSigmas", 0),
    ("scaling.headroomGpus", 0),
]


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ([], True),
        ([("scaling.queue.counted", False)], False),
        (
            [
                ("topology", "standalone"),
                ("models", [{"name": "a", "maxReplicas": 20, "image": "a-server"}]),
            ],
            False,
        ),
        # Two models, and nothing says whom a caller waits for; or a label does.
        ([("models", [{"name": "a", "maxReplicas": 20}, {"name": "b"}])], False),
        (
            [
                ("models", [{"name": "a", "maxReplicas": 20}, {"name": "b"}]),
                ("scaling.queue.modelLabel", "offering"),
            ],
            True,
        ),
    ],
)
def test_the_queue_counts_where_the_deployments_scaler_reads_it(
    run: Run, tmp_path: Path, changes: list[tuple[str, Any]], seen: bool
) -> None:
    # 16 slots, and from one minute to the next 60 callers: full workers alone ask for no others,
    # with a target of all that they can have.
    path = tmp_path / "trace.csv"
    rows = [f"{at},{10 if at < 600 else 60}" for at in range(0, 2401, 60)]
    path.write_text("\n".join(["seconds,generations", *rows, ""]))
    values = dict([*CROWD, ("nodes.gpu.maxNodes", 60), *changes])
    config = written(tmp_path, *values.items())
    named = ("--model", "a") if len(values["models"]) > 1 else ()
    _, out, _ = run(config, "--trace", path, "--draws", 1, "--json", *named)
    assert (json.loads(out)["mostWorkers"] > 2) is seen


def test_who_is_refused_at_once_does_not_wait(run: Run, tmp_path: Path) -> None:
    two = [("models", [{"maxReplicas": 2}]), ("scaling.headroomGpus", 0)]
    trace = flat(tmp_path, 14)
    found = {}
    for answer in ("queue", "refuse"):
        config = written(tmp_path, *two, ("scaling.overCapacity", answer))
        out = run(config, "--trace", trace, "--draws", 1, "--json")[1]
        found[answer] = json.loads(out)
    # Offered 14 on 16 slots: Erlang's loss formula has 11.45 % blocked.
    generations = found["refuse"]["generations"]
    assert found["refuse"]["refused"] / generations == pytest.approx(0.1145, abs=0.01)
    assert found["refuse"]["late"] == found["refuse"]["refused"]
    assert found["queue"]["refused"] < found["refuse"]["refused"] / 20


def test_what_is_not_played_is_said(run: Run, tmp_path: Path) -> None:
    morning = {
        "name": "morning",
        "timezone": "UTC",
        "start": "0 8 * * *",
        "end": "0 9 * * *",
        "replicas": 3,
    }
    rare = ("models", [{"name": "rare", "minReplicas": 0}])
    config = written(
        tmp_path, rare, ("scaling.schedules", [morning]), ("drain.worker", "wait-idle")
    )
    _, out, _ = run(config, "--trace", flat(tmp_path, 1), "--draws", 1)
    assert [line.strip() for line in out.splitlines() if "left out" in line] == [
        "left out     schedules: a trace has no time of day",
        "left out     times without a worker: there is one at least",
        "left out     work that a worker takes while it drains",
    ]
    _, out, _ = run(written(tmp_path), "--trace", flat(tmp_path, 1), "--draws", 1, "--json")
    assert json.loads(out)["leftOut"] == []


def test_the_base_costs_whatever_is_asked_of_it(run: Run, tmp_path: Path) -> None:
    # 1 generation on average is a worker of 8 or two; the base's four GPUs are there all the same.
    config = written(tmp_path, ("nodes.gpu.baseSize", 4), ("scaling.headroomGpus", 0))
    _, out, _ = run(config, "--trace", flat(tmp_path, 1), "--draws", 1, "--json")
    assert json.loads(out)["gpuHours"] == pytest.approx(4)


def test_a_trace_is_needed(run: Run, tmp_path: Path) -> None:
    status, _, err = run(written(tmp_path))
    assert status == 2
    assert "Missing option '--trace'" in err


def test_the_world_of_a_measured_gpu_is_its_table(tmp_path: Path) -> None:
    config = load(with_values(*EIGHT, ("scaling.coldStartSeconds", 100)), tmp_path)
    world = world_of(config, patience_seconds=10, end_seconds=3600)
    # The vendor's H100: 55 ms at 1 and 2, 115 at 4, 165 at 8; the budget is 185 - 20.
    assert list(world.first_audio_ms) == [55, 55, 85, 115, 127.5, 140, 152.5, 165]
    assert (world.slots, world.objective_ms) == (8, 165)
    assert world.cold_start == ColdStart(node=40, image=30, weights=30)
    assert world.base_gpus == 2


def test_where_nobody_measured_a_full_worker_is_taken_to_keep_the_objective(
    tmp_path: Path,
) -> None:
    assumed = world_of(load(with_values(), tmp_path), patience_seconds=10, end_seconds=3600)
    assert assumed.first_audio_ms == (assumed.objective_ms,) * 2
    pinned = load(with_values(*EIGHT, ("scaling.generationsPerGpu", 20)), tmp_path)
    world = world_of(pinned, patience_seconds=10, end_seconds=3600)
    assert world.first_audio_ms == (165,) * 20
