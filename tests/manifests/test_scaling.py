"""Scalers: how many pods for how many generations."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.manifests.deployments import kinds, one


def scaler(name: str, deployment: str = "default") -> dict[str, Any]:
    spec: dict[str, Any] = one(deployment, "ScaledObject", name)["spec"]
    return spec


def trigger(name: str, deployment: str = "default") -> dict[str, Any]:
    (found,) = scaler(name, deployment)["triggers"]
    assert isinstance(found, dict)
    return found


def pods_for(generations: float, threshold: str) -> int:
    """External metric with AverageValue: ceil(value / target), Kubernetes documentation."""
    return math.ceil(generations / float(threshold))


@pytest.mark.parametrize(
    ("deployment", "name", "threshold"),
    [
        ("default", "sonic-worker-sonic-3", "2"),  # generations a GPU
        ("vendor-names", "sonic-worker-sonic-3", "3.5"),  # 5 x 0.7, without float noise
        ("default", "sonic-api", "50"),  # generations an API pod carries
    ],
)
def test_threshold(deployment: str, name: str, threshold: str) -> None:
    assert trigger(name, deployment)["metadata"]["threshold"] == threshold
    assert trigger(name, deployment)["metricType"] == "AverageValue"


def test_pods_follow_the_generations() -> None:
    threshold = trigger("sonic-worker-sonic-3")["metadata"]["threshold"]
    # Six generations, margins included, on workers of two: three.
    assert [pods_for(n, threshold) for n in (0, 1, 3, 4, 6, 12)] == [0, 1, 2, 2, 3, 6]


def test_bounds_are_those_of_the_configuration() -> None:
    workers, api = scaler("sonic-worker-sonic-3"), scaler("sonic-api")
    assert (workers["minReplicaCount"], workers["maxReplicaCount"]) == (2, 8)
    assert (api["minReplicaCount"], api["maxReplicaCount"]) == (3, 6)


def test_a_silent_metric_keeps_what_is_there(deployment: str) -> None:
    for found in kinds(deployment, "ScaledObject"):
        spec = found["spec"]
        assert 0 <= spec["minReplicaCount"] <= spec["maxReplicaCount"]
        assert spec["fallback"] == {
            "failureThreshold": 3,
            # KEDA takes a fallback of none for none at all, and the silence for no demand.
            "replicas": max(1, spec["minReplicaCount"]),
            "behavior": "currentReplicasIfHigher",
        }
        assert spec["triggers"][0]["metadata"]["ignoreNullValues"] == "false"
        assert spec["advanced"]["restoreToOriginalReplicaCount"] is False


def test_up_is_fast_and_down_is_slow() -> None:
    behavior = scaler("sonic-worker-sonic-3")["advanced"]["horizontalPodAutoscalerConfig"][
        "behavior"
    ]
    assert behavior["scaleUp"] == {
        "stabilizationWindowSeconds": 0,
        "tolerance": "0.1",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
    }
    assert behavior["scaleDown"] == {
        "stabilizationWindowSeconds": 300,
        "tolerance": "0.1",
        # The larger of the two, selectPolicy's default.
        "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 60},
            {"type": "Percent", "value": 10, "periodSeconds": 60},
        ],
    }


def test_a_model_may_have_no_worker_while_nobody_calls() -> None:
    rare, always = scaler("sonic-worker-rare", "zero"), scaler("sonic-worker-sonic-3", "zero")
    assert (rare["minReplicaCount"], rare["cooldownPeriod"]) == (0, 1200)
    # Three generations are held free: they alone are nobody's call.
    assert rare["triggers"][0]["metadata"]["activationThreshold"] == "3.5"
    assert always["minReplicaCount"] == 2
    assert "cooldownPeriod" not in always
    assert "activationThreshold" not in always["triggers"][0]["metadata"]


def test_each_direction_has_a_tolerance_of_its_own() -> None:
    for found in kinds("schedules", "ScaledObject"):
        behavior = found["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        assert behavior["scaleUp"]["tolerance"] == "0"
        assert behavior["scaleDown"]["tolerance"] == "0.05"


def test_schedules_are_triggers_of_the_workers_that_they_name() -> None:
    def times(name: str) -> list[dict[str, Any]]:
        return [t for t in scaler(name, "schedules")["triggers"] if t["type"] == "cron"]

    morning = {
        "type": "cron",
        "name": "morning",
        "metricType": "AverageValue",
        "metadata": {
            "timezone": "Europe/Berlin",
            "start": "30 7 * * 1-5",
            "end": "0 10 * * mon-fri",
            "desiredReplicas": "3",
        },
    }
    assert times("sonic-worker-sonic-2") == [morning]
    assert [t["name"] for t in times("sonic-worker-sonic-3")] == ["morning", "sale"]
    assert times("sonic-worker-sonic-3")[0] == morning
    assert times("sonic-api") == []
    # What demand wants is still asked first.
    for found in kinds("schedules", "ScaledObject"):
        assert found["spec"]["triggers"][0]["type"] == "prometheus"


def test_each_model_scales_on_its_own_workers() -> None:
    queries = {
        found["metadata"]["name"]: found["spec"]["triggers"][0]["metadata"]["query"]
        for found in kinds("two-models", "ScaledObject")
    }
    assert queries.keys() == {"sonic-api", "sonic-worker-sonic-3", "sonic-worker-sonic-2"}
    assert 'model="sonic-3"' in queries["sonic-worker-sonic-3"]
    assert 'model="sonic-2"' not in queries["sonic-worker-sonic-3"]
    assert 'model="sonic-2"' in queries["sonic-worker-sonic-2"]
    assert "model=" not in queries["sonic-api"]
    assert all('namespace="sonic"' in query for query in queries.values())


def test_prometheus_is_where_the_scalers_ask() -> None:
    service = one("default", "Service", "prometheus")
    (port,) = service["spec"]["ports"]
    meta = service["metadata"]
    address = f"http://{meta['name']}.{meta['namespace']}.svc.cluster.local:{port['port']}"
    for found in kinds("default", "ScaledObject"):
        assert found["spec"]["triggers"][0]["metadata"]["serverAddress"] == address


def test_servers_that_stand_alone_are_scaled_on_their_load_or_their_streams() -> None:
    by_streams = trigger("sonic-standalone", "standalone")
    assert by_streams["name"] == "active_streams"
    query = by_streams["metadata"]["query"]
    assert query.startswith("0.25 * sum(")
    assert "sonic_active_streams{" in query
    by_load = trigger("sonic-standalone", "standalone-load")
    assert by_load["name"] == "active_generations"
    assert "streams_in_progress{" in by_load["metadata"]["query"]
    # Generations a GPU.
    assert {t["metadata"]["threshold"] for t in (by_streams, by_load)} == {"2"}
    assert scaler("sonic-standalone", "standalone")["maxReplicaCount"] == 8
