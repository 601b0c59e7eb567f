"""Scaling: the queue, schedules, tolerances and what happens beyond the largest number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonic_eks.capacity.over_capacity import over_capacity_text
from sonic_eks.capacity.policy import worker_policy
from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration, schedules
from sonic_eks.deployment import Deployment
from sonic_eks.notices import unset_vendor_names, warnings
from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]

TWO = ("models", [{"name": "a"}, {"name": "b"}])
BOTH: Changes = [TWO, ("nodes.gpu.maxNodes", 17)]
MORNING = {
    "name": "morning",
    "timezone": "Europe/Berlin",
    "start": "30 7 * * 1-5",
    "end": "0 10 * * 1-5",
    "replicas": 5,
}


def schedule(**changes: Any) -> Changes:
    return [("scaling.schedules", [MORNING | changes])]


def config_of(*changes: tuple[str, Any]) -> Configuration:
    return Configuration.model_validate(with_values(*changes))


@pytest.mark.parametrize(
    "times",
    [
        "0 0 * * *",
        "*/15 * * * *",
        "0,30 8-18/2 * * mon-fri",
        "59 23 31 12 6",
        "0 0 ? jan,JUL sun",
        "5/10 * * * *",
        "0 8 29 2 *",
        "0 8 31 2,4,5 *",
        # A Monday, whatever the date.
        "0 8 31 2 mon",
    ],
)
def test_times_that_keda_can_read(tmp_path: Path, times: str) -> None:
    found = load(with_values(*schedule(start=times)), tmp_path)
    assert found.scaling.schedules[0].start == times


@pytest.mark.parametrize(
    ("times", "allowed"),
    [
        ("0 8 * *", "five fields"),
        ("0 0 8 * * *", "five fields"),
        ("0  8 * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 8 * * *", "minute: 0 to 59"),
        ("-1 8 * * *", "minute: 0 to 59"),
        ("0 24 * * *", "hour: 0 to 23"),
        ("0 18-8 * * *", "hour: 0 to 23"),
        ("0 8 0 * *", "day of the month: 1 to 31"),
        ("0 8 * 13 *", "month: 1 to 12"),
        ("0 8 * mai *", "month: 1 to 12"),
        # Sunday is 0 to the library that KEDA uses.
        ("0 8 * * 7", "day of the week: 0 to 6"),
        ("0 8 * * mon-", "day of the week: 0 to 6"),
        ("*/0 8 * * *", "minute: 0 to 59"),
        ("*/99 8 * * *", "minute: 0 to 59"),
        ("0 8,, * * *", "hour: 0 to 23"),
        ("0 8 * * L", "day of the week: 0 to 6"),
        # KEDA would take a start that never comes for one that has come.
        ("0 8 31 2 *", "a day that its months have"),
        ("0 8 30 feb ?", "a day that its months have"),
        ("0 8 31 apr,6,9-11/2 *", "a day that its months have"),
    ],
)
@pytest.mark.parametrize("field", ["start", "end"])
def test_times_that_it_cannot(tmp_path: Path, field: str, times: str, allowed: str) -> None:
    fault = fault_of(with_values(*schedule(**{field: times})), tmp_path)
    assert fault.startswith(f"scaling.schedules.0.{field}: got '{times}'; allowed: {allowed}")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            schedule(timezone="europe/berlin"),
            "scaling.schedules.0.timezone: got 'europe/berlin'; allowed: the IANA name of a tim",
        ),
        (schedule(timezone="Mars/Olympus"), "scaling.schedules.0.timezone: got 'Mars/Olympus'; al"),
        (schedule(end="30 7 * * 1-5"), "scaling.schedules.0.end: got '30 7 * * 1-5'; allowed: ano"),
        # The same times in other words: KEDA finds the end no later than the start, always.
        *(
            (schedule(start=start, end=end), f"scaling.schedules.0.end: got '{end}'; allowed: ano")
            for start, end in (
                ("30 7 * * 1-5", "30 07 ? * mon-fri"),
                ("0,30 8 * * *", "*/30 8-8 1-31 jan-dec 0-6"),
                ("5/20 * * * *", "45,25,5 0-23 * * *"),
            )
        ),
        (schedule(timezone="localtime"), "scaling.schedules.0.timezone: got 'localtime'; allowed:"),
        (schedule(replicas=0), "scaling.schedules.0.replicas: got 0; allowed: a whole number, 1"),
        (
            schedule(replicas=9),
            "scaling.schedules.0.replicas: got 9; allowed: at most 8, the maxReplicas of sonic-3",
        ),
        (
            schedule(models=["sonic-4"]),
            "scaling.schedules.0.models.0: got 'sonic-4'; allowed: names of models: sonic-3; near",
        ),
        (
            [("scaling.schedules", [MORNING, MORNING | {"start": "0 7 * * *"}])],
            "scaling.schedules.1.name: got 'morning'; allowed: each name once",
        ),
        (
            [("models", [{"queueLabelValue": "x"}])],
            "models.0.queueLabelValue: got 'x'; allowed: none while scaling.queue.modelLabel is u",
        ),
        (
            [
                ("models", [{"name": "a", "queueLabelValue": "x"}, {"name": "x"}]),
                ("nodes.gpu.maxNodes", 17),
                ("scaling.queue.modelLabel", "offering"),
            ],
            "models.1.queueLabelValue: got 'x'; allowed: a value that no other model has",
        ),
        (
            [("scaling.queue.modelLabel", "pod")],
            "scaling.queue.modelLabel: got 'pod'; allowed: a label that no target has; Prometheu",
        ),
        ([("scaling.queue.modelLabel", "__name__")], "scaling.queue.modelLabel: got '__name__'"),
        ([("scaling.queue.metric", "a-b")], "scaling.queue.metric: got 'a-b'; allowed: text that"),
        ([("scaling.queue.aggregate", "avg")], "scaling.queue.aggregate: got 'avg'; allowed: \"su"),
        (
            [
                ("topology", "standalone"),
                ("models", [{"image": "server"}]),
                ("scaling.queue.counted", False),
            ],
            "scaling.queue: got 'settings'; allowed: none: with topology standalone no API has a q",
        ),
        # A quarter of coldStartSeconds (180) and 30, or of what is pinned.
        (
            [("scaling.lookAheadWindowSeconds", 60), ("scaling.lookAheadSeconds", 241)],
            "scaling.lookAheadWindowSeconds: got 60; allowed: 61 or more, a quarter of the 241 s",
        ),
        (
            [("scaling.lookAheadWindowSeconds", 60), ("scaling.coldStartSeconds", 600)],
            "scaling.lookAheadWindowSeconds: got 60; allowed: 158 or more, a quarter of the 630 s",
        ),
        ([("scaling.overCapacity", "drop")], "scaling.overCapacity: got 'drop'; allowed: \"queue"),
        ([("scaling.scaleUpTolerance", 0.6)], "scaling.scaleUpTolerance: got 0.6; allowed: a num"),
        ([("scaling.scaleDownTolerance", -0.1)], "scaling.scaleDownTolerance: got -0.1; allowed"),
    ],
)
def test_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("changes", "nearest"),
    [
        (schedule(timezone="europe/berlin"), "Europe/Berlin"),
        (schedule(replicas=9), "8"),
        (schedule(models=["sonic-4"]), "sonic-3"),
        ([("scaling.queue.modelLabel", "pod")], "exported_pod"),
        (
            [("scaling.lookAheadWindowSeconds", 60), ("scaling.lookAheadSeconds", 3600)],
            "900",
        ),
    ],
)
def test_what_was_meant(tmp_path: Path, changes: Changes, nearest: str) -> None:
    assert fault_of(with_values(*changes), tmp_path).endswith(f"; nearest: {nearest}")


NONE_OF_TWO = [{"name": "a"}, {"name": "b", "minReplicas": 0}]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([("models", [{"minReplicas": 1}])], "models.0.minReplicas: got 1; allowed: a whole numb"),
        (
            [("models", [{"minReplicas": 0}]), ("scaling.queue.counted", False)],
            "models.0.minReplicas: got 0; allowed: 2 or more: scaling.queue.counted is false, and",
        ),
        (
            [("models", NONE_OF_TWO), ("nodes.gpu.maxNodes", 17)],
            "models.1.minReplicas: got 0; allowed: 2 or more: scaling.queue.modelLabel is unset, a",
        ),
        (
            [("models", [{"minReplicas": 0}]), ("scaling.overCapacity", "refuse")],
            "models.0.minReplicas: got 0; allowed: 2 or more: what scaling.overCapacity refuses do",
        ),
        (
            [("topology", "standalone"), ("models", [{"image": "server", "minReplicas": 0}])],
            "models.0.minReplicas: got 0; allowed: 2 or more: a server that stands alone is what w",
        ),
    ],
)
def test_none_at_all_where_nobody_would_notice_a_caller(
    tmp_path: Path, changes: Changes, fault: str
) -> None:
    said = fault_of(with_values(*changes), tmp_path)
    assert said.startswith(fault)
    assert said.endswith("; nearest: 2")


@pytest.mark.parametrize(
    "changes",
    [
        [("models", [{"minReplicas": 0}])],
        [("models", [{"minReplicas": 0}]), ("scaling.overCapacity", "queue")],
        [
            ("models", NONE_OF_TWO),
            ("nodes.gpu.maxNodes", 17),
            ("scaling.queue.modelLabel", "offering"),
        ],
    ],
)
def test_none_at_all(changes: Changes) -> None:
    config = config_of(*changes)
    model = config.models[-1]
    assert worker_policy(config, model).min_replicas == 0
    told = {n.field: n.text for n in warnings(Deployment(config, Catalogue(config)))}
    # Who calls first waits for a worker's start: 180 seconds by default.
    notice = told[f"models.{len(config.models) - 1}.minReplicas"]
    assert "180 s" in notice
    # Where it refuses them nobody would ever start one.
    assert ("overCapacity is not set" in notice) == (config.scaling.over_capacity is None)


def test_a_schedule_is_checked_against_the_models_that_it_is_for() -> None:
    models = [{"name": "a", "maxReplicas": 4}, {"name": "b", "maxReplicas": 8}]
    named = [MORNING | {"models": ["b"]}]
    config_of(("models", models), ("nodes.gpu.maxNodes", 17), ("scaling.schedules", named))


def test_a_machine_without_a_list_of_time_zones_takes_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedules, "available_timezones", set)
    assert config_of(*schedule(timezone="Mars/Olympus")).scaling.schedules


def test_tolerances_are_those_of_the_policy() -> None:
    config = config_of(("scaling.scaleUpTolerance", 0), ("scaling.scaleDownTolerance", 0.2))
    policy = worker_policy(config, config.models[0])
    assert (policy.up.tolerance, policy.down.tolerance) == (0, 0.2)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([], False),
        (BOTH, True),
        ([*BOTH, ("scaling.queue.modelLabel", "offering")], False),
        ([*BOTH, ("scaling.queue.counted", False)], False),
    ],
)
def test_a_queue_of_no_model_is_told(changes: Changes, told: bool) -> None:
    config = config_of(*changes)
    found = {notice.field for notice in warnings(Deployment(config, Catalogue(config)))}
    assert ("scaling.queue.modelLabel" in found) is told


@pytest.mark.parametrize(
    ("given", "words"),
    [("queue", "wait in a queue"), ("refuse", "are refused"), (None, "sonic-eks verify-drain")],
)
def test_what_happens_beyond_the_largest_number(given: str | None, words: str) -> None:
    config = config_of(("scaling.overCapacity", given))
    assert words in over_capacity_text(config)
    told = [n for n in unset_vendor_names(config) if n.field == "scaling.overCapacity"]
    assert [notice.text for notice in told] == ([over_capacity_text(config)] if not given else [])


def test_a_line_of_a_quarter_is_long_enough() -> None:
    for ahead in (0, 240):
        config_of(("scaling.lookAheadWindowSeconds", 60), ("scaling.lookAheadSeconds", ahead))
