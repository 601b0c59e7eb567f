"""The shipped query in a real Prometheus, against the signal that the simulation scales on.

What the simulation's workers and its API would have said at every scrape is imported with its true
timestamps (promtool, create-blocks-from openmetrics), and the query is evaluated when the
autoscaler would have asked.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import traces
from benchmarks.comparison import Task, run, slots_of
from sonic_eks.capacity.policy import worker_policy
from sonic_eks.config import Configuration
from sonic_eks.simulation.run import Scaler, Watcher
from tests.configuration import with_values
from tests.standin.process import free_ports
from tests.synth import charts_of
from tests.tools import require_tool

pytestmark = pytest.mark.slow

# A multiple of the steps that subqueries take, long ago; retention is set to reach it.
EPOCH = 1_790_000_010.0

# The rise from 20 to 300 within ten minutes, what comes of it, and the removal of some of that.
TRACE = "opening"
BEGIN, END = 0.6 * traces.HOUR, 1.6 * traces.HOUR

# What the slope's line needs before.
LEAD = 300.0

CONFIGURATION = with_values(
    ("scaling.generationsPerGpu", slots_of(traces.REPORTED)),
    ("models", [{"minReplicas": 2, "maxReplicas": 200}]),
    ("nodes.gpu.maxNodes", 202),
)


class Exposition(Watcher):
    """What Prometheus would have scraped, by series, and what was decided on it.

    A target that is gone leaves a marker in Prometheus, which a text of samples cannot hold: what
    was removed stays here, draining, with what it has left and then with nothing.
    """

    def __init__(self) -> None:
        self._workers: set[int] = set()
        self.samples: dict[str, list[tuple[float, int]]] = {}
        self.signals: list[tuple[float, float]] = []

    def scraped(
        self, now: float, loads: Mapping[int, int], leaving: Mapping[int, int], waiting: int
    ) -> None:
        if not BEGIN - LEAD <= now <= END:
            return
        self._workers.update(loads)
        for number in self._workers:
            load = loads.get(number, leaving.get(number, 0))
            where = f'component="worker",model="sonic-3",pod="sonic-worker-{number}"'
            server, gate = (self._target(where, f"{number}:{port}") for port in (8080, 8090))
            self._add(now, {f"up{server}": 1, f"inferno_worker_load{server}": load})
            self._add(now, {f"up{gate}": 1, f"sonic_draining{gate}": number not in loads})
        api = self._target('component="api",pod="sonic-api-0"', "api:8080")
        self._add(now, {f"up{api}": 1, f"api_queue_size{api}": waiting})

    @staticmethod
    def _target(where: str, instance: str) -> str:
        return f'{{namespace="sonic",{where},instance="{instance}"}}'

    def _add(self, now: float, values: Mapping[str, int]) -> None:
        for series, value in values.items():
            self.samples.setdefault(series, []).append((now, value))

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        if BEGIN <= now <= END:
            self.signals.append((now, signal))

    def openmetrics(self) -> str:
        """Return the samples as a text in which each metric's stand together."""
        lines, metric = [], ""
        for series in sorted(self.samples):
            if (name := series.partition("{")[0]) != metric:
                lines.append(f"# TYPE {name} gauge")
                metric = name
            lines += [f"{series} {value:d} {EPOCH + now}" for now, value in self.samples[series]]
        return "\n".join([*lines, "# EOF\n"])


@contextmanager
def prometheus(data: Path, folder: Path) -> Iterator[str]:
    """Run Prometheus on stored data; give its address."""
    config = folder / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    command = [
        *(require_tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={data}"),
        *("--storage.tsdb.retention.time=100y", f"--web.listen-address={address}"),
    ]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _ready(f"http://{address}/-/ready", folder / "log", running)
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait(20)


def _ready(url: str, log: Path, running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)


def evaluated(address: str, query: str, times: list[float]) -> list[float]:
    """Return the values of a query at evenly spaced times."""
    step = times[1] - times[0]
    form = {"query": query, "start": EPOCH + times[0], "end": EPOCH + times[-1], "step": step}
    request = urllib.request.Request(
        f"{address}/api/v1/query_range", urllib.parse.urlencode(form).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        (found,) = json.load(answer)["data"]["result"]
    assert [float(at) for at, _ in found["values"]] == [EPOCH + now for now in times]
    return [float(value) for _, value in found["values"]]


def shipped_query(config: Configuration) -> str:
    """Return the query of the workers' scaler as it is rendered."""
    scalers: list[dict[str, Any]] = [
        manifest
        for chart in charts_of(config)
        for manifest in chart.manifests
        if manifest["kind"] == "ScaledObject"
        and manifest["metadata"]["name"] == "sonic-worker-sonic-3"
    ]
    (scaler,) = scalers
    return str(scaler["spec"]["triggers"][0]["metadata"]["query"])


def test_the_shipped_query_says_what_the_simulation_scales_on(tmp_path: Path) -> None:
    promtool = require_tool("promtool", "prometheus")
    config = Configuration.model_validate(CONFIGURATION)
    policy = worker_policy(config, config.models[0])
    exposition = Exposition()
    task = Task(traces.REPORTED, "ours", TRACE, traces.REPORTED_SEEDS[0])
    run(task, exposition, Scaler(policy=policy))

    text, data = tmp_path / "exposition", tmp_path / "data"
    text.write_text(exposition.openmetrics())
    imported = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr
    times, signals = (list(column) for column in zip(*exposition.signals, strict=True))
    with prometheus(data, tmp_path) as address:
        values = evaluated(address, shipped_query(config), times)

    assert len(times) == 240
    # The rise is in it, and what lies ahead of it is, too.
    assert max(signals) > 400
    assert min(signals) < 80
    # Workers were removed, too.
    assert any(
        value
        for name, samples in exposition.samples.items()
        for _, value in samples
        if name.startswith("sonic_draining")
    )
    apart = np.abs(np.array(values) - np.array(signals))
    # What is claimed is a worker's worth at 95 % of them.
    assert np.mean(apart <= policy.threshold) >= 0.95, f"up to {apart.max():.1f} apart"
    assert apart.max() < 1e-6
