"""Traffic: what follows from it is what the cluster gets."""

from __future__ import annotations

from typing import Any

import pytest

from sonic_eks.config import Configuration
from tests.configuration import with_values
from tests.synth import charts_of

# Worked by hand in docs/capacity.md: 8 generations a GPU, 10 to 42 workers, 2 spare GPUs, 44 nodes
# of which 2 are the base, 4 to 19 API pods.
TRAFFIC = {"peakGenerations": 300, "troughGenerations": 60, "rampGenerationsPerMinute": 10}


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict[str, Any]]:
    config = Configuration.model_validate(
        with_values(
            ("nodes.gpu.instanceType", "p5.4xlarge"),
            ("slo.ttfbMs", 185),
            ("models", [{"traffic": TRAFFIC, "concurrencyEnv": "MOST", "batchSizeEnv": "BATCH"}]),
        )
    )
    return {
        (manifest["kind"], manifest["metadata"]["name"]): manifest["spec"]
        for chart in charts_of(config)
        for manifest in chart.manifests
        if "spec" in manifest
    }


@pytest.mark.parametrize(
    ("name", "low", "high", "threshold"),
    [("sonic-worker-sonic-3", 10, 42, "8"), ("sonic-api", 4, 19, "50")],
)
def test_scalers(
    objects: dict[tuple[str, str], dict[str, Any]], name: str, low: int, high: int, threshold: str
) -> None:
    spec = objects["ScaledObject", name]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (low, high)
    assert spec["fallback"]["replicas"] == low
    assert spec["triggers"][0]["metadata"]["threshold"] == threshold


def test_spare_gpus_and_nodes(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert objects["Deployment", "sonic-headroom"]["replicas"] == 2
    limits = {
        name: int(objects["NodePool", name]["limits"]["nvidia.com/gpu"])
        for name in ("gpu-burst", "gpu-overflow")
    }
    assert limits == {"gpu-burst": 21, "gpu-overflow": 21}


def test_a_worker_is_told_what_a_gpu_carries(
    objects: dict[tuple[str, str], dict[str, Any]],
) -> None:
    (container,) = objects["Deployment", "sonic-worker-sonic-3"]["template"]["spec"]["containers"]
    given = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert (given["MOST"], given["BATCH"]) == ("8", "8")
