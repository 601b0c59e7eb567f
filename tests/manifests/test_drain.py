"""How long a pod that goes keeps serving."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.manifests.deployments import configuration, container, kinds, one
from tests.synth import charts_of


def grace_of(deployment: str, kind: str, name: str) -> int:
    pod = one(deployment, kind, name)["spec"]["template"]["spec"]
    return int(pod["terminationGracePeriodSeconds"])


def gate_of(workload: dict[str, Any]) -> dict[str, Any]:
    (gate,) = workload["spec"]["template"]["spec"]["initContainers"]
    assert isinstance(gate, dict)
    return gate


def gate_arguments(workload: dict[str, Any]) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in gate_of(workload)["args"])


def workers_of(deployment: str) -> list[dict[str, Any]]:
    return [
        w
        for w in kinds(deployment, "Deployment")
        if w["metadata"]["name"].startswith("sonic-worker-")
    ]


@pytest.mark.parametrize(
    # propagation + longest stream (the hook), and the margin on top (the grace)
    ("deployment", "shortest", "longest", "grace"),
    [
        ("default", "120", "720", 120 + 600 + 60),
        ("short-streams", "150", "150", 150 + 0 + 30),
    ],
)
def test_api_pods_serve_on_until_the_gate_lets_go(
    deployment: str, shortest: str, longest: str, grace: int
) -> None:
    api = one(deployment, "Deployment", "sonic-api")
    # A name would be a port of the server's own container, which has none of the gate's.
    assert container(api)["lifecycle"] == {"preStop": {"httpGet": {"path": "/drain", "port": 8090}}}
    assert gate_arguments(api) == {
        "--port": "8090",
        "--watch-port": "5000",
        "--propagation-seconds": shortest,
        "--budget-seconds": longest,
        "--idle-seconds": "2",
    }
    assert grace_of(deployment, "Deployment", "sonic-api") == grace
    # Longer than a pod that waits for the drain of another, and its own start.
    assert api["spec"]["progressDeadlineSeconds"] > grace + 300


@pytest.mark.parametrize(("deployment", "grace"), [("default", 780), ("short-streams", 180)])
def test_workers_get_sigterm_at_once_and_the_whole_grace(deployment: str, grace: int) -> None:
    for worker in workers_of(deployment):
        # The gate answers this at once, and tells those who scale.
        assert container(worker)["lifecycle"] == {
            "preStop": {"httpGet": {"path": "/begin-drain", "port": 8090}}
        }
        assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == grace


def test_workers_that_wait_get_sigterm_when_they_are_idle() -> None:
    (worker,) = workers_of("wait-idle")
    assert container(worker)["lifecycle"] == {
        "preStop": {"httpGet": {"path": "/drain", "port": 8090}}
    }
    assert gate_arguments(worker)["--idle-seconds"] == "5"


@pytest.mark.parametrize("deployment", ["default", "two-models", "wait-idle"])
def test_the_gate_of_a_worker_reads_its_load(deployment: str) -> None:
    for worker in workers_of(deployment):
        arguments = gate_arguments(worker)
        assert arguments["--load-url"] == "http://127.0.0.1:8080/metrics"
        assert "--watch-port" not in arguments
        # No load balancer sends it anything.
        assert arguments["--propagation-seconds"] == "0"
        assert 8080 in {port["containerPort"] for port in container(worker)["ports"]}


def test_the_gate_is_a_sidecar_that_is_ended_last(deployment: str) -> None:
    gated = [w for w in kinds(deployment, "Deployment") if w["metadata"]["name"] in _GATED]
    assert gated
    for workload in [*gated, *workers_of(deployment)]:
        gate = gate_of(workload)
        assert gate["restartPolicy"] == "Always"
        assert "lifecycle" not in gate
        assert gate["ports"] == [{"name": "gate", "containerPort": 8090}]
        probes = {name: gate[f"{name}Probe"]["httpGet"]["path"] for name in _PATHS}
        assert probes == _PATHS
        security = gate["securityContext"]
        assert (security["runAsUser"], security["runAsNonRoot"]) == (65534, True)
        assert "cpu" not in gate["resources"]["limits"]


_GATED = {"sonic-api", "sonic-standalone"}
_PATHS = {"startup": "/live", "readiness": "/ready", "liveness": "/live"}


@pytest.mark.slow
def test_pods_follow_the_code_of_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that is not replaced would go on with the code that it has loaded."""

    def annotation() -> str:
        rendered = charts_of(configuration("default"))
        (api,) = next(c for c in rendered if c.name == "api").manifests[:1]
        found = api["spec"]["template"]["metadata"]["annotations"]["sonic-eks/stream-gate-sha256"]
        return str(found)

    before = annotation()
    assert annotation() == before
    monkeypatch.setattr("sonic_eks.k8s.sidecars.sidecar_code", lambda _: {"a.py": "pass"})
    assert annotation() != before


def test_a_rollout_of_workers_may_take_a_drain_a_node_and_a_load() -> None:
    slow = one("two-models", "Deployment", "sonic-worker-sonic-2")
    assert slow["spec"]["progressDeadlineSeconds"] >= 780 + 901 + 300


def test_nats_servers_leave_within_their_grace() -> None:
    settings = one("default", "ConfigMap", "nats")["data"]["nats.conf"]
    assert 'lame_duck_grace_period: "10s"' in settings
    assert 'lame_duck_duration: "30s"' in settings
    assert grace_of("default", "StatefulSet", "nats") >= 10 + 30 + 10


def test_a_server_that_stands_alone_is_watched_by_sockets_or_by_its_load() -> None:
    plain = gate_arguments(one("standalone", "Deployment", "sonic-standalone"))
    assert plain == {
        "--port": "8090",
        "--watch-port": "5000",
        "--propagation-seconds": "120",
        "--budget-seconds": "720",
        "--idle-seconds": "2",
    }
    loaded = gate_arguments(one("standalone-load", "Deployment", "sonic-standalone"))
    assert loaded["--watch-port"] == "9000"
    assert loaded["--load-url"] == "http://127.0.0.1:9090/metrics"
    assert loaded["--load-metric"] == "streams_in_progress"
    assert loaded["--warm-up-url"] == "http://127.0.0.1:9000/speak"
    assert loaded["--warm-up-body"] == '{"text": "Hi"}'
    assert loaded["--warm-up-requests"] == "5"
    assert loaded["--warm-up-key-file"] == "/mnt/secrets/key"
    gate = gate_of(one("standalone-load", "Deployment", "sonic-standalone"))
    assert "/mnt/secrets" in {m["mountPath"] for m in gate["volumeMounts"]}
    # Elsewhere the gate sees no secret.
    plain = gate_of(one("standalone", "Deployment", "sonic-standalone"))
    assert [m["mountPath"] for m in plain["volumeMounts"]] == ["/opt/sonic/sidecar/stream_gate"]


def test_a_warm_up_reaches_the_gate_as_it_was_written() -> None:
    """Kubernetes expands $(NAME) and reduces $$ to $ in arguments."""
    arguments = gate_arguments(one("smoke-warm", "Deployment", "sonic-standalone"))
    given = configuration("smoke-warm").standalone.warm_up.body
    assert "$(A)" not in re.sub(r"\$\$", "", arguments["--warm-up-body"])
    assert arguments["--warm-up-body"].replace("$$", "$") == given
