"""Generations per GPU: which profile counts, what is assumed, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration, gpu_profile, load_configuration
from sonic_eks.config.gpu_profile import BANDWIDTH_GB_PER_SECOND, shipped_profiles
from sonic_eks.config.instances import instance_types
from sonic_eks.config.profile import load_profile
from sonic_eks.deployment import Deployment
from sonic_eks.errors import ConfigurationError
from sonic_eks.notices import warnings
from tests.configuration import fault_of, load, with_values
from tests.synth import ROOT, changed

Changes = list[tuple[str, Any]]

H100 = ("nodes.gpu.instanceType", "p5.4xlarge")

OURS = """\
gpu: NVIDIA L40S
model: sonic-3
side: client
source: a test
dated: "2026-11-30"
points:
- {concurrency: 1, firstAudioMs: {p95: 90.0}}
- {concurrency: 2, firstAudioMs: {p95: 94.0}}
- {concurrency: 6, firstAudioMs: {p95: 114.0}}
"""


def slo(ttfb: int, path: int = 20, percentile: int = 95) -> Changes:
    return [("slo.ttfbMs", ttfb), ("slo.pathBudgetMs", path), ("slo.percentile", percentile)]


@pytest.mark.parametrize(
    ("instance_type", "objective", "generations", "basis"),
    [
        # The vendor's H100 table, on the worker's side of the path.
        ("p5.4xlarge", slo(165, 0), 8, "measured"),
        ("p5.4xlarge", slo(185, 20), 8, "measured"),
        ("p5.4xlarge", slo(100), 2, "measured"),  # 2 + 2 * 25 / 60
        ("p5.48xlarge", slo(100), 2, "measured"),  # eight whole H100
        ("p5.4xlarge", slo(100, 20, 50), 4, "measured"),  # p50 is 80 at 4
        ("p5.4xlarge", slo(9000), 16, "measured"),  # more was not measured
        # No table: as the H100, and no more than the vendor recommends.
        ("g6e.2xlarge", slo(100), 2, "assumed"),
        ("g6e.2xlarge", slo(320), 8, "assumed"),  # 16 on the H100, 8 recommended
        ("g5.2xlarge", slo(320), 4, "assumed"),  # recommended for the A10G
        ("g6.2xlarge", slo(320), 4, "assumed"),  # the L4's nearest is the A10G: 300, 600, 864
        ("p4d.24xlarge", slo(185), 8, "assumed"),
        ("g7e.2xlarge", slo(320), 8, "assumed"),  # 1597 GB/s, nearest the A100's 1555
        ("p5e.48xlarge", slo(320), 16, "assumed"),  # the H200's nearest is the H100
        ("p6-b200.48xlarge", slo(320), 16, "assumed"),
        # p95 within the budget keeps p90 within it; of p99 nothing is known.
        ("g6e.2xlarge", slo(100, 20, 90), 2, "assumed"),
        ("g6e.2xlarge", slo(300, 20, 99), 1, "assumed"),
        ("g6e.2xlarge", slo(74), 1, "assumed"),  # below the H100's 55 ms
    ],
)
def test_generations_per_gpu(
    tmp_path: Path, instance_type: str, objective: Changes, generations: int, basis: str
) -> None:
    config = load(with_values(("nodes.gpu.instanceType", instance_type), *objective), tmp_path)
    capacity = config.gpu_capacity
    assert (capacity.generations, capacity.basis) == (generations, basis)
    assert config.generations_per_gpu == generations
    assert config.capacity_is_assumed is (basis == "assumed")
    assert "H100" in capacity.reason


def test_every_gpu_has_a_bandwidth() -> None:
    """Of what the nodes may have; an unknown one would be compared with nothing."""
    gpus = {kind.gpu for kind in instance_types().values() if kind.serves_sonic}
    assert gpus == set(BANDWIDTH_GB_PER_SECOND)


def test_a_pin_wins(tmp_path: Path) -> None:
    config = load(with_values(H100, *slo(60), ("scaling.generationsPerGpu", 5)), tmp_path)
    assert (config.generations_per_gpu, config.gpu_capacity.basis) == (5, "pinned")
    assert not config.capacity_is_assumed


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            [H100, *slo(74)],
            (
                "slo.ttfbMs: got 74; allowed: at least 75, as p95 of the H100 is 55 ms at"
                " concurrency 1, the lowest measured, and pathBudgetMs is 20; nearest: 75"
            ),
        ),
        (
            [H100, *slo(54, 0)],
            (
                "slo.ttfbMs: got 54; allowed: at least 55, as p95 of the H100 is 55 ms at"
                " concurrency 1, the lowest measured; nearest: 55"
            ),
        ),
        (
            [H100, *slo(500, 20, 99)],
            (
                "slo.percentile: got 99; allowed: 50 or 95: the profile of the H100 has no other;"
                " measure p99 with `sonic-eks bench`, or set scaling.generationsPerGpu"
            ),
        ),
    ],
)
def test_an_objective_that_a_measured_gpu_cannot_keep(
    tmp_path: Path, changes: Changes, fault: str
) -> None:
    assert fault_of(with_values(*changes), tmp_path) == fault


def test_an_own_profile_is_read_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "l40s.yaml").write_text(OURS)
    config = load(with_values(("scaling.profile", "measured/l40s.yaml")), tmp_path)
    # The client's side: nothing is taken off. 2 + 4 * 6 / 20 = 3.2.
    assert (config.generations_per_gpu, config.gpu_capacity.basis) == (3, "measured")
    assert config.profile is not None
    assert config.profile.source == "a test"


def test_a_profile_of_the_workers_side_pays_for_the_path(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(OURS.replace("side: client", "side: worker"))
    values = with_values(("scaling.profile", "p.yaml"), *slo(124, 20))
    # 104 ms: 2 + 4 * 10 / 20 = 4.
    assert load(values, tmp_path).generations_per_gpu == 4


def test_the_least_objective_is_rounded_up(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(OURS.replace("90.0", "90.2"))
    fault = fault_of(with_values(("scaling.profile", "p.yaml"), *slo(90)), tmp_path)
    assert fault.startswith("slo.ttfbMs: got 90; allowed: at least 91, as p95 of the NVIDIA L40S")
    assert (
        load(with_values(("scaling.profile", "p.yaml"), *slo(91)), tmp_path).generations_per_gpu
        == 1
    )


def test_a_profile_comes_to_no_more_than_may_be_pinned(tmp_path: Path) -> None:
    """`scaling.generationsPerGpu` takes 1024, and so do the limits of a worker."""
    (tmp_path / "p.yaml").write_text(OURS.replace("concurrency: 6", "concurrency: 100000"))
    config = load(with_values(("scaling.profile", "p.yaml"), *slo(120)), tmp_path)
    assert config.generations_per_gpu == 1024


def test_generations_of_several_gpus_are_shared_out(tmp_path: Path) -> None:
    """Two GPUs: 2 and 6 generations together are 1 and 3 each; a single one tells nothing more."""
    (tmp_path / "p.yaml").write_text(OURS.replace("points:", "gpus: 2\npoints:"))
    values = with_values(("scaling.profile", "p.yaml"))
    assert load(values, tmp_path).generations_per_gpu == 1  # 1 + 2 * 6 / 20 = 1.6
    assert (
        load(with_values(("scaling.profile", "p.yaml"), *slo(114)), tmp_path).generations_per_gpu
        == 3
    )
    fault = fault_of(with_values(("scaling.profile", "p.yaml"), *slo(93)), tmp_path)
    assert fault.startswith("slo.ttfbMs: got 93; allowed: at least 94, as p95 of the NVIDIA L40S")


def test_a_configuration_with_a_profile_can_be_changed(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(OURS)
    config = load(with_values(("scaling.profile", "p.yaml")), tmp_path)
    assert changed(config, slo={"ttfbMs": 114}).generations_per_gpu == 6
    assert config == load(with_values(("scaling.profile", "p.yaml")), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "p95: 114.0",
            "p95: 80.5",
            (
                "scaling.profile: got 'p.yaml'; allowed: a profile of p95 that does not fall"
                " as concurrency rises; it is 94 at 2 and 80.5 at 6: measure these again, with"
                " more generations"
            ),
        ),
        (
            (
                "- {concurrency: 2, firstAudioMs: {p95: 94.0}}\n"
                "- {concurrency: 6, firstAudioMs: {p95: 114.0}}\n"
            ),
            "",
            (
                "scaling.profile: got 'p.yaml'; allowed: a profile of two concurrencies or"
                " more with p95; it has 1, at 1"
            ),
        ),
        (
            "p95:",
            "p99:",
            (
                "slo.percentile: got 95; allowed: 99: the profile of the NVIDIA L40S has no other;"
                " measure p95 with `sonic-eks bench`, or set scaling.generationsPerGpu"
            ),
        ),
        (
            "gpu: NVIDIA L40S",
            "gpu: H100 MIG",
            (
                "scaling.profile: got 'H100 MIG'; allowed: a profile of the L40S, the GPU of a"
                " g6e.2xlarge (nodes.gpu.instanceType)"
            ),
        ),
        (
            "p95: 90.0",
            "p95: 94.5",
            None,  # a little fall is noise
        ),
        (
            "p95: 90.0",
            "p95: -1.0",
            "scaling.profile: {folder}/p.yaml: points.0.firstAudioMs.p95",
        ),
        (
            "{concurrency: 1, firstAudioMs: {p95: 90.0}}",
            "{concurrency: 1, firstAudioMs: {p95: 200.5}}",
            "scaling.profile: got 'p.yaml'; allowed: a profile of p95 that does not fall",
        ),
    ],
)
@pytest.mark.parametrize("pinned", [None, 2])
def test_bad_profiles_are_one_line(
    tmp_path: Path, old: str, new: str, said: str | None, pinned: int | None
) -> None:
    """A profile that is named must be good, whether a pin needs it or not."""
    assert old in OURS
    (tmp_path / "p.yaml").write_text(OURS.replace(old, new))
    values = with_values(("scaling.profile", "p.yaml"), ("scaling.generationsPerGpu", pinned))
    if said is None:
        load(values, tmp_path)
    else:
        assert fault_of(values, tmp_path).startswith(said.format(folder=tmp_path))


@pytest.mark.parametrize("instance_type", ["g6e.2xlarge", "g5.2xlarge"])
def test_a_bad_profile_among_those_of_the_project_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance_type: str
) -> None:
    """Of the GPU itself, and of the A10G's nearest."""
    (tmp_path / "p.yaml").write_text(OURS.split("- {concurrency: 2", maxsplit=1)[0])
    profiles = (*shipped_profiles(), load_profile(tmp_path / "p.yaml"))
    monkeypatch.setattr(gpu_profile, "shipped_profiles", lambda: profiles)
    fault = fault_of(with_values(("nodes.gpu.instanceType", instance_type)), tmp_path)
    assert fault == (
        "scaling.profile: got 'the profile of the NVIDIA L40S in profiles/'; allowed: a profile of"
        " two concurrencies or more with p95; it has 1, at 1"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.yaml", "scaling.profile: {folder}/none.yaml: cannot be read: No such file"),
        (".", "scaling.profile: {folder}: cannot be read: Is a directory"),
        ("a\0b", "scaling.profile: {folder}/a\\x00b: cannot be read: "),
        ("", "scaling.profile: got ''; allowed: 1 to 400 characters"),
        (7, "scaling.profile: got 7; allowed: text in quotes"),
        ("x" * 401, "scaling.profile: got 'xxx"),
        ("x" * 100_000, "scaling.profile: got 'xxx"),
    ],
)
def test_bad_names_are_one_line(tmp_path: Path, name: Any, said: str) -> None:
    fault = fault_of(with_values(("scaling.profile", name)), tmp_path)
    assert fault.startswith(said.format(folder=tmp_path))
    assert len(fault) < 300


def test_a_recommendation_alone_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "l40s.yaml").write_text((ROOT / "profiles" / "l40s.yaml").read_text())
    assert fault_of(with_values(("scaling.profile", "l40s.yaml")), tmp_path) == (
        "scaling.profile: got 'l40s.yaml'; allowed: a profile with points: this one only"
        " recommends 8"
    )


def test_the_model_itself_reads_no_file() -> None:
    with pytest.raises(ValueError, match="a file that load_configuration reads"):
        Configuration.model_validate(with_values(("scaling.profile", "profiles/l40s.yaml")))


def test_a_stand_in_has_no_profile(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(OURS)
    smoke = (ROOT / "config" / "smoke.yaml").read_text()
    path = tmp_path / "smoke.yaml"
    path.write_text(smoke)
    assert load_configuration(path).gpu_capacity.basis == "assumed"
    path.write_text(smoke.replace("deployment:\n", "deployment:\n  terminationProtection: true\n"))
    assert load_configuration(path).deployment.termination_protection, "nobody relies on tones"
    path.write_text(smoke + "\nscaling: {profile: p.yaml}\n")
    with pytest.raises(ConfigurationError, match="allowed: none: there is no GPU of a m7i"):
        load_configuration(path)


PRODUCTION = ("deployment.terminationProtection", True)


@pytest.mark.parametrize(
    "changes",
    [
        [PRODUCTION, ("scaling.acceptAssumedCapacity", True)],
        [PRODUCTION, ("scaling.generationsPerGpu", 2)],
        [PRODUCTION, H100],
        [("scaling.acceptAssumedCapacity", False)],
    ],
)
def test_production_knows_its_capacity(tmp_path: Path, changes: Changes) -> None:
    load(with_values(*changes), tmp_path)


def test_production_on_an_assumption_is_acknowledged(tmp_path: Path) -> None:
    fault = fault_of(with_values(PRODUCTION), tmp_path)
    assert fault.startswith(
        "scaling.acceptAssumedCapacity: got false; allowed: true, as nobody measured the L40S; or"
    )


def test_the_production_example_says_that_it_is_assumed() -> None:
    config = load_configuration(ROOT / "config" / "production.yaml")
    assert config.capacity_is_assumed
    assert config.scaling.accept_assumed_capacity


def test_an_objective_below_the_floor_of_the_nearest_gpu_is_a_warning(tmp_path: Path) -> None:
    config = load(with_values(*slo(74)), tmp_path)
    texts = [
        notice.text
        for notice in warnings(Deployment(config, Catalogue(config)))
        if notice.field == "scaling.generationsPerGpu"
    ]
    assert texts == [
        "capacity is assumed, not measured: 1 generation per L40S within 74 ms at p95",
        (
            "nothing says that the objective can be kept: the nearest measured GPU, the H100, has"
            " p95 55 ms at 1, more than the budget of 54 ms"
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ([H100], []),
        (
            [H100, ("registry.sonicRelease", "sonic-20261101")],
            ["capacity was measured with sonic-20260503, and sonic-20261101 runs"],
        ),
        ([H100, ("registry.sonicRelease", "sonic-20261101"), ("scaling.generationsPerGpu", 2)], []),
    ],
)
def test_a_measurement_of_another_release_is_a_warning(
    tmp_path: Path, changes: Changes, texts: list[str]
) -> None:
    config = load(with_values(*changes), tmp_path)
    found = warnings(Deployment(config, Catalogue(config)))
    assert [n.text for n in found if n.field == "scaling.generationsPerGpu"] == texts
