"""The instance type table against facts typed by hand."""

from __future__ import annotations

import pytest

from sonic_eks.config.instances import families, instance_types, nearest_types
from tests.expected.config_values import (
    CAPPED_PODS,
    CPU_TYPES,
    GPU_TYPES,
    GPU_TYPES_REFUSED,
    INSTANCE_FACTS,
    UNCAPPED_PODS,
)


@pytest.mark.parametrize(("name", "facts"), INSTANCE_FACTS.items())
def test_facts(name: str, facts: tuple[int, int, int, str, int, int]) -> None:
    row = instance_types()[name]
    assert (
        row.vcpus,
        row.memory_mib,
        row.gpus,
        row.gpu,
        row.gpu_memory_mib,
        row.local_nvme_gb,
    ) == facts


@pytest.mark.parametrize("name", GPU_TYPES)
def test_what_serves_sonic(name: str) -> None:
    row = instance_types()[name]
    assert row.serves_sonic
    assert not row.serves_cpu


@pytest.mark.parametrize("name", GPU_TYPES_REFUSED)
def test_what_does_not(name: str) -> None:
    row = instance_types().get(name)
    assert row is None or not row.serves_sonic


@pytest.mark.parametrize("name", CPU_TYPES)
def test_what_serves_a_cpu_pool(name: str) -> None:
    row = instance_types()[name]
    assert row.serves_cpu
    assert not row.serves_sonic


def test_every_row_is_sound() -> None:
    for name, row in instance_types().items():
        assert row.name == name
        assert row.family == name.split(".")[0]
        assert row.architecture in ("x86_64", "arm64")
        assert row.vcpus >= 2
        assert row.memory_mib >= 4096
        assert (row.gpus > 0) <= bool(row.gpu)
        assert bool(row.gpu) == bool(row.gpu_generation) == (row.gpu_memory_mib > 0)
        assert row.enis >= 2
        assert row.max_pods >= 10


@pytest.mark.parametrize(("name", "pods"), UNCAPPED_PODS.items())
def test_pods_by_addresses(name: str, pods: int) -> None:
    assert instance_types()[name].max_pods == pods


@pytest.mark.parametrize(("name", "pods"), CAPPED_PODS.items())
def test_pods_by_the_guides_cap(name: str, pods: tuple[int, int]) -> None:
    row = instance_types()[name]
    assert row.enis * (row.ipv4_per_eni - 1) + 2 == pods[0]
    assert row.max_pods == pods[1]


def test_families() -> None:
    assert families(gpu=True)[:3] == ["g5", "g6", "g6e"]
    assert not {"g4dn", "g5g", "g6f", "gr6f", "p3dn"} & set(families(gpu=True))
    assert not any(family.startswith(("g", "p")) for family in families(gpu=False))


@pytest.mark.parametrize(
    ("name", "gpu", "first"),
    [
        ("g6.3xlarge", True, {"g6.2xlarge", "g6.4xlarge"}),
        ("g6f.xlarge", True, {"g6.xlarge"}),
        ("gr6.xlarge", True, {"gr6.4xlarge"}),
        ("p5.24xlarge", True, {"p5.48xlarge"}),
        ("m7i.metal", False, {"m7i.large", "m7i.xlarge"}),
        ("m5.3xlarge", False, {"m5.2xlarge", "m5.4xlarge"}),
    ],
)
def test_the_nearest_type(name: str, gpu: bool, first: set[str]) -> None:
    assert nearest_types(name, gpu=gpu)[0] in first


@pytest.mark.parametrize(
    "name", ["", ".", "zzz", "g", "\x00", "g6.0xlarge", "g6.999xlarge", "g6.xlarge.x"]
)
@pytest.mark.parametrize("gpu", [True, False])
def test_the_nearest_of_anything_is_valid(name: str, gpu: bool) -> None:
    near = nearest_types(name, gpu=gpu)
    assert len(near) <= 3
    for each in near:
        row = instance_types()[each]
        assert row.serves_sonic if gpu else row.serves_cpu
