"""`sonic-eks plan`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sonic_eks.plan import sections
from sonic_eks.plan.sections import Section, section
from tests.console import Run, console
from tests.synth import ROOT

CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
DEFAULT = ROOT / "config" / "default.yaml"
TITLES = ("Capacity for", "Carried at most", "EC2 quotas", "Cost in", "Weights", "Network")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return console(monkeypatch, capsys, "plan")


def refused(result: tuple[int, str, str], said: str) -> None:
    status, out, err = result
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert said in line


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_configuration_has_a_plan(run: Run, config: Path) -> None:
    status, out, err = run(config)
    assert (status, err) == (0, "")
    told = {title for title in TITLES if re.search(f"^{title}", out, re.MULTILINE)}
    missing = {"Weights"} if config.stem == "smoke" else set()
    assert told == set(TITLES) - missing
    assert "None" not in out
    assert "nan" not in out


def test_columns_stand_below_each_other_and_nothing_is_cut(run: Run) -> None:
    _, out, _ = run(DEFAULT)
    lines = out.splitlines()
    heading = next(line for line in lines if "USD/month trough" in line)
    at = heading.index("price")
    priced = [line for line in lines if re.search(r"  (\[\d\](, old)?|not priced)$", line)]
    assert len(priced) == 12
    assert {line[at - 1] for line in priced} == {" "}
    assert all(line[at] in "[n" for line in priced)
    ends = {line[: heading.index("USD/h trough") - 2].rstrip()[-1:] for line in priced}
    assert ends.isdisjoint({" "})
    assert not any(line != line.rstrip() for line in lines)


PAIR = {
    "type": "object",
    "required": ["troughPerHour", "peakPerHour"],
    "properties": {"troughPerHour": {"type": "number"}, "peakPerHour": {"type": "number"}},
}
SUM = {
    "type": "object",
    "required": ["troughPerHour", "peakPerHour", "troughPerMonth", "complete"],
    "properties": {
        "troughPerHour": {"type": ["number", "null"]},
        "peakPerHour": {"type": ["number", "null"]},
        "troughPerMonth": {"type": ["number", "null"]},
        "complete": {"type": "boolean"},
    },
}
# Typed by hand: what a program that reads a plan may rely on.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["deployment", "region", "dated", "sections", "figure", "problems"],
    "properties": {
        "deployment": {"type": "string"},
        "region": {"type": "string"},
        "dated": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
        "figure": {"type": ["string", "null"]},
        "problems": {"type": "array", "items": {"type": "string"}},
        "sections": {
            "type": "object",
            "required": ["capacity", "beyond", "quotas", "cost", "network"],
            "properties": {
                "capacity": {
                    "type": "object",
                    "required": ["slo", "gpu", "values"],
                    "properties": {
                        "values": {
                            "type": "array",
                            "minItems": 5,
                            "items": {
                                "type": "object",
                                "required": ["name", "value", "unit", "mark", "reason", "risk"],
                                "properties": {
                                    "value": {"type": ["number", "string"]},
                                    "mark": {
                                        "enum": [
                                            "measured",
                                            "assumed",
                                            "pinned",
                                            "derived",
                                            "default",
                                        ]
                                    },
                                },
                            },
                        },
                    },
                },
                "beyond": {
                    "type": "object",
                    "required": ["models"],
                    "properties": {
                        "models": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["model", "generations"],
                                "properties": {"generations": {"type": "integer", "minimum": 1}},
                            },
                        }
                    },
                },
                "quotas": {
                    "type": "object",
                    "required": ["quotas"],
                    "properties": {
                        "quotas": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["name", "code", "vcpus", "reason"],
                                "properties": {
                                    "code": {"type": "string", "pattern": "^L-[0-9A-F]{8}$"},
                                    "vcpus": {"type": "integer", "minimum": 1},
                                },
                            },
                        }
                    },
                },
                "cost": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [
                        "currency",
                        "region",
                        "hoursPerMonth",
                        "lines",
                        "gpuHoursPerMonth",
                        "gpu",
                        "rest",
                        "all",
                        "notPriced",
                    ],
                    "properties": {
                        "currency": {"const": "USD"},
                        "region": {"type": "string"},
                        "hoursPerMonth": {"const": 730},
                        "gpu": SUM,
                        "rest": SUM,
                        "all": SUM,
                        "notPriced": {"type": "array", "items": {"type": "string"}},
                        "gpuHoursPerMonth": {
                            "type": "object",
                            "required": ["trough", "peak"],
                        },
                        "lines": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["name", "trough", "peak", "usdPerHour", "price"],
                                "properties": {
                                    "usdPerHour": {"anyOf": [PAIR, {"type": "null"}]},
                                    "price": {
                                        "type": ["object", "null"],
                                        "required": ["usd", "per", "dated", "source", "old"],
                                        "properties": {"per": {"enum": ["hour", "GB-month"]}},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_json_is_what_a_program_may_rely_on(run: Run, config: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    status, out, err = run(config, "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    assert document["figure"] is None
    assert document["problems"] == []
    assert document["deployment"] == yaml.safe_load(config.read_text())["deployment"]["name"]


def test_quotas_of_the_default_by_hand(run: Run) -> None:
    """Nine GPU nodes of 8 vCPUs; the standard types are those of the capacity model's tests."""
    _, out, _ = run(DEFAULT, "--json")
    found = {quota["code"]: quota for quota in json.loads(out)["sections"]["quotas"]["quotas"]}
    assert found["L-DB2E81BA"]["vcpus"] == 72
    assert found["L-DB2E81BA"]["name"] == "Running On-Demand G and VT instances"


def test_what_is_carried_at_most(run: Run) -> None:
    """Eight workers with two each, six API pods with fifty."""
    _, out, _ = run(DEFAULT)
    assert re.search(r"^  sonic-3  16 generations +8 replicas with 2 each", out, re.MULTILINE)
    assert re.search(r"^  API +300 active streams", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "  not known: whether generations beyond maxReplicas wait or are refused"),
        ("queue", "wait in a queue"),
        ("refuse", "are refused at once"),
    ],
)
def test_what_the_image_does_with_more_is_said(
    run: Run, tmp_path: Path, given: str | None, said: str
) -> None:
    config = changed(tmp_path, scaling={"overCapacity": given} if given else {})
    _, out, _ = run(config)
    assert said in out.split("Carried at most")[1].split("\n\n")[0]
    _, out, _ = run(config, "--json")
    assert json.loads(out)["sections"]["beyond"]["overCapacity"] == given


def changed(folder: Path, **sections_: object) -> Path:
    document = yaml.safe_load(DEFAULT.read_text()) | sections_
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_what_becomes_of_more_depends_on_the_limit_that_workers_know(
    run: Run, tmp_path: Path
) -> None:
    _, out, _ = run(DEFAULT)
    assert "models.0.concurrencyEnv is unset" in out
    given = changed(tmp_path, models=[{"concurrencyEnv": "MAX_STREAMS", "maxConcurrentStreams": 5}])
    _, out, _ = run(given)
    assert "a worker takes 5 at once" in out
    assert "concurrencyEnv" not in out
    _, out, _ = run(ROOT / "config" / "standalone.yaml")
    assert "the load balancer knows no limit" in out
    _, out, _ = run(ROOT / "config" / "smoke.yaml")
    assert "verify-drain" not in out


def test_traffic_beyond_the_most_replicas_is_a_problem(run: Run, tmp_path: Path) -> None:
    """Eight workers of two carry 16 generations; 17 are stated."""
    model = {"maxReplicas": 8, "traffic": {"peakGenerations": 16}}
    assert run(changed(tmp_path, models=[model]))[0] == 0
    model["traffic"] = {"peakGenerations": 17}
    path = changed(tmp_path, models=[model])
    status, out, err = run(path)
    assert status == 1
    assert "Cost in" in out
    (line,) = err.splitlines()
    assert line.startswith("models.0.traffic: a peak of 17 generations, of which 16 are carried")
    assert "models.0.maxReplicas" in line
    status, out, _ = run(path, "--json")
    assert status == 1
    assert json.loads(out)["problems"] == [line]


def test_no_text_of_a_file_steers_the_terminal(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(
        "sheets:\n- region: us-east-1\n  dated: '2026-01-01'\n"
        '  source: "a\\e[31m\\nb"\n  instanceHour: {g6e.2xlarge: 1.0}\n'
    )
    _, out, _ = run(DEFAULT, "--prices", own)
    assert "\x1b" not in out
    assert r"a\x1b[31m\nb" in out


def test_own_prices_count(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(
        "sheets:\n- region: us-east-1\n  dated: '2026-01-01'\n  source: our agreement\n"
        "  instanceHour: {g6e.2xlarge: 1.0}\n  gbMonth: {lustre250: 0.21}\n"
    )
    _, out, _ = run(DEFAULT, "--prices", own, "--json")
    cost = json.loads(out)["sections"]["cost"]
    assert cost["notPriced"] == []
    lines = {line["figure"]: line for line in cost["lines"]}
    assert lines["g6e.2xlarge"]["usdPerHour"] == {"troughPerHour": 3.0, "peakPerHour": 9.0}
    assert lines["lustre250"]["price"]["source"] == "our agreement"
    assert lines["eksCluster"]["price"]["source"].startswith("cloudburn.io")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("sheets: [{region: us-east-1, source: x, hour: {eksCluster: 1.0}}]", "dated"),
        ("sheets: 5", "sheets: got 5; input should be a list"),
        ("sheets: []", "sheets: got a list of 0; allowed: at least 1 in it; see docs/capacity.md"),
        ("\x00", "prices.yaml"),
        ("not yaml: [", "prices.yaml"),
    ],
)
def test_bad_prices_are_one_line(run: Run, tmp_path: Path, content: str, said: str) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(content)
    refused(run(DEFAULT, "--prices", own), said)


def test_prices_and_configurations_that_are_not_there(run: Run, tmp_path: Path) -> None:
    refused(run(DEFAULT, "--prices", tmp_path / "none.yaml"), "cannot be read")
    refused(run(tmp_path / "none.yaml"), "cannot be read")


@pytest.mark.slow  # matplotlib
def test_out_writes_the_figure_and_names_it(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    status, told, err = run(DEFAULT, "--out", out)
    assert (status, err) == (0, "")
    assert told.endswith(f"Figure: {out / 'sonic-ttfb.png'}\n")
    assert [path.name for path in out.iterdir()] == ["sonic-ttfb.png"]
    assert (out / "sonic-ttfb.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    _, told, _ = run(DEFAULT, "--out", out, "--json")
    assert json.loads(told)["figure"] == str(out / "sonic-ttfb.png")


def test_without_a_measurement_no_figure_is_written(run: Run, tmp_path: Path) -> None:
    pinned = changed(tmp_path, scaling={"generationsPerGpu": 4})
    status, told, _ = run(pinned, "--out", tmp_path / "out")
    assert status == 0
    assert told.endswith("Figure: none, as no measurement can be drawn\n")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_out_that_cannot_be_written_is_refused_before_any_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> dict[str, Section]:
        raise AssertionError("worked before it looked")

    monkeypatch.setattr("sonic_eks.cli.plan.sections", never)
    file = tmp_path / "file"
    file.write_text("")
    refused(run(DEFAULT, "--out", file), f"--out {file}: ")
    refused(run(DEFAULT, "--out", file / "below"), f"--out {file / 'below'}: ")
    refused(run(DEFAULT, "--out", "x\0y"), "--out")
    (tmp_path / "sonic-ttfb.png").mkdir()
    refused(run(DEFAULT, "--out", tmp_path), "sonic-ttfb.png")
    if os.geteuid():
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        refused(run(DEFAULT, "--out", closed), f"--out {closed}")


def test_a_new_section_needs_no_more_than_to_register_itself(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(DEFAULT)  # what is there has registered itself by now
    monkeypatch.setattr(sections, "_BUILDERS", dict(sections._BUILDERS))
    section("last", place=999)(
        lambda context: Section(title="Last", rows=(("a", "b"),), data={"a": "b"})
    )
    section("silent", place=5)(lambda context: None)
    _, out, _ = run(DEFAULT)
    assert out.endswith("\nLast\n  a  b\n\n")
    _, out, _ = run(DEFAULT, "--json")
    found = json.loads(out)["sections"]
    assert list(found)[-1] == "last"
    assert "silent" not in found
    with pytest.raises(ValueError, match="two sections are named last"):
        section("last", place=1)(lambda context: None)


def test_the_readme_shows_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Then:
            return cls(2026, 11, 30, tzinfo=tz)

    monkeypatch.setattr("sonic_eks.cli.plan.datetime", Then)
    _, out, _ = run(DEFAULT)
    passage = (ROOT / "README.md").read_text().split("\n## Plan\n")[1].split("\n## ")[0]
    shown = [line for line in passage.split("```")[1].splitlines() if line not in ("", "...")]
    assert len(shown) > 10
    assert [line for line in shown if line not in out.splitlines()] == []


@pytest.mark.parametrize(
    ("scaling", "mark", "risk"),
    [
        # The vendor's H100 table: 55 ms at 2 and 115 at 4, 80 ms for the worker; 225 at 12.
        ({}, "measured", None),
        ({"generationsPerGpu": 2}, "pinned", None),
        ({"generationsPerGpu": 12}, "pinned", r"more than the 2 that keep 80 ms: p95 is 225 ms"),
        ({"generationsPerGpu": 1}, "pinned", r"costs 2\.0 times the GPUs"),
    ],
)
def test_a_pinned_value_says_what_it_costs_or_risks(
    run: Run, tmp_path: Path, scaling: dict[str, int], mark: str, risk: str | None
) -> None:
    nodes = {"gpu": {"instanceType": "p5.4xlarge"}}
    _, out, _ = run(changed(tmp_path, scaling=scaling, nodes=nodes))
    section = out.split("\n\n")[1]
    assert section.startswith("Capacity for 100 ms at p95 on H100\n")
    assert re.search(rf"^  scaling\.generationsPerGpu +\d+ +generations +{mark} ", section, re.M)
    said = re.findall(r"^  scaling\.generationsPerGpu: (.*)$", section, re.M)
    assert len(said) == (0 if risk is None else 1)
    assert risk is None or re.search(risk, said[0])
