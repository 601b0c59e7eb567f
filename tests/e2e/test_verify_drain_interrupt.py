"""Ctrl-C while verify-drain runs: it ends at once, ends nothing and writes nothing."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.standin.kubectl import Standin, installed, runs
from tests.standin.process import ROOT, require_linux
from tests.standin.serving import Served, served

pytestmark = pytest.mark.slow

# One to see whether it is the service, then 2 and 4 at a time, then long ones and some beside.
BURST_OF_2, BURST_OF_4, LONG, BESIDE = 1, 3, 7, 9
OPTIONS = ("--yes", "--characters", "9000", "--streams", "2", "--max-concurrency", "4")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    require_linux()
    monkeypatch.setenv("CARTESIA_API_KEY", "sk-of-a-test")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, "--clock", 8, "--on-sigterm", "exit") as one:
        yield one


def made(service: Served, count: int) -> Callable[[], bool]:
    """Whether it has made so many generations."""
    return lambda: service.log.exists() and service.log.read_text().count("\n") >= count


def interrupt(arguments: tuple[str, ...], moment: Callable[[], bool], out: Path) -> None:
    """Run it, press Ctrl-C at a moment, and see that it takes that for the end."""
    command = [sys.executable, "-m", "sonic_eks.cli.main", "verify-drain", *arguments, *OPTIONS]
    command += ["--out", str(out)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            end = time.monotonic() + 60
            while not moment():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            given, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, given) == (130, b""), said
    assert said == b"sonic-eks: interrupted\n"
    assert not out.exists()


@pytest.mark.parametrize("count", [BURST_OF_2, BURST_OF_4, LONG, BESIDE])
def test_a_process_is_not_ended_after_ctrl_c(tmp_path: Path, service: Served, count: int) -> None:
    pid = str(service.process.pid)
    interrupt((service.url, "--pid", pid), made(service, count), tmp_path / "out.yaml")
    with contextlib.suppress(subprocess.TimeoutExpired):
        raise AssertionError(f"it ended: {service.process.wait(1.0)}")


@pytest.mark.parametrize("count", [BURST_OF_2, BURST_OF_4])
def test_a_pod_is_not_deleted_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Served, count: int
) -> None:
    standin = Standin(str(tmp_path / "bin"), service.process.pid, service.port)
    installed(standin, monkeypatch)
    interrupt(("--pod", "worker-1"), made(service, count), tmp_path / "out.yaml")
    assert {call[0] for call in standin.asked} == {"get", "port-forward"}
    assert not any(runs(pid) for pid in standin.pids)
    assert runs(service.process.pid)


@pytest.mark.parametrize("silent", [False, True])
def test_a_pod_that_was_marked_gets_its_grace_period_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Served, silent: bool
) -> None:
    """And one whose deletion was still on its way is not deleted for that."""
    standin = Standin(
        *(str(tmp_path / "bin"), service.process.pid, service.port),
        silent=["delete"] if silent else [],
    )
    installed(standin, monkeypatch)

    def moment() -> bool:
        asked = Path(standin.folder, "asked").exists() and standin.asked
        return bool(asked) and asked[-1][0] == "delete" if silent else standin.marked

    interrupt(("--pod", "worker-1"), moment, tmp_path / "out.yaml")
    assert not any(runs(pid) for pid in standin.pids), "they are no part of the terminal's group"
    assert runs(service.process.pid), "it was not sent SIGTERM yet"
    deletions = [call for call in standin.asked if call[0] == "delete"]
    assert len(deletions) == (1 if silent else 2)
    assert ("--grace-period=30" in deletions[-1]) != silent
