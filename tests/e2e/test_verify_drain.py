"""verify-drain names every stand-in by what it does, on real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.verify_drain.experiment import Experiment, Settings
from sonic_eks.verify_drain.findings import Findings, OnSigterm, OverCapacity
from sonic_eks.verify_drain.subject import LocalProcess, Subject
from tests.standin.fleet import fleet
from tests.standin.pod import DrainNumbers
from tests.standin.process import ROOT
from tests.standin.serving import Served, served
from tests.standin.worker import ON_SIGTERM
from tests.tools import require_tool

pytestmark = pytest.mark.slow

# The stand-in's ways on SIGTERM (tests/standin/README.md), and what they are called.
WORKERS = {
    "drain": OnSigterm.DRAINS,
    "exit": OnSigterm.EXITS,
    "keep-taking": OnSigterm.KEEPS_TAKING,
    "ignore": OnSigterm.IGNORES,
}

QUICK = Settings(streams=2, stream_characters=700, watch_seconds=1.5, offer_seconds=0.8)
# On a clock that is so much faster, a text that lasts as long.
SETTINGS = replace(QUICK, max_concurrency=16, stream_characters=3500)
CLOCK = 8


def experiment(url: str, subject: Subject | None, settings: Settings = SETTINGS) -> Experiment:
    target = Target(url=url, key="standin", timeout_seconds=5.0)
    return Experiment(target, subject, settings, lambda text: None)


async def of_worker(folder: Path, on_sigterm: str) -> Findings:
    """Learn about a worker behind an API server and NATS."""
    folder.mkdir()
    async with fleet(folder, DrainNumbers(0, 1, 1)) as running:
        pace = ("--first-audio-ms", 250, "--realtime-factor", 0.2, "--capacity", 8)
        worker = await running.add_worker("--model", "sonic-3", "--on-sigterm", on_sigterm, *pace)
        api = await running.add_api("--silence-seconds", 10, gate=False)
        subject = LocalProcess(worker.main.pid)
        few = replace(QUICK, max_concurrency=4)
        return await experiment(f"http://127.0.0.1:{api.port}", subject, few).run()


def test_every_worker_is_named(tmp_path: Path) -> None:
    require_tool("nats-server")
    assert set(WORKERS) == set(ON_SIGTERM)

    async def scenario() -> list[Findings]:
        async with asyncio.timeout(120):
            return await asyncio.gather(*(of_worker(tmp_path / way, way) for way in WORKERS))

    found = asyncio.run(scenario())
    named = {
        way: one.sigterm.behaviour if one.sigterm else None
        for way, one in zip(WORKERS, found, strict=True)
    }
    assert named == WORKERS, [one.evidence() for one in found]
    drain = dict(
        zip(WORKERS, (yaml.safe_load(one.to_yaml())["drain"] for one in found), strict=True)
    )
    assert drain["drain"]["worker"] == "sigterm"
    assert drain["exit"]["worker"] == "wait-idle"


def of_server(service: Served, protocol: Protocol) -> Findings:
    made = experiment(service.url, LocalProcess(service.process.pid))
    made.target = replace(made.target, protocol=protocol)
    return asyncio.run(made.run())


@pytest.mark.parametrize(
    ("on_sigterm", "over_capacity", "protocol", "behaviour", "kind"),
    [
        ("exit", "reject", Protocol.SSE, OnSigterm.EXITS, OverCapacity.REJECTS),
        ("drain", "reject", Protocol.WEBSOCKET, OnSigterm.DRAINS, OverCapacity.REJECTS),
        ("ignore", "queue", Protocol.BYTES, OnSigterm.IGNORES, OverCapacity.QUEUES),
    ],
)
def test_servers_are_named(
    tmp_path: Path,
    on_sigterm: str,
    over_capacity: str,
    protocol: Protocol,
    behaviour: OnSigterm,
    kind: OverCapacity,
) -> None:
    options = ("--on-sigterm", on_sigterm, "--over-capacity", over_capacity, "--capacity", 4)
    with served(tmp_path, "--clock", CLOCK, *options) as service:
        found = of_server(service, protocol)
    assert found.sigterm is not None
    assert found.sigterm.behaviour is behaviour, found.evidence()
    assert found.capacity.kind is kind, found.evidence()
    assert found.capacity.asked == 8, "the first doubling over its four slots"
    assert found.capacity.together == 4


def test_without_something_to_end_it_learns_the_rest(tmp_path: Path) -> None:
    with served(tmp_path, "--clock", 20) as service:
        found = asyncio.run(experiment(service.url, None).run())
        assert service.process.poll() is None
    assert found.capacity.kind is OverCapacity.TAKES_ALL
    assert found.capacity.asked == 16
    assert found.sigterm is None
    assert yaml.safe_load(found.to_yaml()) == {"drain": {"idleSeconds": 2}}
    assert "SIGTERM was not tried" in found.to_yaml()


def test_the_file_is_written_also_when_nobody_reads(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    reading, writing = os.pipe()
    os.close(reading)
    with served(tmp_path, "--clock", 20) as service:
        command = [sys.executable, "-m", "sonic_eks.cli.main", "verify-drain", service.url]
        command += ["--max-concurrency", "2", "--out", str(out)]
        environment = {**os.environ, "CARTESIA_API_KEY": "standin"}
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False
        )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert yaml.safe_load(out.read_text()) == {"drain": {"idleSeconds": 2}}


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("reject", OverCapacity.REJECTS, "a generation failed before SIGTERM: rejected"),
        ("hang", OverCapacity.FAILS, "a generation failed before SIGTERM: timeout"),
        ("stall", OverCapacity.FAILS, "a generation failed before SIGTERM: timeout"),
        ("close", OverCapacity.FAILS, "a generation failed before SIGTERM: closed"),
    ],
)
def test_a_service_that_is_broken_teaches_nothing(
    tmp_path: Path, fault: str, kind: OverCapacity, said: str
) -> None:
    """What would be cut anyway tells nothing of SIGTERM, and nothing is ended for it."""
    with served(tmp_path, "--clock", CLOCK, "--fault", fault) as service:
        subject = LocalProcess(service.process.pid)
        impatient = experiment(service.url, subject)
        impatient.target = replace(impatient.target, timeout_seconds=1.0)
        found = asyncio.run(impatient.run())
        assert service.process.poll() is None
    assert found.capacity.kind is kind, found.evidence()
    assert said in found.unclear, found.evidence()
    assert "worker:" not in found.to_yaml().replace("# worker:", "")
