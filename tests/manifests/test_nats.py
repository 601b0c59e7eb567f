"""The NATS servers' settings, read by a real server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.manifests.deployments import container, one


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def local_settings(folder: Path) -> tuple[Path, Path, int]:
    """Write the rendered settings for this machine: free ports, no peers, another folder."""
    text = one("default", "ConfigMap", "nats")["data"]["nats.conf"]
    client = free_port()
    for old, new in (("4222", client), ("6222", free_port()), ("8222", free_port())):
        assert old in text
        text = text.replace(old, str(new))
    pid_file = folder / "nats.pid"
    assert "/var/run/nats/nats.pid" in text
    text = text.replace("/var/run/nats/nats.pid", str(pid_file))
    routes = [line for line in text.splitlines() if line.strip().startswith("nats://")]
    assert len(routes) == 3
    for line in routes:
        text = text.replace(line + "\n", "")
    path = folder / "nats.conf"
    path.write_text(text)
    return path, pid_file, client


def test_peers_are_the_pods_of_the_headless_service() -> None:
    text = one("default", "ConfigMap", "nats")["data"]["nats.conf"]
    servers = one("default", "StatefulSet", "nats")
    service = one("default", "Service", servers["spec"]["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    for index in range(servers["spec"]["replicas"]):
        host = f"nats-{index}.{service['metadata']['name']}.sonic.svc.cluster.local"
        assert f"nats://{host}:6222" in text
    (port,) = [p for p in container(servers)["ports"] if p["name"] == "cluster"]
    assert port["containerPort"] == 6222


def test_the_server_writes_only_where_it_may() -> None:
    found = container(one("default", "StatefulSet", "nats"))
    writable = [m["mountPath"] for m in found["volumeMounts"] if not m.get("readOnly")]
    assert writable == ["/var/run/nats"]
    assert found["args"] == ["--config", "/etc/nats/nats.conf"]
    hook = found["lifecycle"]["preStop"]["exec"]["command"]
    assert hook == ["nats-server", "--signal", "ldm=/var/run/nats/nats.pid"]


def test_a_server_accepts_the_settings(program: Callable[[str, str], str], tmp_path: Path) -> None:
    server = program("nats-server", "nats-server")
    path, _, _ = local_settings(tmp_path)
    command = [server, "-t", "--config", str(path)]
    environment = os.environ | {"POD_NAME": "nats-0"}
    good = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert good.returncode == 0, good.stderr
    # The shortest duration that the server takes is 30 s.
    path.write_text(
        path.read_text().replace('lame_duck_duration: "30s"', 'lame_duck_duration: "29s"')
    )
    bad = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert bad.returncode != 0
    assert "lame_duck_duration" in bad.stderr


@pytest.mark.slow
def test_a_server_that_leaves_keeps_its_clients_through_sigterm(
    program: Callable[[str, str], str], tmp_path: Path
) -> None:
    server = program("nats-server", "nats-server")
    path, pid_file, port = local_settings(tmp_path)
    process = subprocess.Popen(
        [server, "--config", str(path)],
        env=os.environ | {"POD_NAME": "nats-0"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        client = _connect(port)
        assert pid_file.read_text().strip() == str(process.pid)
        # The preStop hook, then what the kubelet sends when the hook has ended.
        *hook, _ = container(one("default", "StatefulSet", "nats"))["lifecycle"]["preStop"]["exec"][
            "command"
        ]
        subprocess.run([server, *hook[1:], f"ldm={pid_file}"], check=True, timeout=20)
        client.settimeout(5)
        assert b'"ldm":true' in client.recv(4096), "clients are told to go elsewhere"
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert process.poll() is None
        client.sendall(b"PING\r\n")
        assert b"PONG" in client.recv(4096)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=2)
        client.close()
    finally:
        process.kill()
        process.communicate(timeout=20)


def _connect(port: int) -> socket.socket:
    deadline = time.monotonic() + 20
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=5)
            break
        except OSError:
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)
    client.recv(4096)  # INFO
    client.sendall(b'CONNECT {"verbose":false,"protocol":1}\r\nPING\r\n')
    assert b"PONG" in client.recv(4096)
    return client
