"""Prometheus' own settings, and what it takes for a target."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.deployments import container, one
from tests.synth import ROOT


def settings() -> dict[str, Any]:
    text = one("default", "ConfigMap", "prometheus")["data"]["prometheus.yml"]
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def job() -> dict[str, Any]:
    (found,) = settings()["scrape_configs"]
    assert isinstance(found, dict)
    return found


def relabelled(meta: dict[str, str]) -> dict[str, str] | None:
    """Apply the job's relabelling as Prometheus does: anchored, keep, drop and replace."""
    labels = dict(meta)
    for step in job()["relabel_configs"]:
        value = ";".join(labels.get(name, "") for name in step["source_labels"])
        match = re.fullmatch(step.get("regex", "(.*)"), value)
        action = step.get("action", "replace")
        if (action == "keep" and not match) or (action == "drop" and match):
            return None
        if action == "replace" and value:
            labels[step["target_label"]] = value
    return {name: value for name, value in labels.items() if not name.startswith("__")}


def target(workload: str, port: str, **more: str) -> dict[str, str]:
    """The discovered labels of one container port of a rendered pod."""
    found = one("default", "StatefulSet" if workload == "nats" else "Deployment", workload)
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert port in [p["name"] for p in container(found)["ports"]]
    meta = {
        f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9_]', '_', key)}": value
        for key, value in labels.items()
    }
    return meta | {
        "__meta_kubernetes_namespace": "sonic",
        "__meta_kubernetes_pod_name": f"{workload}-x",
        "__meta_kubernetes_pod_node_name": "node-1",
        "__meta_kubernetes_pod_phase": "Running",
        "__meta_kubernetes_pod_container_port_name": port,
        **more,
    }


def test_a_worker_is_a_target_with_its_model() -> None:
    assert relabelled(target("sonic-worker-sonic-3", "metrics")) == {
        "namespace": "sonic",
        "pod": "sonic-worker-sonic-3-x",
        "node": "node-1",
        "component": "worker",
        "model": "sonic-3",
    }


@pytest.mark.parametrize("ready", ["true", "false"])
def test_a_pod_that_is_not_ready_stays_a_target(ready: str) -> None:
    meta = target("sonic-api", "metrics", __meta_kubernetes_pod_ready=ready)
    found = relabelled(meta)
    assert found is not None
    assert found["component"] == "api"
    assert "model" not in found


@pytest.mark.parametrize(
    ("workload", "port"),
    [
        ("sonic-api", "http"),
        ("nats", "client"),
        ("nats", "monitor"),
        ("sonic-license-proxy", "http"),
    ],
)
def test_no_other_port_is_scraped(workload: str, port: str) -> None:
    assert relabelled(target(workload, port)) is None


def test_pods_that_have_ended_or_are_not_ours_are_no_targets() -> None:
    for phase in ("Succeeded", "Failed"):
        assert relabelled(target("sonic-api", "metrics", __meta_kubernetes_pod_phase=phase)) is None
    foreign = target("sonic-api", "metrics")
    foreign["__meta_kubernetes_pod_label_app_kubernetes_io_part_of"] = "other"
    assert relabelled(foreign) is None


def test_discovery_reads_one_namespace_every_five_seconds() -> None:
    assert job()["kubernetes_sd_configs"] == [{"role": "pod", "namespaces": {"names": ["sonic"]}}]
    assert settings()["global"]["scrape_interval"] == "5s"
    binding = one("default", "RoleBinding", "prometheus")
    assert binding["metadata"]["namespace"] == "sonic"
    (subject,) = binding["subjects"]
    account = one("default", "ServiceAccount", subject["name"])
    assert account["metadata"]["namespace"] == subject["namespace"] == "monitoring"
    pod = one("default", "StatefulSet", "prometheus")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == subject["name"]


def test_a_target_without_a_known_content_type_is_read_all_the_same() -> None:
    # Prometheus 3.0 migration guide, scrape protocols.
    assert job()["fallback_scrape_protocol"] == "PrometheusText0.0.4"


def test_the_disk_outlasts_the_retention() -> None:
    server = one("default", "StatefulSet", "prometheus")["spec"]
    arguments = dict(a.split("=", 1) for a in container({"spec": server})["args"])
    (claim,) = server["volumeClaimTemplates"]
    size = int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi"))
    kept = int(arguments["--storage.tsdb.retention.size"].removesuffix("GB"))
    assert kept <= 0.8 * size
    (mount,) = [m for m in container({"spec": server})["volumeMounts"] if m["name"] == "data"]
    assert arguments["--storage.tsdb.path"] == mount["mountPath"]
    # A pod starts anew when its configuration changes: nothing else tells the server.
    assert server["template"]["metadata"]["annotations"]["sonic-eks/config-sha256"]


def test_promtool_accepts_the_settings(program: Callable[[str, str], str], tmp_path: Path) -> None:
    promtool = program("promtool", "prometheus")
    document = settings()
    # Debian's promtool does not know two keys: it is of Prometheus 2, which has no fallback, and
    # built without the discovery of Kubernetes. Other tests read those.
    del document["scrape_configs"][0]["fallback_scrape_protocol"]
    del document["scrape_configs"][0]["kubernetes_sd_configs"]
    document["scrape_configs"][0]["static_configs"] = [{"targets": ["127.0.0.1:8080"]}]
    path = tmp_path / "prometheus.yml"
    path.write_text(yaml.safe_dump(document))
    command = [promtool, "check", "config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document["scrape_configs"][0]["relabel_config"] = []
    path.write_text(yaml.safe_dump(document))
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_queries_are_written_in_one_module() -> None:
    written = re.compile(r"_over_time\(|\b(deriv|rate|increase|histogram_quantile)\(|\bsum by\b")
    folders = ("k8s", "constructs", "stacks", "sonic_eks")
    files = {path.resolve() for name in folders for path in (ROOT / name).rglob("*.py")}
    assert len(files) > 100
    found = {str(path.relative_to(ROOT)) for path in files if written.search(path.read_text())}
    assert found == {"k8s/queries.py"}
