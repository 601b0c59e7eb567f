"""Capacity profiles: the shipped ones say what the vendor published, and wrong ones are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from pydantic.alias_generators import to_camel

from sonic_eks.bench.profile import to_yaml
from sonic_eks.config.profile import Profile, load_profile
from sonic_eks.errors import SonicEksError
from tests.expected.vendor_capacity import RECOMMENDED, TABLES
from tests.synth import ROOT

SHIPPED = sorted((ROOT / "profiles").glob("*.yaml"))

GOOD = """\
gpu: L4
model: sonic-3
side: client
source: a test
dated: "2026-11-30"
points:
- {concurrency: 1, firstAudioMs: {p50: 90.0, p95: 99.5}}
- {concurrency: 2, firstAudioMs: {p95: 120.0}}
"""


def test_every_gpu_of_the_vendor_has_a_profile() -> None:
    profiles = [load_profile(path) for path in SHIPPED]
    assert {p.gpu: p.recommended_concurrency for p in profiles} == RECOMMENDED
    for profile in profiles:
        assert profile.source.startswith("docs.cartesia.ai")
        assert profile.side == "worker"
        rows = [
            (
                point.concurrency,
                point.first_audio_ms.p50,
                point.first_audio_ms.p95,
                point.rtf.p50 if point.rtf else None,
                point.rtf.p95 if point.rtf else None,
                point.characters_per_second,
            )
            for point in profile.points
        ]
        assert rows == TABLES.get(profile.gpu, [])
        assert bool(rows) == (profile.release == "sonic-20260503")


def test_the_documentation_names_every_key() -> None:
    """docs/benchmarking.md, "Profiles": each key of a profile and of its points, and no other."""
    text = (ROOT / "docs" / "benchmarking.md").read_text()
    section = text.partition("\n## Profiles\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    keys = {key for first, _ in rows for key in re.findall(r"`(\w+)`", first)}
    assert keys == {
        *("gpu", "gpus", "model", "release", "side", "source", "dated", "points"),
        "recommendedConcurrency",
    }
    [points] = [meaning for first, meaning in rows if "`points`" in first]
    assert set(re.findall(r"`(\w+)`", points)) == {
        *("concurrency", "firstAudioMs", "rtf", "charactersPerSecond", "p50", "p90", "p95", "p99")
    }
    assert keys == {to_camel(name) for name in Profile.model_fields}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_written_profile_reads_back(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(load_profile(path)))
    assert load_profile(again) == load_profile(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gpu: L4", "gpus: L4", "gpu"),
        ("side: client", "side: both", "side"),
        ('"2026-11-30"', '"2026-13-30"', "dated: got '2026-13-30'; allowed: a day as YYYY-MM-DD"),
        ("p95: 99.5", "p95: 80.0", "points.0.firstAudioMs: got a list of 2; allowed: one perc"),
        ("{p95: 120.0}", "{}", "points.1.firstAudioMs: got a list of 0; allowed: one percentile"),
        ("p95: 120.0", "p95: .inf", "points.1.firstAudioMs.p95"),
        ("p95: 120.0", "p95: -1.0", "points.1.firstAudioMs.p95"),
        ("concurrency: 2", "concurrency: 1", "points.1.concurrency: got 1; allowed: each concur"),
        ("concurrency: 2", "concurrency: 0", "points.1.concurrency"),
    ],
)
def test_a_wrong_profile_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD)
    load_profile(path)
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SonicEksError) as refused:
        load_profile(path)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_profile_that_says_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    data = yaml.safe_load(GOOD)
    del data["points"]
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(SonicEksError, match="a point or more, or a recommendedConcurrency"):
        load_profile(path)
