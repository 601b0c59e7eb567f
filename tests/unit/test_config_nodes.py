"""Rules of the node pools: what capacity goes together, and how a refusal reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]
A, B, C = "cr-0a1b2c3d", "cr-0123456789abcdef0", "cr-0fedcba9876543210"
OVERFLOW = "nodes.gpu.overflow"
BLOCK: Changes = [
    ("nodes.gpu.instanceType", "p5.48xlarge"),
    ("nodes.gpu.maxNodes", 9),
    (f"{OVERFLOW}.capacityBlockIds", [A]),
    ("drain.maxStreamSeconds", 420),
]


@pytest.mark.parametrize(
    ("changes", "burst", "overflow"),
    [
        ([], 4, 3),
        ([("nodes.gpu.baseSize", 8)], 1, 0),
        ([("nodes.gpu.baseSize", 9)], 0, 0),
        ([(f"{OVERFLOW}.enabled", False)], 7, 0),
        ([(f"{OVERFLOW}.maxNodes", 1)], 6, 1),
        ([(f"{OVERFLOW}.maxNodes", 7)], 0, 7),
        ([(f"{OVERFLOW}.spot", True), ("drain.maxStreamSeconds", 110)], 4, 3),
        ([(f"{OVERFLOW}.spot", False), ("drain.maxStreamSeconds", 720)], 4, 3),
        (BLOCK, 4, 3),
        # 8 workers and one to spare: three nodes of four GPUs; two of eight, which the base has.
        ([("nodes.gpu.instanceType", "g6e.12xlarge")], 1, 0),
        ([("nodes.gpu.instanceType", "p5.48xlarge")], 0, 0),
        ([("nodes.gpu.baseSize", 12)], 0, 0),
        (
            [
                ("nodes.gpu.baseReservationId", A),
                ("nodes.gpu.reservationIds", [B]),
                (f"{OVERFLOW}.reservationIds", [C]),
            ],
            4,
            3,
        ),
        # The base needs no room for Karpenter.
        ([("nodes.gpu.baseSize", 9), ("nodes.gpu.baseReservationId", A)], 0, 0),
    ],
)
def test_nodes_beyond_the_base(tmp_path: Path, changes: Changes, burst: int, overflow: int) -> None:
    config = load(with_values(*changes), tmp_path)
    assert (config.gpu_burst_nodes, config.gpu_overflow_nodes) == (burst, overflow)
    assert config.nodes.gpu.base_size + burst + overflow == config.gpu_max_nodes


@pytest.mark.parametrize(
    ("changes", "nodes"),
    [
        ([], 4),
        ([("nodes.serving.size", 7)], 8),
        ([("nodes.serving.maxNodes", 3)], 3),
        ([("nodes.serving.maxNodes", 30)], 30),
        ([("api.maxReplicas", 13)], 5),
        ([("api.maxReplicas", 13), ("nodes.serving.maxNodes", 5)], 5),
    ],
)
def test_serving_nodes_at_most(tmp_path: Path, changes: Changes, nodes: int) -> None:
    # An m7i.xlarge holds 3 API pods of 1.02 vCPUs in 78 % of its 4.
    assert load(with_values(*changes), tmp_path).serving_max_nodes == nodes


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            [(f"{OVERFLOW}.maxNodes", 8)],
            (
                "nodes.gpu.overflow.maxNodes: got 8; allowed: at most 7, maxNodes (9) less baseSize"
                " (2); nearest: 7"
            ),
        ),
        (
            [(f"{OVERFLOW}.enabled", False), (f"{OVERFLOW}.spot", True)],
            "nodes.gpu.overflow.enabled: got false; allowed: true while spot is set, or no spot",
        ),
        (
            [(f"{OVERFLOW}.enabled", False), (f"{OVERFLOW}.maxNodes", 2)],
            (
                "nodes.gpu.overflow.enabled: got false; allowed: true while maxNodes is set, or no"
                " maxNodes"
            ),
        ),
        (
            [(f"{OVERFLOW}.spot", True), ("drain.maxStreamSeconds", 111)],
            (
                "drain.maxStreamSeconds: got 111; allowed: at most 110 while"
                " nodes.gpu.overflow.spot is true: EC2 takes a Spot Instance back two minutes after"
                " its notice; nearest: 110"
            ),
        ),
        (
            [
                (f"{OVERFLOW}.spot", True),
                ("drain.maxStreamSeconds", 60),
                ("nodes.gpu.instanceType", "g6e.12xlarge"),
            ],
            (
                "nodes.gpu.overflow.spot: got true; allowed: false for a g6e.12xlarge: its 4"
                " workers cannot all leave within a Spot notice"
            ),
        ),
        (
            [
                (f"{OVERFLOW}.spot", True),
                ("drain.maxStreamSeconds", 60),
                ("nodes.gpu.baseSize", 8),
            ],
            (
                "nodes.gpu.overflow.spot: got true; allowed: false, as nodes.gpu.maxNodes (9) leave"
                " no overflow node"
            ),
        ),
        (
            [("nodes.gpu.reservationIds", ["res-1"])],
            (
                "nodes.gpu.reservationIds.0: got 'res-1'; allowed: text that matches"
                " ^cr-[0-9a-f]{8,17}$"
            ),
        ),
        (
            [("nodes.gpu.reservationIds", [A, A])],
            f"nodes.gpu.reservationIds.1: got '{A}'; allowed: each reservation in one place",
        ),
        (
            # Karpenter would take what an update of the base frees.
            [("nodes.gpu.baseReservationId", A), ("nodes.gpu.reservationIds", [B, A])],
            f"nodes.gpu.reservationIds.1: got '{A}'; allowed: each reservation in one place",
        ),
        (
            [("nodes.gpu.reservationIds", [A]), (f"{OVERFLOW}.reservationIds", [A])],
            (
                "nodes.gpu.overflow.reservationIds.0: got 'cr-0a1b2c3d'; allowed: each reservation"
                " in"
                " one place"
            ),
        ),
        (
            [("nodes.gpu.baseSize", 9), ("nodes.gpu.reservationIds", [A])],
            (
                "nodes.gpu.reservationIds: got a list of 1; allowed: none, as nodes.gpu.maxNodes"
                " (9) leave no node that may use it"
            ),
        ),
        (
            [(f"{OVERFLOW}.maxNodes", 7), ("nodes.gpu.reservationIds", [A])],
            (
                "nodes.gpu.reservationIds: got a list of 1; allowed: none, as nodes.gpu.maxNodes"
                " (9) leave no node that may use it"
            ),
        ),
        (
            [*BLOCK, ("nodes.gpu.instanceType", "g6e.2xlarge")],
            (
                "nodes.gpu.overflow.capacityBlockIds: got a list of 1; allowed: none for a"
                " g6e.2xlarge: EC2 sells Capacity Blocks for P families"
            ),
        ),
        (
            [*BLOCK, ("drain.maxStreamSeconds", 421)],
            (
                "drain.maxStreamSeconds: got 421; allowed: at most 420 while"
                " nodes.gpu.overflow.capacityBlockIds is set: nodes of a block have 600 seconds to"
                " drain before it ends, of which propagationSeconds and marginSeconds take 180;"
                " nearest: 420"
            ),
        ),
        (
            [
                *BLOCK,
                ("drain.maxStreamSeconds", 0),
                ("drain.propagationSeconds", 500),
                ("drain.marginSeconds", 101),
            ],
            (
                "drain.marginSeconds: got 101; allowed: a value that, with propagationSeconds, is"
                " 600"
                " at most while nodes.gpu.overflow.capacityBlockIds is set"
            ),
        ),
        (
            [("nodes.serving.size", 6), ("nodes.serving.maxNodes", 5)],
            (
                "nodes.serving.maxNodes: got 5; allowed: at least 6: nodes.serving.size (6);"
                " nearest: 6"
            ),
        ),
        (
            [("api.maxReplicas", 13), ("nodes.serving.maxNodes", 4)],
            (
                "nodes.serving.maxNodes: got 4; allowed: at least 5: what api.maxReplicas (13)"
                " need;"
                " nearest: 5"
            ),
        ),
        (
            [("api.cpuMillicores", 3101)],
            (
                "api.cpuMillicores: got 3101; allowed: at most 3100, 78 % of a m7i.xlarge"
                " (nodes.serving.instanceType); nearest: 3100"
            ),
        ),
        (
            [("api.memoryMib", 12_716)],
            (
                "api.memoryMib: got 12716; allowed: at most 12715, 78 % of a m7i.xlarge"
                " (nodes.serving.instanceType); nearest: 12715"
            ),
        ),
    ],
)
def test_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path) == fault


@pytest.mark.parametrize("field", ["reservationIds", "overflow.reservationIds"])
def test_karpenter_takes_thirty_reservations_a_class(tmp_path: Path, field: str) -> None:
    ids = [f"cr-{number:08x}" for number in range(16)]
    load(with_values((f"nodes.gpu.{field}", ids[:15])), tmp_path)
    fault = fault_of(with_values((f"nodes.gpu.{field}", ids)), tmp_path)
    assert fault.startswith(f"nodes.gpu.{field}: got a list of 16; allowed: ")
