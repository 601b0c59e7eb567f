"""Prices: the shipped list, own files, and what is no price."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.config.instances import instance_types
from sonic_eks.errors import BAD_INPUT, SonicEksError
from sonic_eks.plan.prices import Price, PriceList, Prices, read_prices, shipped_prices
from tests.synth import ROOT

TODAY = date(2026, 11, 30)

SHEET: dict[str, Any] = {
    "region": "eu-west-1",
    "dated": "2026-11-01",
    "source": "our agreement",
    "instanceHour": {"g6e.2xlarge": 2.0},
}


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "prices.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sheet(folder: Path, **changes: object) -> Path:
    """A file of one sheet with some of its values replaced; None takes one away."""
    values = {key: value for key, value in {**SHEET, **changes}.items() if value is not None}
    return written(folder, yaml.safe_dump({"sheets": [values]}))


# By hand, from zz_generated.pricing_aws.go of aws/karpenter-provider-aws, generated 2026-02-09.
@pytest.mark.parametrize(
    ("name", "usd"),
    [
        ("g5.xlarge", 1.006),
        ("g6.48xlarge", 13.3504),
        ("g6e.2xlarge", 2.24208),
        ("g7e.2xlarge", 3.36312),
        ("gr6.4xlarge", 1.5392),
        ("p4d.24xlarge", 21.957642),
        ("p5.48xlarge", 55.04),
        ("p6-b200.48xlarge", 113.9328),
        ("m7i.xlarge", 0.2016),
        ("m7i.large", 0.1008),
        ("c6a.large", 0.0765),
    ],
)
def test_shipped_instance_prices_are_those_of_their_source(name: str, usd: float) -> None:
    found = PriceList("us-east-1", shipped_prices()).find(name)
    assert found is not None
    assert (found.usd, found.dated) == (usd, date(2026, 2, 9))
    assert "karpenter-provider-aws" in found.source


@pytest.mark.parametrize(
    ("name", "usd", "dated"),
    [
        ("eksCluster", 0.10, date(2026, 3, 13)),
        ("natGateway", 0.045, date(2026, 2, 24)),
        ("publicIpv4", 0.005, date(2026, 2, 24)),
        ("networkLoadBalancer", 0.0225, date(2026, 5, 1)),
        ("interfaceEndpoint", 0.01, date(2026, 5, 1)),
        ("gp3", 0.08, date(2021, 2, 4)),
    ],
)
def test_other_shipped_prices(name: str, usd: float, dated: date) -> None:
    found = PriceList("us-east-1", shipped_prices()).find(name)
    assert found is not None
    assert (found.usd, found.dated) == (usd, dated)


def test_every_type_of_a_pool_is_priced_but_those_that_the_source_lacks() -> None:
    prices = PriceList("us-east-1", shipped_prices())
    pools = [kind for kind in instance_types().values() if kind.serves_sonic or kind.serves_cpu]
    assert {kind.name for kind in pools if prices.find(kind.name) is None} == {
        *(f"g7.{size}xlarge" for size in (2, 4, 8, 12, 24, 48)),
        "p5e.48xlarge",
        "p6-b300.48xlarge",
    }


def test_a_larger_type_of_a_family_is_never_cheaper() -> None:
    """A slipped line in the list would show here."""
    prices = PriceList("us-east-1", shipped_prices())
    by_family: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for kind in instance_types().values():
        found = prices.find(kind.name)
        if found is not None:
            by_family.setdefault((kind.family, kind.gpus), []).append((kind.vcpus, found.usd))
    assert len(by_family) > 15
    for family, sizes in by_family.items():
        assert [usd for _, usd in sorted(sizes)] == sorted(usd for _, usd in sizes), family


def test_prices_of_govcloud_are_of_one_region_and_old() -> None:
    """By hand, from zz_generated.pricing_aws_us_gov.go of the same project, 2025-01-20."""
    prices = PriceList("us-gov-west-1", shipped_prices())
    found = prices.find("g6.xlarge")
    assert found is not None
    assert (found.usd, found.dated) == (1.0144, date(2025, 1, 20))
    assert found.is_old(date(2026, 11, 30))
    assert prices.find("m7i.xlarge") == Price(0.2541, found.region, found.dated, found.source)
    assert prices.find("p5.48xlarge") is None  # it has become cheaper since
    assert PriceList("us-gov-east-1", shipped_prices()).find("m7i.xlarge") is None


def test_no_price_of_one_region_is_used_in_another() -> None:
    assert PriceList("eu-west-1", shipped_prices()).find("g6e.2xlarge") is None


def test_own_prices_come_first_and_the_shipped_ones_fill_up(tmp_path: Path) -> None:
    own = read_prices(sheet(tmp_path, region="us-east-1"), TODAY)
    prices = PriceList("us-east-1", shipped_prices(), own)
    assert prices.find("g6e.2xlarge") == Price(2.0, "us-east-1", date(2026, 11, 1), "our agreement")
    filled = prices.find("m7i.xlarge")
    assert filled is not None
    assert filled.usd == 0.2016


@pytest.mark.parametrize(
    ("today", "old"),
    [
        (date(2026, 2, 9), False),
        (date(2027, 2, 9), False),  # a year to the day
        (date(2027, 2, 10), True),
        (date(2025, 1, 1), False),  # a clock that is wrong
    ],
)
def test_a_figure_is_old_after_a_year(today: date, old: bool) -> None:
    assert Price(1.0, "us-east-1", date(2026, 2, 9), "x").is_old(today) is old


def test_the_day_begins_earlier_in_the_east(tmp_path: Path) -> None:
    assert read_prices(sheet(tmp_path, dated="2026-12-01"), TODAY).sheets[0].dated == "2026-12-01"


def refusal(path: Path) -> str:
    with pytest.raises(SonicEksError) as caught:
        read_prices(path, TODAY)
    assert caught.value.exit_status == BAD_INPUT
    (line,) = caught.value.lines
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    "value",
    [-1, 0, float("nan"), float("inf"), float("-inf"), "2.24", True, None, 10_001, 10**30, [], {}],
)
def test_what_is_no_price(tmp_path: Path, value: object) -> None:
    line = refusal(sheet(tmp_path, instanceHour={"g6e.2xlarge": value}))
    assert line.startswith("sheets.0.instanceHour.g6e.2xlarge: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dated": None}, "sheets.0.dated: missing"),
        ({"source": None}, "sheets.0.source: missing"),
        ({"region": None}, "sheets.0.region: missing"),
        ({"dated": "yesterday"}, "sheets.0.dated: "),
        ({"dated": "2026-02-30"}, "sheets.0.dated: got '2026-02-30'; allowed: a day"),
        ({"dated": "2026-12-02"}, "got '2026-12-02'; allowed: a day up to today, 2026-11-30"),
        ({"dated": "9999-12-31"}, "sheets.0.dated: got '9999-12-31'; allowed: a day up to"),
        ({"region": "us-east-1a"}, "sheets.0.region: got 'us-east-1a'; allowed: a region"),
        ({"source": ""}, "sheets.0.source: "),
        ({"source": "x" * 401}, "sheets.0.source: "),
        ({"instanceHour": {"g6e.3xlarge": 1.0}}, "got 'g6e.3xlarge'; allowed: instance types"),
        ({"instanceHour": {"x\x1b[31m": 1.0}}, "allowed: instance types"),
        (
            {"instanceHour": [1.0]},
            "sheets.0.instanceHour: got a list of 1; input should be a mapping",
        ),
        ({"hour": {"nat": 0.1}}, "sheets.0.hour.nat: "),
        ({"gbMonth": {"gp2": 0.1}}, "sheets.0.gbMonth.gp2: "),
        ({"instance_hour": {"g6e.2xlarge": 1.0}}, "sheets.0.instance_hour: "),
        ({"euro": True}, "sheets.0.euro: unknown key"),
    ],
)
def test_what_is_no_sheet(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    assert said in refusal(sheet(tmp_path, **changes))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", 'empty; see docs/capacity.md, "The plan"'),
        ("sheets: []\n", "sheets: "),
        ("sheets: 5\n", "sheets: got 5; input should be a list"),
        ("sheets: [5]\n", "sheets.0: got 5; input should be a mapping"),
        ("- 1\n", "a mapping"),
        ("sheets: [\n", "YAML"),
        ("g6e.2xlarge: 2.24\n", "sheets: missing"),
        (b"\xff\xfe", "not UTF-8"),
        ("sheets: &a [*a]\n", "aliases"),
        ("{" * 5000, "nested too deeply"),
        ("x: " + "9" * 5000, "a number of 5000 characters"),
        ("#" * 1_100_000, "larger than"),
    ],
)
def test_what_is_no_file_of_prices(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refusal(written(tmp_path, content))


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    passage = (ROOT / "docs" / "capacity.md").read_text().split("\n### Prices\n")[1]
    prices = read_prices(written(tmp_path, passage.split("```yaml\n")[1].split("```")[0]), TODAY)
    assert [dict(sheet.figures()) for sheet in prices.sheets] == [
        {"g6e.2xlarge": 1.79, "eksCluster": 0.10, "lustre250": 0.21}
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "none.yaml")
    assert "cannot be read" in refusal(tmp_path)


def test_a_region_has_a_figure_once(tmp_path: Path) -> None:
    twice = written(tmp_path, yaml.safe_dump({"sheets": [SHEET, copy.deepcopy(SHEET)]}))
    assert refusal(twice).startswith(
        "sheets.1: got 'g6e.2xlarge'; allowed: each figure of eu-west-1"
    )
    other = {**SHEET, "region": "eu-west-2"}
    Prices.model_validate({"sheets": [SHEET, other]})
