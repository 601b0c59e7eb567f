"""What follows from a configuration: capacity, drain, requests, ports, callers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import load, with_values

Changes = list[tuple[str, Any]]
CERTIFICATE = "arn:aws:acm:us-east-1:111122223333:certificate/0f0e1d2c-0000-4000-8000-00000000000a"


@pytest.mark.parametrize(
    ("measured", "expected", "assumed"), [(None, 2, True), (2, 2, False), (7, 7, False)]
)
def test_generations_per_gpu(
    tmp_path: Path, measured: int | None, expected: int, assumed: bool
) -> None:
    config = load(with_values(("scaling.generationsPerGpu", measured)), tmp_path)
    assert config.generations_per_gpu == expected
    assert config.capacity_is_assumed is assumed


@pytest.mark.parametrize(
    ("changes", "budget", "grace"),
    [
        ([], 720, 780),
        ([("drain.maxStreamSeconds", 0)], 120, 180),
        ([("drain.maxStreamSeconds", 720)], 840, 900),
        ([("drain.maxStreamSeconds", 300), ("drain.propagationSeconds", 200)], 500, 560),
        ([("drain.maxStreamSeconds", 300), ("drain.marginSeconds", 10)], 420, 430),
    ],
)
def test_drain(tmp_path: Path, changes: Changes, budget: int, grace: int) -> None:
    drain = load(with_values(*changes), tmp_path).drain
    assert (drain.budget_seconds, drain.grace_seconds) == (budget, grace)


@pytest.mark.parametrize(
    ("instance_type", "cpu", "memory"),
    [
        ("g6e.2xlarge", 6000, 49_152),  # 3/4 of 8 vCPUs, 65,536 MiB
        ("g6e.xlarge", 3000, 24_576),  # 3/4 of 4 vCPUs, 32,768 MiB
        ("g6e.12xlarge", 9000, 73_728),  # 3/4 of a quarter of 48 vCPUs, 393,216 MiB
        ("g6e.48xlarge", 18_000, 147_456),  # 3/4 of an eighth of 192 vCPUs, 1,572,864 MiB
    ],
)
def test_worker_requests_follow_the_node(
    tmp_path: Path, instance_type: str, cpu: int, memory: int
) -> None:
    config = load(with_values(("nodes.gpu.instanceType", instance_type)), tmp_path)
    (model,) = config.models
    assert config.worker_cpu_millicores(model) == cpu
    assert config.worker_memory_mib(model) == memory


def test_worker_requests_that_are_given_stay(tmp_path: Path) -> None:
    config = load(with_values(("models", [{"cpuMillicores": 500, "memoryMib": 2048}])), tmp_path)
    (model,) = config.models
    assert config.worker_cpu_millicores(model) == 500
    assert config.worker_memory_mib(model) == 2048


@pytest.mark.parametrize(
    ("changes", "port"),
    [
        ([], 80),
        ([("edge.certificateArn", CERTIFICATE)], 443),
        ([("edge.listenerPort", 5000)], 5000),
        ([("edge.listenerPort", 8443), ("edge.certificateArn", CERTIFICATE)], 8443),
    ],
)
def test_listener_port(tmp_path: Path, changes: Changes, port: int) -> None:
    assert load(with_values(*changes), tmp_path).edge.port == port


def test_callers_are_the_vpc_unless_named(tmp_path: Path) -> None:
    config = load(with_values(("network.vpcCidr", "10.9.0.0/20")), tmp_path)
    assert config.client_cidrs == ("10.9.0.0/20",)
    config = load(with_values(("edge.clientCidrs", ["10.0.0.0/9", "192.168.0.0/24"])), tmp_path)
    assert config.client_cidrs == ("10.0.0.0/9", "192.168.0.0/24")


def test_the_gpu_zone_is_the_first_unless_named(tmp_path: Path) -> None:
    assert load(with_values(), tmp_path).network.gpu_zone == "us-east-1a"
    config = load(with_values(("network.inferenceZone", "us-east-1b")), tmp_path)
    assert config.network.gpu_zone == "us-east-1b"
