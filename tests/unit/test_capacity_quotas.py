"""vCPU quotas: names and codes of Service Quotas, and vCPUs added up by hand.

Names and codes: Amazon EC2 user guide, "EC2 instance type quotas" (On-Demand) and "Spot Instance
quotas". vCPUs: g6e.2xlarge 8, m7i.xlarge 4, p5.4xlarge 16, m7i.large 2 (DescribeInstanceTypes).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonic_eks.capacity.quotas import quotas
from sonic_eks.config import load_configuration
from sonic_eks.config.instances import instance_types
from tests.configuration import load, with_values
from tests.synth import ROOT

G = ("Running On-Demand G and VT instances", "L-DB2E81BA")
P = ("Running On-Demand P instances", "L-417A185B")
STANDARD = (
    "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-1216C47A",
)
G_SPOT = ("All G and VT Spot Instance Requests", "L-3819A6DF")
P5_SPOT = ("All P5 Spot Instance Requests", "L-C4BD4855")

SPOT = [("nodes.gpu.overflow.spot", True), ("drain.maxStreamSeconds", 110)]
PAIR = [("nodes.upgrade", "replaceGroup"), ("nodes.generations", [1, 2])]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # 9 GPU nodes; system 2, serving 3, one more for API pods; an update of system nodes
        # starts up to two in each of two zones, one of serving nodes two in its zone.
        ([], {G: 9 * 8, STANDARD: (2 + 3 + 1 + 4 + 2) * 4}),
        ([("network.zones", ["us-east-1a", "us-east-1b", "us-east-1c"])],
         {G: 9 * 8, STANDARD: (3 + 3 + 1 + 6 + 2) * 4}),
        ([("nodes.gpu.instanceType", "p5.4xlarge")], {P: 9 * 16, STANDARD: 48}),
        # Spot or On-Demand: 3 of the 9 may be either.
        (SPOT, {G: 9 * 8, G_SPOT: 3 * 8, STANDARD: 48}),
        ([("nodes.gpu.instanceType", "p5.4xlarge"), *SPOT],
         {P: 9 * 16, P5_SPOT: 3 * 16, STANDARD: 48}),
        # A new group stands whole beside the old one; neither is updated in place.
        (PAIR, {G: (9 + 2) * 8, STANDARD: (2 * 2 + 2 * 3 + 1) * 4}),
        ([("nodes.upgrade", "replaceGroup")], {G: 9 * 8, STANDARD: (2 + 3 + 1) * 4}),
        ([("nodes.gpu.maxNodes", 40), ("nodes.gpu.instanceType", "g6e.12xlarge")],
         {G: 40 * 48, STANDARD: 48}),
        # (300 + 2 sqrt(300)) / 2 is 167.3: 168 workers, 60 / 2 + sqrt(60) is 37.7: 38, of which 16
        # slots are free, and of the ramp's 35 the rest needs 10 GPUs. 19 API pods, 3 a node.
        ([("models", [{"traffic": {"peakGenerations": 300, "troughGenerations": 60,
                                   "rampGenerationsPerMinute": 10}}])],
         {G: 178 * 8, STANDARD: (2 + 3 + 4 + 4 + 2) * 4}),
    ],
)  # fmt: skip
def test_quotas(
    tmp_path: Path, changes: list[tuple[str, Any]], expected: dict[tuple[str, str], int]
) -> None:
    found = quotas(load(with_values(*changes), tmp_path))
    assert {(quota.name, quota.code): quota.vcpus for quota in found} == expected


def test_a_stand_in_needs_no_gpu_quota() -> None:
    """4 nodes of m7i.large in the place of GPU nodes; system 2, and 4 in an update."""
    (found,) = quotas(load_configuration(ROOT / "config" / "smoke.yaml"))
    assert (found.name, found.code) == STANDARD
    assert found.vcpus == 4 * 2 + (2 + 4) * 4
    assert found.reason.startswith("4 m7i.large (stand-in nodes at most) + ")


def test_what_adds_up_is_said(tmp_path: Path) -> None:
    gpu, standard = quotas(load(with_values(*PAIR), tmp_path))
    assert gpu.reason == "9 g6e.2xlarge (GPU nodes at most) + 2 g6e.2xlarge (second GPU base)"
    assert standard.reason == (
        "4 m7i.xlarge (system) + 6 m7i.xlarge (serving) + 1 m7i.xlarge (more for API pods)"
    )


def test_spot_of_a_p_family_is_of_p5() -> None:
    """The one P type with a single GPU, which Spot asks for: no other P quota can be needed."""
    single = {t.family for t in instance_types().values() if t.serves_sonic and t.gpus == 1}
    assert {family for family in single if family.startswith("p")} == {"p5"}
