"""How long a pod that goes keeps serving."""

from __future__ import annotations

import pytest

from tests.manifests.deployments import container, kinds, one


def grace_of(deployment: str, kind: str, name: str) -> int:
    pod = one(deployment, kind, name)["spec"]["template"]["spec"]
    return int(pod["terminationGracePeriodSeconds"])


@pytest.mark.parametrize(
    # propagation + longest stream (the hook), and the margin on top (the grace)
    ("deployment", "hook", "grace"),
    [("default", 120 + 600, 120 + 600 + 60), ("short-streams", 150 + 0, 150 + 0 + 30)],
)
def test_api_pods_serve_on_for_the_budget(deployment: str, hook: int, grace: int) -> None:
    api = one(deployment, "Deployment", "sonic-api")
    assert container(api)["lifecycle"] == {"preStop": {"sleep": {"seconds": hook}}}
    assert grace_of(deployment, "Deployment", "sonic-api") == grace
    # Longer than a pod that waits for the drain of another, and its own start.
    assert api["spec"]["progressDeadlineSeconds"] > grace + 300


@pytest.mark.parametrize(("deployment", "grace"), [("default", 780), ("short-streams", 180)])
def test_workers_get_sigterm_at_once_and_the_whole_grace(deployment: str, grace: int) -> None:
    for worker in kinds(deployment, "Deployment"):
        if worker["metadata"]["name"].startswith("sonic-worker-"):
            assert "lifecycle" not in container(worker)
            assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == grace


def test_a_rollout_of_workers_may_take_a_drain_a_node_and_a_load() -> None:
    slow = one("two-models", "Deployment", "sonic-worker-sonic-2")
    assert slow["spec"]["progressDeadlineSeconds"] >= 780 + 901 + 300


def test_nats_servers_leave_within_their_grace() -> None:
    settings = one("default", "ConfigMap", "nats")["data"]["nats.conf"]
    assert 'lame_duck_grace_period: "10s"' in settings
    assert 'lame_duck_duration: "30s"' in settings
    assert grace_of("default", "StatefulSet", "nats") >= 10 + 30 + 10
