"""The workers' startup probe, run as the kubelet runs it, against a metrics endpoint."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from tests.manifests.deployments import container, one

LOADED = """\
# HELP inferno_worker_capacity Generations it can process.
# TYPE inferno_worker_capacity gauge
inferno_worker_capacity{offering="sonic 3",gpu="0"} 2
inferno_worker_load{offering="sonic 3",gpu="0"} 0
"""


def probe_command(port: int) -> list[str]:
    """The rendered command; only the port is another, as 8080 may be taken on this machine."""
    found = container(one("default", "Deployment", "sonic-worker-sonic-3"))
    *shell, script = found["startupProbe"]["exec"]["command"]
    (metrics,) = [p["containerPort"] for p in found["ports"] if p["name"] == "metrics"]
    assert script.count(str(metrics)) == 1
    return [*shell, script.replace(str(metrics), str(port))]


def probe(port: int) -> bool:
    # No PATH: the image need not have any program beside the shell.
    done = subprocess.run(
        probe_command(port), env={"PATH": ""}, capture_output=True, timeout=10, check=False
    )
    return done.returncode == 0


@contextmanager
def metrics_endpoint(body: str, status: int = 200) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        seen: ClassVar[list[str]] = []

        def do_GET(self) -> None:
            self.send_response(status if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(body.encode() if self.path == "/metrics" else b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        LOADED,
        "inferno_worker_capacity 16\n",
        "inferno_worker_capacity 0.5",
        "inferno_worker_capacity 1e+01 1730000000000\n",
        "inferno_worker_capacity 08\n",
        "other 1\n" * 2000 + LOADED,
    ],
    ids=["labels", "bare", "no-newline", "exponent-and-time", "zero-padded", "long"],
)
def test_a_loaded_model_has_started(body: str) -> None:
    with metrics_endpoint(body) as port:
        assert probe(port)


@pytest.mark.parametrize(
    "body",
    [
        "",
        LOADED.replace("} 2", "} 0"),
        "inferno_worker_capacity 0.000\n",
        "inferno_worker_capacity 0e9\n",
        "inferno_worker_capacity NaN\n",
        "inferno_worker_capacity -1\n",
        "inferno_worker_capacity_total 4\n",
        "# inferno_worker_capacity 4\n",
        'other{note="inferno_worker_capacity 4"} 1\n',
    ],
    ids=["empty", "zero", "zeros", "zero-exp", "nan", "negative", "other", "comment", "label"],
)
def test_a_loading_model_has_not_started(body: str) -> None:
    with metrics_endpoint(body) as port:
        assert not probe(port)


def test_a_worker_that_does_not_listen_has_not_started() -> None:
    with metrics_endpoint("") as port:
        pass
    assert not probe(port)
