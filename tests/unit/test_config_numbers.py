"""Numbers and choices: what each field takes and refuses, and how the refusal reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import (
    VALID_TEXT,
    fault_of,
    faults_of,
    load,
    value_at,
    with_values,
)
from tests.expected.config_values import (
    FSX_CAPACITIES_GIB,
    FSX_REFUSED_CAPACITIES_GIB,
    FSX_THROUGHPUTS,
    RETENTION_DAYS,
)

# Bounds by field, both accepted; typed from the descriptions that the reference prints.
BOUNDS = {
    "nodes.system.size": (2, 100),
    "nodes.system.rootVolumeGib": (30, 1000),
    "nodes.serving.size": (3, 100),
    "nodes.serving.maxNodes": (3, 200),
    "nodes.gpu.baseSize": (2, 50),
    "nodes.gpu.maxNodes": (2, 500),
    "nodes.gpu.overflow.maxNodes": (1, 498),
    "nodes.gpu.rootVolumeGib": (50, 2000),
    "nodes.gpu.consolidateAfterSeconds": (600, 86_400),
    "api.minReplicas": (2, 200),
    "api.maxReplicas": (2, 200),
    "api.cpuMillicores": (100, 48_000),
    "api.memoryMib": (128, 256_000),
    "slo.ttfbMs": (10, 10_000),
    "slo.pathBudgetMs": (0, 5_000),
    "drain.maxStreamSeconds": (0, 3600),
    "drain.propagationSeconds": (120, 600),
    "drain.marginSeconds": (10, 600),
    "drain.idleSeconds": (1, 60),
    "scaling.headroomGpus": (0, 50),
    "scaling.generationsPerGpu": (1, 1024),
    "scaling.generationsPerApiPod": (1, 10_000),
    "scaling.scaleDownWindowSeconds": (300, 3600),
    "scaling.scaleDownPeriodSeconds": (15, 1800),
    "scaling.scaleDownPodsPerPeriod": (1, 100),
    "scaling.scaleDownPercentPerPeriod": (1, 100),
    "scaling.coldStartSeconds": (15, 3600),
    "scaling.lookAheadSeconds": (0, 3600),
    "scaling.lookAheadWindowSeconds": (60, 1800),
    "scaling.reserveGenerations": (0, 100_000),
    "scaling.zeroAfterSeconds": (60, 86_400),
    "scaling.scaleUpPodsPerPeriod": (1, 100),
    "edge.listenerPort": (1, 65_535),
    "edge.tcpIdleTimeoutSeconds": (60, 6000),
    "license.volumeGib": (1, 100),
}
# What else must change for a bound to be consistent with the other fields.
TOGETHER: dict[tuple[str, int], dict[str, Any]] = {
    ("nodes.gpu.baseSize", 50): {"nodes.gpu.maxNodes": 50},
    ("nodes.gpu.maxNodes", 2): {
        "models": [{"maxReplicas": 2}],
        "scaling.headroomGpus": 0,
        "scaling.rollout": "replace",
    },
    ("scaling.headroomGpus", 50): {"nodes.gpu.maxNodes": 52},
    ("nodes.gpu.overflow.maxNodes", 498): {"nodes.gpu.maxNodes": 500},
    ("api.cpuMillicores", 48_000): {"nodes.serving.instanceType": "m7i.16xlarge"},
    ("api.memoryMib", 256_000): {"nodes.serving.instanceType": "r7i.16xlarge"},
    ("api.minReplicas", 200): {"api.maxReplicas": 200},
    ("api.maxReplicas", 2): {"api.minReplicas": 2},
    ("slo.ttfbMs", 10): {"slo.pathBudgetMs": 9},
    ("slo.pathBudgetMs", 5_000): {"slo.ttfbMs": 5_001},
    # 3600 s of stream do not fit the 900 s that the update of a managed node group gives.
    ("drain.maxStreamSeconds", 3600): {"nodes.upgrade": "replaceGroup"},
    ("drain.propagationSeconds", 600): {"drain.maxStreamSeconds": 240},
    ("drain.marginSeconds", 600): {"drain.maxStreamSeconds": 180},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [(path, value) for path, bounds in BOUNDS.items() for value in bounds],
)
def test_bounds_are_accepted(tmp_path: Path, path: str, value: int) -> None:
    others = TOGETHER.get((path, value), {})
    config = load(with_values(*others.items(), (path, value)), tmp_path)
    assert value_at(config, path) == value


@pytest.mark.parametrize(("path", "bounds"), BOUNDS.items())
def test_beyond_the_bounds_is_refused(tmp_path: Path, path: str, bounds: tuple[int, int]) -> None:
    low, high = bounds
    for value, nearest in ((low - 1, low), (high + 1, high), (10**30, high)):
        fault = fault_of(with_values((path, value)), tmp_path)
        assert fault == (
            f"{path}: got {value}; allowed: a whole number, {low} to {high}; nearest: {nearest}"
        )


@pytest.mark.parametrize("path", BOUNDS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        ("7", "'7'"),
        ([], "a list of 0"),
        ({"a": 1}, "a mapping of 1"),
        (".5", "'.5'"),
    ],
)
def test_what_is_no_whole_number(tmp_path: Path, path: str, value: object, shown: str) -> None:
    fault = fault_of(with_values((path, value)), tmp_path)
    assert fault.startswith(f"{path}: got {shown}; allowed: a whole number, ")


def test_a_decimal_where_a_whole_number_is_meant(tmp_path: Path) -> None:
    fault = fault_of(with_values(("drain.maxStreamSeconds", 300.0)), tmp_path)
    assert fault.startswith("drain.maxStreamSeconds: got 300.0; allowed: a whole number, 0 to 3600")


@pytest.mark.parametrize("path", ["models.0.minReplicas", "models.0.loadSeconds"])
def test_bounds_in_a_list_name_the_entry(tmp_path: Path, path: str) -> None:
    fault = fault_of(with_values(("models", [{}]), (path, 1)), tmp_path)
    assert fault.startswith(f"{path}: got 1; allowed: a whole number, ")


@pytest.mark.parametrize("value", [0.1, 0.75, 1, 1.0])
def test_utilization_accepted(tmp_path: Path, value: float) -> None:
    config = load(with_values(("scaling.targetUtilization", value)), tmp_path)
    assert config.scaling.target_utilization == value


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("0.09", "0.09"),
        ("1.01", "1.01"),
        ("75", "75"),
        (".nan", "nan"),
        (".inf", "inf"),
        ("-.inf", "-inf"),
        ("true", "true"),
        ('"0.5"', "'0.5'"),
        ("75%", "'75%'"),
    ],
)
def test_utilization_refused(tmp_path: Path, written: str, shown: str) -> None:
    text = VALID_TEXT + f"scaling:\n  targetUtilization: {written}\n"
    (fault,) = faults_of(text, tmp_path)
    assert fault.startswith(
        f"scaling.targetUtilization: got {shown}; allowed: a number, 0.1 to 1.0"
    )


@pytest.mark.parametrize("value", FSX_CAPACITIES_GIB)
def test_capacity_accepted(tmp_path: Path, value: int) -> None:
    assert load(with_values(("weights.capacityGib", value)), tmp_path).weights.capacity_gib == value


@pytest.mark.parametrize(("value", "nearest"), FSX_REFUSED_CAPACITIES_GIB.items())
def test_capacity_refused(tmp_path: Path, value: int, nearest: str) -> None:
    fault = fault_of(with_values(("weights.capacityGib", value)), tmp_path)
    assert fault.startswith(
        f"weights.capacityGib: got {value}; allowed: 1200 or a multiple of 2400"
    )
    assert fault.endswith(f"; nearest: {nearest}")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2400.5", "2400.5"),
        ("2400.0", "2400.0"),
        ("1.2TiB", "'1.2TiB'"),
        ('"1200"', "'1200'"),
        ("true", "true"),
        (".nan", "nan"),
        (".inf", "inf"),
        ("", "nothing"),
        ("[1200]", "a list of 1"),
    ],
)
def test_capacity_that_is_no_whole_number(tmp_path: Path, written: str, shown: str) -> None:
    (fault,) = faults_of(VALID_TEXT + f"weights:\n  capacityGib: {written}\n", tmp_path)
    assert fault.startswith(f"weights.capacityGib: got {shown}; allowed: 1200 or a multiple")
    assert "nearest: " in fault


CHOICES: dict[str, tuple[Any, ...]] = {
    "weights.throughputMbPerSPerTib": FSX_THROUGHPUTS,
    "slo.percentile": (50, 90, 95, 99),
    "network.flowLogRetentionDays": RETENTION_DAYS,
    "cluster.logRetentionDays": RETENTION_DAYS,
    "network.egress": ("system",),
    "license.mode": ("connected",),
    "cluster.version": ("1.35",),
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in CHOICES.items() for value in values]
)
def test_choices_accepted(tmp_path: Path, path: str, value: object) -> None:
    assert value_at(load(with_values((path, value)), tmp_path), path) == value


@pytest.mark.parametrize(
    ("path", "written", "rest"),
    [
        (
            "weights.throughputMbPerSPerTib",
            "300",
            "300; allowed: 125, 250, 500 or 1000; nearest: 250",
        ),
        ("weights.throughputMbPerSPerTib", '"250"', "'250'; allowed: 125, 250, 500 or 1000"),
        ("weights.throughputMbPerSPerTib", "250.0", "250.0; allowed: 125, 250, 500 or 1000"),
        ("slo.percentile", "0.95", "0.95; allowed: 50, 90, 95 or 99; nearest: 50"),
        ("slo.percentile", "p95", "'p95'; allowed: 50, 90, 95 or 99"),
        ("cluster.logRetentionDays", "true", "true; allowed: 1, 3, 5, 7, 14, "),
        ("cluster.logRetentionDays", "1.0", "1.0; allowed: 1, 3, 5, 7, 14, "),
        ("cluster.logRetentionDays", "31", "31; allowed: 1, 3, 5, 7, 14, "),
        ("network.egress", "nat", '\'nat\'; allowed: "system" or "none"'),
        ("network.egress", "", 'nothing; allowed: "system" or "none"'),
        ("license.mode", "air-gapped", '\'air-gapped\'; allowed: "connected", "airGapped" or "no'),
        ("license.mode", "AIRGAPPED", '\'AIRGAPPED\'; allowed: "connected", "airGapped" or "none"'),
        ("license.mode", "no", 'false; allowed: "connected", "airGapped" or "none"'),
        ("cluster.version", "1.35", '1.35; allowed: "1.35" or "1.36" in quotes'),
        ("cluster.version", "1.30", '1.3; allowed: "1.35" or "1.36" in quotes'),
        ("cluster.version", '"1.34"', '\'1.34\'; allowed: "1.35" or "1.36"; nea'),
        ("deployment.terminationProtection", "1", "1; allowed: true or false"),
        ("deployment.terminationProtection", '"yes"', "'yes'; allowed: true or false"),
    ],
)
def test_choices_refused(tmp_path: Path, path: str, written: str, rest: str) -> None:
    section, key = path.split(".")
    text = VALID_TEXT.replace(f"{section}:\n", f"{section}:\n  {key}: {written}\n")
    if text == VALID_TEXT:
        text += f"{section}:\n  {key}: {written}\n"
    (fault,) = faults_of(text, tmp_path)
    assert fault.startswith(f"{path}: got {rest}")
