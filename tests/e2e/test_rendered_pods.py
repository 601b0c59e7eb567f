"""The sidecars as rendered: their ConfigMaps, commands, ports, probes and hooks, on real processes.

Each pod runs in a network namespace of its own, so that its ports are those of the manifest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.deployments import configuration, manifests, one
from tests.standin.process import ROOT, require_linux
from tests.tools import require_tool

pytestmark = pytest.mark.slow


def mounted(deployment: str, pod: dict[str, Any], container: dict[str, Any], root: Path) -> Path:
    """Lay a container's ConfigMaps out below `root`; return its working folder there."""
    volumes = {v["name"]: v for v in pod["volumes"]}
    for mount in container["volumeMounts"]:
        source = volumes[mount["name"]].get("configMap")
        if source is None:
            continue
        folder = root / mount["mountPath"].lstrip("/")
        folder.mkdir(parents=True)
        for name, text in one(deployment, "ConfigMap", source["name"])["data"].items():
            (folder / name).write_text(text)
    return root / container["workingDir"].lstrip("/")


def as_run(container: dict[str, Any], folder: Path) -> dict[str, Any]:
    program, *rest = [*container["command"], *container["args"]]
    assert program == "python3"
    # Kubernetes reduces $$ to $ ("Define a Command and Arguments for a Container").
    return {
        "command": [sys.executable, "-S", *(word.replace("$$", "$") for word in rest)],
        "folder": str(folder),
    }


STAND_IN = {
    "command": [sys.executable, "-m", "sidecar.stand_in", "--port=5000", "--metrics-port=8080"],
    "folder": str(ROOT),
}


@pytest.mark.parametrize(
    ("deployment", "workload", "metrics", "warms_up"),
    [
        ("default", "sonic-api", ["sonic_active_streams"], False),
        ("default", "sonic-worker-sonic-3", ["sonic_load"], False),
        ("wait-idle", "sonic-worker-sonic-3", ["sonic_load"], False),
        ("smoke-warm", "sonic-standalone", ["sonic_active_streams", "sonic_load"], True),
    ],
)
def test_a_rendered_pod_serves_and_drains(
    tmp_path: Path, deployment: str, workload: str, metrics: list[str], warms_up: bool
) -> None:
    require_linux()
    alone = [require_tool("unshare", "util-linux"), "--map-root-user", "--net"]
    pod = one(deployment, "Deployment", workload)["spec"]["template"]["spec"]
    (gate,), (main,) = pod["initContainers"], pod["containers"]
    server = STAND_IN
    if configuration(deployment).standalone.stand_in:
        server = as_run(main, mounted(deployment, pod, main, tmp_path / "server"))
    spec = {
        "gate": as_run(gate, mounted(deployment, pod, gate, tmp_path / "gate")),
        "server": server,
        "service": 5000,
        "gate_port": gate["ports"][0]["containerPort"],
        "paths": {
            name: gate[f"{name}Probe"]["httpGet"]["path"]
            for name in ("startup", "readiness", "liveness")
        },
        "hook": main["lifecycle"]["preStop"]["httpGet"],
        "metrics": metrics,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.e2e.pod_runner", str(tmp_path / "spec.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    values = seen.pop("values")
    assert set(values.values()) == {1.0}
    assert seen == {
        "ready without a server": not warms_up,
        # A worker gets SIGTERM at once, and its gate knows of it.
        "hook is held": (deployment, workload) != ("default", "sonic-worker-sonic-3"),
        "served while it drains": True,
        "alive while it drains": True,
        "gate ends with": 0,
    }


def test_every_config_map_of_code_is_mounted() -> None:
    for deployment in ("default", "smoke-warm"):
        code = {
            m["metadata"]["name"]
            for m in manifests(deployment)
            if m["kind"] == "ConfigMap" and "__main__.py" in m["data"]
        }
        mounted_here = {
            v["configMap"]["name"]
            for m in manifests(deployment)
            if m["kind"] == "Deployment"
            for v in m["spec"]["template"]["spec"].get("volumes", [])
            if "configMap" in v
        }
        assert code == code & mounted_here != set()
