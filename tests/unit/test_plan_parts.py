"""The plan's sections on weights and network, by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.plan.prices import PriceList
from sonic_eks.plan.sections import Context, Section, sections
from tests.configuration import load, with_values
from tests.synth import ROOT


def sections_of(config: Configuration) -> dict[str, Section]:
    return sections(Context(config, PriceList("us-east-1"), date(2026, 11, 30)))


# Amazon FSx API reference, PerUnitStorageThroughput: "2.4 TiB" at 50 MB/s each are 120 MB/s.
@pytest.mark.parametrize(
    ("changes", "mb_per_second", "one_gb", "loadable"),
    [
        # 1.2 * 250; 4 workers have 600 s: 300 * 600 / 4 = 45,000 MB each.
        ([], 300, 3.33, 45.0),
        ([("weights.capacityGib", 2400), ("weights.throughputMbPerSPerTib", 125)], 300, 3.33, 45.0),
        ([("weights.throughputMbPerSPerTib", 1000)], 1200, 0.83, 180.0),
        ([("scaling.scaleUpPodsPerPeriod", 1)], 300, 3.33, 180.0),
        ([("models", [{"loadSeconds": 60}])], 300, 3.33, 4.5),
    ],
)
def test_what_workers_can_load_together(
    tmp_path: Path,
    changes: list[tuple[str, Any]],
    mb_per_second: float,
    one_gb: float,
    loadable: float,
) -> None:
    data = sections_of(load(with_values(*changes), tmp_path))["weights"].data
    assert data["mbPerSecond"] == mb_per_second
    assert data["secondsForOneGb"] == one_gb
    assert [one["gb"] for one in data["loadableTogether"]] == [loadable]


def test_each_model_has_its_own_time_to_load(tmp_path: Path) -> None:
    models = [{"name": "a"}, {"name": "b", "loadSeconds": 300}]
    config = load(with_values(("models", models), ("nodes.gpu.maxNodes", 20)), tmp_path)
    section = sections_of(config)["weights"]
    assert section.data["loadableTogether"] == [
        {"model": "a", "gb": 45.0},
        {"model": "b", "gb": 22.5},
    ]
    assert "models.1.loadSeconds (300)" in section.rows[-1][-1]


def test_a_stand_in_loads_nothing() -> None:
    assert "weights" not in sections_of(load_configuration(ROOT / "config" / "smoke.yaml"))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("default", ("1, internal", "22", "1", "1 NAT gateway")),
        ("isolated", ("1, internal", "22", "1", "none")),
        ("existing-vpc", ("1, internal", "14", "0", "the owner's")),
        ("production", ("1, internal", "33", "1", "1 NAT gateway")),
    ],
)
def test_what_the_network_has(name: str, rows: tuple[str, ...]) -> None:
    section = sections_of(load_configuration(ROOT / "config" / f"{name}.yaml"))["network"]
    assert tuple(row[1] for row in section.rows) == rows
    port = 443 if name == "production" else 80
    assert section.rows[0][2].startswith(f"port {port} in ")
