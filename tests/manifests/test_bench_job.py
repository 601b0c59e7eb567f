"""The load test's Job: valid, harmless, small, and its code runs on a Python that has nothing."""

from __future__ import annotations

import base64
import io
import ipaddress
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from sonic_eks.bench.archive import archive
from sonic_eks.bench.measure import Plan
from sonic_eks.bench.plan import Arrivals, Load, Protocol, Slo, Target
from sonic_eks.catalogue import Catalogue
from sonic_eks.config import load_configuration
from sonic_eks.errors import SonicEksError
from sonic_eks.k8s.bench_job import render_bench_job
from tests.manifests.rules_of_pods import PRIVATE_IMAGE
from tests.standin.serving import served
from tests.synth import ROOT

PLAN = Plan(
    target=Target(
        url="http://sonic.voice.internal:5000",
        key="sk-very-secret",
        protocol=Protocol.SSE,
        contexts_per_socket=3,
    ),
    load=Load(arrivals=Arrivals.POISSON, rate=2.5, generations=7),
    slo=Slo(ttfb_ms=80),
    processes=2,
    max_processes=2,
)


@pytest.fixture(scope="module")
def rendered() -> dict[str, dict[str, Any]]:
    config = load_configuration(ROOT / "config" / "default.yaml")
    manifests = render_bench_job(config, Catalogue(config), PLAN)
    assert [m["kind"] for m in manifests] == ["Namespace", "ConfigMap", "NetworkPolicy", "Job"]
    return {m["kind"]: m for m in manifests}


def test_without_serving_nodes_it_runs_on_the_system_nodes() -> None:
    config = load_configuration(ROOT / "config" / "standalone.yaml")
    *_, job = render_bench_job(config, Catalogue(config), PLAN)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"sonic-eks/pool": "system"}
    assert "tolerations" not in pod


@pytest.mark.parametrize(
    ("file", "cidrs", "said"),
    [
        ("default.yaml", [], ""),
        # the serving subnet in one piece, in a larger one, and in two that touch
        ("default.yaml", ["{serving}"], ""),
        ("default.yaml", ["10.0.0.0/8"], ""),
        ("default.yaml", ["{serving:0}", "{serving:1}"], ""),
        ("default.yaml", ["{serving:0}"], "add {serving} to it"),
        ("default.yaml", ["192.168.7.0/24"], "add {serving} to it"),
        # there the Job runs on the system nodes
        ("standalone.yaml", ["{serving}"], "add {system} to it"),
    ],
)
def test_nodes_that_the_load_balancer_does_not_admit_are_refused(
    file: str, cidrs: list[str], said: str
) -> None:
    config = load_configuration(ROOT / "config" / file)
    serving = ipaddress.IPv4Network(config.network.serving_cidr)
    halves = [str(half) for half in serving.subnets()]

    def filled(text: str) -> str:
        text = text.replace("{serving:0}", halves[0]).replace("{serving:1}", halves[1])
        return text.format(serving=serving, system=config.network.system_cidrs[0])

    edge = config.edge.model_copy(update={"client_cidrs": tuple(map(filled, cidrs))})
    config = config.model_copy(update={"edge": edge})
    if not said:
        assert render_bench_job(config, Catalogue(config), PLAN)
        return
    with pytest.raises(SonicEksError) as refused:
        render_bench_job(config, Catalogue(config), PLAN)
    assert filled(said) in str(refused.value)


def test_every_object_is_valid(rendered: dict[str, dict[str, Any]]) -> None:
    for manifest in rendered.values():
        kubernetes_validate.validate(manifest, "1.35", strict=True)


def test_the_pod_is_restricted_and_placed(rendered: dict[str, dict[str, Any]]) -> None:
    spec = rendered["Job"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert PRIVATE_IMAGE.match(container["image"])
    assert "/images/python:" in container["image"]
    assert pod["nodeSelector"] == {"sonic-eks/pool": "serving"}
    assert [t["value"] for t in pod["tolerations"]] == ["serving"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["restartPolicy"] == "Never"
    assert spec["backoffLimit"] == 0
    # Pod Security Standards, restricted
    security = container["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "cpu" not in container["resources"]["limits"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}
    labels = rendered["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_it_reaches_names_and_the_listener_alone(rendered: dict[str, dict[str, Any]]) -> None:
    policy = rendered["NetworkPolicy"]["spec"]
    labels = rendered["Job"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    dns, listener = policy["egress"]
    assert {(p["port"], p["protocol"]) for p in dns["ports"]} == {(53, "UDP"), (53, "TCP")}
    # docs/networking.md, "Address plan": the serving subnet of 10.42.0.0/16
    assert listener["to"] == [{"ipBlock": {"cidr": "10.42.32.0/19"}}]
    assert listener["ports"] == [{"port": 5000, "protocol": "TCP"}]


def test_the_key_comes_from_a_secret_and_is_nowhere_else(
    rendered: dict[str, dict[str, Any]],
) -> None:
    (container,) = rendered["Job"]["spec"]["template"]["spec"]["containers"]
    assert "sk-very-secret" not in json.dumps(rendered)
    reference = {"secretKeyRef": {"name": "sonic-bench-key", "key": "key"}}
    assert {"name": "CARTESIA_API_KEY", "valueFrom": reference} in container["env"]


def test_the_plan_is_whole(rendered: dict[str, dict[str, Any]]) -> None:
    data = json.loads(rendered["ConfigMap"]["data"]["plan.json"])
    assert Plan.from_dict(data, "sk-very-secret") == PLAN


def test_the_code_is_small_and_always_the_same(rendered: dict[str, dict[str, Any]]) -> None:
    # Kubernetes: an annotation holds 256 KiB at most, and `kubectl apply` keeps the object in one.
    assert len(json.dumps(rendered["ConfigMap"])) < 250_000
    assert (
        archive() == archive() == base64.b64decode(rendered["ConfigMap"]["binaryData"]["code.zip"])
    )
    names = zipfile.ZipFile(io.BytesIO(archive())).namelist()
    assert len(names) == len(set(names))
    assert all(name.endswith(".py") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["websocket", "sse"])
def test_the_code_runs_on_a_plain_python(tmp_path: Path, protocol: str) -> None:
    """As in the pod: no installed package, the archive and the plan in a folder."""
    (tmp_path / "code.zip").write_bytes(archive())
    with served(tmp_path, "--clock", 20) as service:
        plan = Plan(
            target=Target(url=service.url, key="", protocol=Protocol(protocol)),
            load=Load(generations=5),
        )
        (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
        environment = {
            "PYTHONPATH": str(tmp_path / "code.zip"),
            "CARTESIA_API_KEY": "standin",
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            [sys.executable, "-S", "-B", "-m", "sonic_eks.bench", str(tmp_path / "plan.json")],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["runs"][-1]["generations"] == 5
    assert result["runs"][-1]["failures"] == {}
    assert done.returncode == (1 if result["problems"] else 0)
