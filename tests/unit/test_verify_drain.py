"""What is made of what was seen: names, configuration and evidence, by hand-made observations."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.protocol import Transport
from sonic_eks.bench.record import Generation, Outcome
from sonic_eks.cli import main as cli
from sonic_eks.errors import SonicEksError
from sonic_eks.verify_drain.doubts import doubt
from sonic_eks.verify_drain.experiment import (
    Experiment,
    Settings,
    _Try,
    classify_capacity,
    most_together,
)
from sonic_eks.verify_drain.findings import (
    CapacitySeen,
    Findings,
    OnSigterm,
    OverCapacity,
    SigtermSeen,
)
from tests import virtual_time
from tests.configuration import VALID, load
from tests.plain_server import plain_server

Run = Callable[..., tuple[int, str, str]]


def seen(
    completed: int,
    cut: int,
    served: int,
    exit_seconds: float | None,
    *,
    refused: int = 3,
    old_end: float = 5.0,
    doubt: str = "",
) -> SigtermSeen:
    return SigtermSeen(completed, cut, served, refused, exit_seconds, old_end, 40.0, doubt)


@pytest.mark.parametrize(
    ("what", "behaviour"),
    [
        (seen(4, 0, 0, 6.0), OnSigterm.DRAINS),
        (seen(0, 4, 0, 0.1), OnSigterm.EXITS),
        (seen(1, 3, 0, 0.1), OnSigterm.EXITS),
        (seen(4, 0, 9, 9.0), OnSigterm.KEEPS_TAKING),
        (seen(4, 0, 9, None), OnSigterm.IGNORES),
        # it cut and others served: not alone behind this URL
        (seen(0, 4, 9, 0.1), OnSigterm.UNCLEAR),
        # neither serves nor ends
        (seen(4, 0, 0, None), OnSigterm.UNCLEAR),
        (seen(0, 4, 0, None), OnSigterm.UNCLEAR),
        # a limit of its own: it cuts as it ends, long after SIGTERM
        (seen(1, 3, 0, 6.0), OnSigterm.LIMITED),
        (seen(0, 4, 0, 1.6, old_end=1.6), OnSigterm.LIMITED),
        # cut by something else long before the end
        (seen(0, 4, 0, 30.0), OnSigterm.UNCLEAR),
        # nobody was refused: those without an answer say nothing
        (seen(4, 0, 0, 6.0, refused=0), OnSigterm.UNCLEAR),
        (seen(1, 3, 0, 6.0, refused=0), OnSigterm.UNCLEAR),
        # refused, perhaps for another reason
        (seen(4, 0, 0, 6.0, doubt="full"), OnSigterm.UNCLEAR),
        (seen(1, 3, 0, 6.0, doubt="full"), OnSigterm.UNCLEAR),
        # what needs no refusal is not in doubt
        (seen(0, 4, 0, 0.1, refused=0, doubt="full"), OnSigterm.EXITS),
        (seen(4, 0, 9, 9.0, doubt="full"), OnSigterm.KEEPS_TAKING),
    ],
)
def test_behaviour_on_sigterm(what: SigtermSeen, behaviour: OnSigterm) -> None:
    assert what.behaviour is behaviour


@pytest.mark.parametrize(
    ("what", "worker"),
    [
        # docs/draining.md: only a worker that exits at once is saved by waiting
        (seen(4, 0, 0, 6.0), "sigterm"),
        (seen(0, 4, 0, 0.1), "wait-idle"),
        (seen(4, 0, 9, 9.0), "sigterm"),
        (seen(4, 0, 9, None), "sigterm"),
        (seen(0, 4, 9, 0.1), None),
        (seen(1, 3, 0, 6.0), None),
        (None, None),
    ],
)
def test_the_configuration_that_fits(
    tmp_path: Path, what: SigtermSeen | None, worker: str | None
) -> None:
    capacity = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)
    findings = Findings("http://h", "pod sonic/w", "2026-11-30", 0.4, capacity, what)
    expected = {"idleSeconds": 2} | ({"worker": worker} if worker else {})
    assert yaml.safe_load(findings.to_yaml()) == {"drain": expected}
    configured = load(VALID | yaml.safe_load(findings.to_yaml()), tmp_path)
    assert configured.drain.worker == (worker or "sigterm")


@pytest.mark.parametrize(("gap", "idle"), [(0.0, 2), (1.0, 2), (1.01, 3), (4.9, 10), (45.0, 60)])
def test_idle_seconds_are_twice_the_longest_pause(gap: float, idle: int) -> None:
    capacity = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)
    assert Findings("http://h", None, "2026-11-30", gap, capacity).idle_seconds == idle


def test_evidence_names_what_was_seen() -> None:
    capacity = CapacitySeen(OverCapacity.REJECTS, 16, 8, "rejected: status 429: busy")
    findings = Findings(
        "http://h", "pod sonic/w", "2026-11-30", 0.4, capacity, seen(4, 0, 0, 6.0), (20, 21)
    )
    text = findings.to_yaml()
    for part in (
        "# Learned by `sonic-eks verify-drain` on 2026-11-30",
        "16 at a time: refuses what is over its capacity",
        "status 429: busy",
        "most generations with audio at the same time: 8",
        "while its preStop hook ran: served 20 of 21 new generations",
        "of 4 generations in progress at SIGTERM 4 completed; of new ones 0 were served, 3 refused",
        "the last of them ended after 5.0 s; the process ended after 6.0 s",
        "(drains)",
    ):
        assert part in text


REJECTS = CapacitySeen(OverCapacity.REJECTS, 8, 4, "rejected: status 429: busy (id 0123456789ab)")
TAKES_ALL = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)


@pytest.mark.parametrize(
    ("capacity", "pre_stop", "refusals", "said"),
    [
        (TAKES_ALL, None, ["closed: x"], ""),
        (TAKES_ALL, (3, 3), ["closed: x"], ""),
        (TAKES_ALL, (0, 3), ["closed: x"], "before SIGTERM too"),
        (TAKES_ALL, (0, 0), ["closed: x"], ""),
        (CapacitySeen(OverCapacity.QUEUES, 2, 1), None, ["closed: x"], "one at a time"),
        (REJECTS, None, ["rejected: status 429: busy (id ba9876543210)"] * 2, "over capacity"),
        (REJECTS, None, ["rejected: status 503: going away"], ""),
        (REJECTS, (0, 3), [], ""),
    ],
)
def test_refusals_with_another_reason(
    capacity: CapacitySeen, pre_stop: tuple[int, int] | None, refusals: list[str], said: str
) -> None:
    found = doubt(capacity, pre_stop, refusals)
    assert said in found
    assert bool(said) == bool(found)


class Going:
    """A subject that ends by a function of what was asked of it."""

    name, has_pre_stop = "process 1", False

    def __init__(self, terminate: Callable[[], None]) -> None:
        self.terminated = False
        self._terminate = terminate

    async def check(self) -> None: ...

    async def announce_end(self) -> None: ...

    async def terminate(self) -> None:
        self.terminated = True
        self._terminate()

    async def running(self) -> bool:
        return True


class Slots(Experiment):
    """Generations of 8 s, 2 s for short texts, in a worker with so many slots."""

    slots = 3
    most = busy = 0

    async def _say(self, one: _Try, transport: Transport) -> None:
        loop = asyncio.get_running_loop()
        if self.busy >= self.slots:
            one.outcome, one.detail, one.end = Outcome.REJECTED, "status 429: busy", loop.time()
            return
        self.busy += 1
        self.most = max(self.most, self.busy) if getattr(self.subject, "terminated", 0) else 0
        try:
            for _ in range(80 if len(one.generation.text) > 500 else 20):
                await asyncio.sleep(0.1)
                one.generation.heard(loop.time(), 10)
            one.outcome = Outcome.COMPLETED
        finally:
            self.busy -= 1
            one.end = loop.time()


def on_slots(slots: int, terminate: Callable[[], None] = lambda: None) -> tuple[Findings, Slots]:
    experiment = Slots(
        Target(url="http://h", key="k"), Going(terminate), Settings(), lambda text: None
    )
    experiment.slots = slots
    return virtual_time.run(experiment.run()), experiment


@pytest.mark.parametrize("slots", [2, 3, 5, 100])
def test_a_worker_that_keeps_taking_is_not_full_at_sigterm(slots: int) -> None:
    found, experiment = on_slots(slots)
    assert found.sigterm is not None
    assert found.sigterm.behaviour is OnSigterm.IGNORES, found.evidence()
    assert found.sigterm.new_refused == 0
    # as many old ones as leave a slot free, four at most, and a new one
    assert experiment.most == min(5, slots)


def test_what_was_learned_before_a_failure_is_told() -> None:
    def broken() -> None:
        raise SonicEksError("kubectl exec: no kill", exit_status=1)

    found, _ = on_slots(3, broken)
    assert found.unclear == "kubectl exec: no kill"
    text = found.to_yaml()
    assert "4 at a time: refuses what is over its capacity" in text
    assert "# - SIGTERM: kubectl exec: no kill" in text
    assert yaml.safe_load(text) == {"drain": {"idleSeconds": 2}}


def test_a_service_that_makes_nothing_is_told_of() -> None:
    found, experiment = on_slots(0)
    assert "a generation failed before the experiment" in found.unclear
    assert found.capacity.kind is OverCapacity.REJECTS
    assert not getattr(experiment.subject, "terminated", True)


HOSTILE = "status 429: \n  worker: sigterm\nscaling: {}\r\x85\u2028 \x1b[2J\ud800\ufeff"


def test_what_a_service_says_is_no_part_of_the_configuration() -> None:
    capacity = CapacitySeen(OverCapacity.REJECTS, 16, 8, HOSTILE)
    findings = Findings(
        f"http://h{HOSTILE}", f"pod {HOSTILE}", "2026-11-30", 0.4, capacity, notes=[HOSTILE]
    )
    text = findings.to_yaml()
    assert yaml.safe_load(text) == {"drain": {"idleSeconds": 2}}
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "drain:",
        "  idleSeconds: 2",
    ]
    assert text.replace("\n", "").isprintable()
    assert all(line.isprintable() for line in findings.to_dict()["evidence"])


@pytest.mark.parametrize("before", [0, 195])
def test_the_key_is_in_no_finding(before: int) -> None:
    key = "sk-of-verify-drain"
    said = json.dumps({"title": "x" * before + f"{key}\n\x1b[31m\ndrain: 1"})
    answer = f"HTTP/1.1 429 Busy\r\nContent-Length: {len(said)}\r\n\r\n{said}".encode()
    with plain_server(answer) as port:
        target = Target(url=f"http://127.0.0.1:{port}", key=key, protocol=Protocol.SSE)
        settings = Settings(max_concurrency=2)
        found = asyncio.run(Experiment(target, None, settings, lambda text: None).run())
    text = found.to_yaml() + json.dumps(found.to_dict())
    assert "status 429" in text
    assert key[:5] not in text
    assert set(yaml.safe_load(found.to_yaml())["drain"]) == {"idleSeconds"}


def burst(*spans: tuple[float, float], failed: tuple[Outcome, ...] = ()) -> list[_Try]:
    tries = []
    for begin, end in spans:
        generation = Generation(0, "c", "t", True, 0.0, parts=[(begin, 10), (end, 10)])
        tries.append(_Try(generation, Outcome.COMPLETED))
    return tries + [_Try(Generation(0, "c", "t", True, 0.0), one, "said") for one in failed]


def test_most_together() -> None:
    assert most_together([]) == 0
    assert most_together([(0, 2), (1, 3), (2.5, 4)]) == 2
    assert most_together([(0, 1), (1, 2)]) == 1, "one ends as the other begins"


@pytest.mark.parametrize(
    ("tries", "kind", "together"),
    [
        (burst((0.1, 2), (0.2, 2), (0.9, 3)), OverCapacity.TAKES_ALL, 3),
        # two slots: the third begins when the first has ended
        (burst((0.1, 2), (0.2, 2.5), (2.1, 4)), OverCapacity.QUEUES, 2),
        (burst((0.1, 2), failed=(Outcome.REJECTED,)), OverCapacity.REJECTS, 1),
        # a queue that is longer than this client waits
        (burst((0.1, 2), failed=(Outcome.TIMEOUT,)), OverCapacity.QUEUES, 1),
        (burst(failed=(Outcome.TIMEOUT, Outcome.TIMEOUT)), OverCapacity.FAILS, 0),
        (burst((0.1, 2), failed=(Outcome.TIMEOUT, Outcome.CLOSED)), OverCapacity.FAILS, 1),
        (burst((0.1, 2), failed=(Outcome.REJECTED, Outcome.CLOSED)), OverCapacity.FAILS, 1),
    ],
)
def test_over_capacity(tries: list[_Try], kind: OverCapacity, together: int) -> None:
    found = classify_capacity(tries)
    assert (found.kind, found.asked, found.together) == (kind, len(tries), together)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("CARTESIA_API_KEY", "k-of-the-test")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sonic-eks", "verify-drain", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "got neither URL nor --pod"),
        (["--pid", "77"], "got neither URL nor --pod"),
        ([URL, "--pod", "p", "--pid", "77"], "--pod and --pid: got both"),
        ([URL, "--pid", "1"], "pid"),
        ([URL, "--pid", "77"], "--yes: not given"),
        ([URL, "--pod", "p"], "--yes: not given"),
        ([URL, "--watch-seconds", "0"], "--watch-seconds: got 0.0"),
        ([URL, "--out", "no/such/folder/x.yaml"], "--out no/such/folder/x.yaml: cannot be"),
        ([URL, "--key-env", "NOT_SET"], "environment variable NOT_SET: no API key"),
        ([URL], "cannot be reached"),
        (["nonsense"], "URL: got 'nonsense'"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
