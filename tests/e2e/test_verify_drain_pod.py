"""verify-drain on a pod, by a kubectl that stands for the real one and does what that does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.bench.plan import Target
from sonic_eks.cli import main as cli
from sonic_eks.errors import SonicEksError
from sonic_eks.verify_drain import kubectl as kubectl_module
from sonic_eks.verify_drain.experiment import Experiment, Settings
from sonic_eks.verify_drain.findings import Findings, OnSigterm, OverCapacity
from sonic_eks.verify_drain.kubectl import Kubectl
from sonic_eks.verify_drain.pod import Pod
from sonic_eks.verify_drain.way import PortForwards
from tests.standin.kubectl import Standin, installed, runs
from tests.standin.process import require_linux
from tests.standin.serving import Served, served

pytestmark = pytest.mark.slow

KEY = "sk-of-a-pod"
KUBECTL = Kubectl("sonic", KEY)
CLOCK = 8
QUICK = Settings(
    streams=2,
    stream_characters=5000,
    watch_seconds=1.5,
    offer_seconds=0.8,
    max_concurrency=4,
    pre_stop_seconds=0.5,
)


@pytest.fixture(autouse=True)
def linux() -> None:
    require_linux()


@contextlib.contextmanager
def pod_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *options: object, **standin: Any
) -> Iterator[tuple[Served, Standin]]:
    """A server, and a kubectl for which it is a pod."""
    with served(folder, "--clock", CLOCK, *options) as service:
        pid = service.process.pid
        made = Standin(str(folder / "bin"), pid, service.port, **standin)
        yield service, installed(made, monkeypatch)


def learn(url: str | None = None, settings: Settings = QUICK) -> Findings:
    """Learn about the pod, by port-forwards unless there is an URL."""
    way = PortForwards(KUBECTL, "worker-1", 5000) if url is None else None
    target = Target(url=url or "http://worker-1:5000", key=KEY, timeout_seconds=5.0)
    subject = Pod("worker-1", KUBECTL)
    # What is a matter of a cluster's delays would be one of seconds here.
    subject.late_seconds = 1.0
    return asyncio.run(Experiment(target, subject, settings, lambda text: None, way).run())


def verbs(standin: Standin) -> list[str]:
    return [arguments[0] for arguments in standin.asked]


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


def behaviour(found: Findings) -> OnSigterm | None:
    assert found.failed == ""
    return found.sigterm.behaviour if found.sigterm else None


def test_a_pod_is_marked_then_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pod_of(tmp_path, monkeypatch, "--on-sigterm", "exit") as (service, standin):
        found = learn(service.url, replace(QUICK, pre_stop_seconds=2.0))
    assert behaviour(found) is OnSigterm.EXITS, found.evidence()
    assert yaml.safe_load(found.to_yaml())["drain"]["worker"] == "wait-idle"
    served_then, asked = found.pre_stop_served or (0, 0)
    assert served_then == asked > 3, "a server that was told nothing serves on"
    calls = verbs(standin)
    assert calls[0] == "get"
    assert calls.index("delete") < calls.index("exec")
    # The kubelet's kill after 30 s may fall into no experiment; at the end all is as it was.
    first, last = (call for call in standin.asked if call[0] == "delete")
    (longer,) = [part for part in first if part.startswith("--grace-period=")]
    assert int(longer.partition("=")[2]) > 3 * 0.2 * QUICK.stream_characters
    assert "--grace-period=30" in last


@pytest.mark.parametrize("hook", [{"pre_stop": False}, {"hook_path": "/begin-drain"}])
def test_port_forwards_break_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: dict[str, Any]
) -> None:
    """One that is refused ends its kubectl, with all that it carries: not what goes on.

    No hook of the pod lasts: its deletion would be SIGTERM at a moment that nobody knows.
    """
    options = ("--on-sigterm", "drain", "--over-capacity", "reject", "--capacity", 3)
    state = {**hook, "chatter": 100_000}
    with pod_of(tmp_path, monkeypatch, *options, **state) as (_, standin):
        found = learn()
    assert behaviour(found) is OnSigterm.DRAINS, found.evidence()
    assert found.capacity.kind is OverCapacity.REJECTS
    assert found.capacity.together == 3
    assert found.sigterm is not None
    assert found.sigterm.new_refused >= 1
    assert found.pre_stop_served is None
    assert "no preStop hook that lasts" in found.to_yaml()
    assert set(verbs(standin)) == {"get", "exec", "port-forward"}
    assert verbs(standin).count("port-forward") > 2 + 2 * QUICK.streams, (
        "one for each burst, each long generation and each new one"
    )
    assert not any(runs(pid) for pid in standin.pids)


def test_generations_that_a_port_forward_loses_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "kubectl port-forward ended under 2 generations"
    with pod_of(tmp_path, monkeypatch, breaks_at=2), pytest.raises(SonicEksError, match=said):
        learn()


def test_kubectl_does_not_see_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor one in the usual variable that is not in use; all else it sees."""
    variable = "ANOTHER_NAME"
    monkeypatch.setenv("CARTESIA_API_KEY", "sk-of-another-day")
    monkeypatch.setenv(variable, f" {KEY} ")
    monkeypatch.setenv("KUBECONFIG", "/a/file")
    out = tmp_path / "found.yaml"
    options = ("--on-sigterm", "exit")
    with pod_of(tmp_path, monkeypatch, *options) as (_, standin):
        arguments = ("--pod", "worker-1", "--yes", "--max-concurrency", "2", "--streams", "1")
        given = ("--key-env", variable, "--watch-seconds", "1", "--out", str(out))
        monkeypatch.setattr(sys, "argv", ["sonic-eks", "verify-drain", *arguments, *given])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code in (0, None), capsys.readouterr().err
    assert "(exits)" in out.read_text()
    assert "worker" not in yaml.safe_load(out.read_text())["drain"], "callers reach it directly"
    assert {"get", "delete", "exec", "port-forward"} == set(verbs(standin))
    for environment in standin.environments:
        assert environment["KUBECONFIG"] == "/a/file"
        assert "PATH" in environment
        assert "CARTESIA_API_KEY" not in environment
        assert not any(KEY in value for value in environment.values())
    assert KEY not in json.dumps(standin.asked)


# ---- what kubectl does wrong


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that is there."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process.pid
        process.kill()


def check(standin: Standin, container: str | None = None) -> None:
    asyncio.run(Pod("worker-1", KUBECTL, container).check())


@pytest.mark.parametrize(
    ("state", "container", "said"),
    [
        ({"spec": {"shareProcessNamespace": True}}, None, "process 1 is not the server's"),
        ({"spec": {"hostPID": True}}, None, "process 1 is not the server's"),
        ({"metadata": {"deletionTimestamp": "2026-11-30T00:00:00Z"}}, None, "is going already"),
        ({}, "b", "its container b does not run"),
        ({}, "c", "--container: got 'c'; allowed: worker, b"),
        ({"fails": {"get": 'error: pods is forbidden: "x"'}}, None, "kubectl get: error: pods is"),
        ({"fails": {"get": ""}}, None, "kubectl get: no reason given"),
    ],
)
def test_a_pod_that_cannot_be_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sleeper: int,
    state: dict[str, Any],
    container: str | None,
    said: str,
) -> None:
    standin = installed(Standin(str(tmp_path / "bin"), sleeper, **state), monkeypatch)
    with pytest.raises(SonicEksError) as refused:
        check(standin, container)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("[]", "the answer: got a list of 0; expected a mapping"),
        ("5", "the answer: got 5; expected a mapping"),
        ('{"kind": "List"}', "kind: got 'List'; expected Pod"),
        ('{"kind": "Pod", "status": {}}', "spec.containers: got nothing; expected something"),
        ("<html>", "an answer that is no JSON"),
    ],
)
def test_an_answer_that_is_no_pod_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sleeper: int,
    answer: str,
    said: str,
) -> None:
    installed(Standin(str(tmp_path / "bin"), sleeper, answers={"get": answer}), monkeypatch)
    monkeypatch.setenv("CARTESIA_API_KEY", KEY)
    monkeypatch.setattr(sys, "argv", ["sonic-eks", "verify-drain", "--pod", "worker-1", "--yes"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr() == ("", f"kubectl get: {said}\n")


def test_no_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SonicEksError, match="kubectl is not installed"):
        asyncio.run(Pod("worker-1", KUBECTL).check())
    (tmp_path / "kubectl").write_text("")
    with pytest.raises(SonicEksError, match="kubectl cannot be run: Permission denied"):
        asyncio.run(Pod("worker-1", KUBECTL).check())


@pytest.mark.parametrize(("grace", "longer"), [(899, True), (900, False)])
def test_a_grace_period_is_only_made_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: int, grace: int, longer: bool
) -> None:
    spec = {"terminationGracePeriodSeconds": grace}
    standin = installed(Standin(str(tmp_path / "bin"), sleeper, spec=spec), monkeypatch)

    async def scenario() -> None:
        subject = Pod("worker-1", KUBECTL)
        await subject.check()
        await subject.announce_end(899.5)
        await subject.leave()

    asyncio.run(scenario())
    delete = ["delete", "pod", "worker-1", "--wait=false"]
    again = [*delete, "--ignore-not-found", "--grace-period=899"]
    expected = [[*delete, "--grace-period=900"], again] if longer else [delete]
    assert [call for call in standin.asked if call[0] == "delete"] == expected


def test_another_pod_of_its_name_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: int
) -> None:
    """As that of a StatefulSet, which comes as soon as the first has ended."""
    standin = installed(Standin(str(tmp_path / "bin"), sleeper), monkeypatch)

    async def scenario() -> None:
        subject = Pod("worker-1", KUBECTL)
        await subject.check()
        await subject.announce_end(899.5)
        installed(replace(standin, metadata={"uid": "2"}), monkeypatch)
        await subject.leave()

    asyncio.run(scenario())
    assert verbs(standin).count("delete") == 1


def test_who_else_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: int) -> None:
    """Of the same owner, and neither itself nor one that is about to be ready."""
    state = Standin(str(tmp_path / "bin"), sleeper, others=["worker-2", "worker-3"])
    installed(state, monkeypatch)

    async def scenario() -> list[str]:
        subject = Pod("worker-1", KUBECTL)
        await subject.check()
        return await subject.others()

    assert asyncio.run(scenario()) == ["worker-2", "worker-3"]
    installed(replace(state, metadata={"ownerReferences": []}), monkeypatch)
    assert asyncio.run(scenario()) == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, ""),
        ({"no_programs": ["sh"]}, ""),
        ({"no_programs": ["sh", "kill"]}, "its image has neither sh nor kill"),
        ({"dies_with_process_1": True}, ""),
        ({"fails": {"exec": "error: unable to upgrade connection"}}, "unable to upgrade"),
    ],
)
def test_sigterm_by_exec(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sleeper: int,
    state: dict[str, Any],
    said: str,
) -> None:
    installed(Standin(str(tmp_path / "bin"), sleeper, **state), monkeypatch)
    subject = Pod("worker-1", KUBECTL, "worker")
    with pytest.raises(SonicEksError, match=said) if said else contextlib.nullcontext():
        asyncio.run(subject.terminate())
    if not said:
        until(lambda: not runs(sleeper))


def test_an_api_server_that_does_not_answer_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: int
) -> None:
    standin = Standin(str(tmp_path / "bin"), sleeper)
    installed(standin, monkeypatch)
    subject = Pod("worker-1", KUBECTL)
    asyncio.run(subject.check())
    installed(replace(standin, fails={"get": "error: EOF"}), monkeypatch)

    async def healed(ask: Callable[[], Awaitable[object]]) -> object:
        before = len(standin.asked)
        looking: asyncio.Future[object] = asyncio.ensure_future(ask())
        while len(standin.asked) == before:
            await asyncio.sleep(0.02)
        installed(standin, monkeypatch)
        return await looking

    for ask, answer in ((subject.running, True), (subject.others, [])):
        installed(replace(standin, fails={"get": "error: EOF"}), monkeypatch)
        assert asyncio.run(healed(ask)) == answer
    installed(replace(standin, fails={"get": "error: EOF"}), monkeypatch)
    with pytest.raises(SonicEksError, match="kubectl get: error: EOF"):
        asyncio.run(subject.running())


async def forward() -> None:
    async with KUBECTL.forward("worker-1", 5000):
        raise AssertionError("it forwards")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"pid": 2**22 + 1}, "because pod is not running"),
        ({"fails": {"port-forward": 'error: pods "x" is forbidden'}}, "is forbidden"),
        ({"silent": ["port-forward"]}, "no answer within 1 s"),
        ({"answers": {"port-forward": "Forwarding from 127.0.0.1:0 -> 1"}}, "local port '0'; exp"),
        ({"answers": {"port-forward": f"Forwarding from 127.0.0.1:{'9' * 5000} ->"}}, "got the lo"),
        ({"answers": {"port-forward": "Forwarding from nowhere"}}, "no reason given"),
    ],
)
def test_a_port_forward_that_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(kubectl_module, "_LONGEST_SECONDS", 1.0)
    standin = Standin(str(tmp_path / "bin"), **{"pid": os.getpid(), **state})
    installed(standin, monkeypatch)
    with pytest.raises(SonicEksError, match=said) as failed:
        asyncio.run(forward())
    assert failed.value.exit_status == 1
    assert not any(runs(pid) for pid in standin.pids)


def test_a_command_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: int
) -> None:
    monkeypatch.setattr(kubectl_module, "_LONGEST_SECONDS", 1.0)
    standin = installed(Standin(str(tmp_path / "bin"), sleeper, silent=["get"]), monkeypatch)
    with pytest.raises(SonicEksError, match="kubectl get: no answer within 1 s"):
        check(standin)
    assert not any(runs(pid) for pid in standin.pids)


def test_an_error_in_a_forward_s_block_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one of kubectl, and no kubectl stays."""
    standin = installed(Standin(str(tmp_path / "bin"), os.getpid()), monkeypatch)

    async def scenario() -> None:
        async with KUBECTL.forward("worker-1", 5000):
            raise TimeoutError("of the block")

    with pytest.raises(TimeoutError, match="of the block"):
        asyncio.run(scenario())
    assert not any(runs(pid) for pid in standin.pids)
