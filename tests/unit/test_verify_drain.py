"""What is made of what was seen: names, configuration and evidence, by hand-made observations."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.record import Generation, Outcome
from sonic_eks.cli import main as cli
from sonic_eks.verify_drain.attempt import Attempt, classify_capacity, most_together
from sonic_eks.verify_drain.doubts import doubt
from sonic_eks.verify_drain.experiment import Experiment, Settings
from sonic_eks.verify_drain.findings import (
    CapacitySeen,
    Findings,
    OnSigterm,
    OverCapacity,
    SigtermSeen,
)
from tests.configuration import VALID, load
from tests.plain_server import plain_server
from tests.synth import ROOT

Run = Callable[..., tuple[int, str, str]]


def seen(
    completed: int,
    cut: int,
    served: int,
    exit_seconds: float | None,
    *,
    refused: int = 3,
    old_end: float | None = None,
    **more: Any,
) -> SigtermSeen:
    if old_end is None:
        old_end = 5.0 if exit_seconds is None else min(5.0, exit_seconds)
    return SigtermSeen(completed, cut, served, refused, exit_seconds, old_end, 40.0, **more)


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
        # who waits in a queue that nobody takes from needs no refusal
        (seen(4, 0, 0, 6.0, refused=0, new_waiting=1), OnSigterm.DRAINS),
        (seen(1, 3, 0, 6.0, refused=0, new_waiting=1), OnSigterm.LIMITED),
        (seen(4, 0, 1, 6.0, refused=0, new_waiting=1), OnSigterm.KEEPS_TAKING),
        # nobody was refused: others without an answer say nothing
        (seen(4, 0, 0, 6.0, refused=0), OnSigterm.UNCLEAR),
        (seen(1, 3, 0, 6.0, refused=0), OnSigterm.UNCLEAR),
        # refused, perhaps for another reason
        (seen(4, 0, 0, 6.0, doubt="full"), OnSigterm.UNCLEAR),
        (seen(1, 3, 0, 6.0, doubt="full"), OnSigterm.UNCLEAR),
        # what it had would have ended as soon by itself
        (seen(4, 0, 0, 6.0, old_end=1.5), OnSigterm.UNCLEAR),
        (seen(4, 0, 0, 6.0, old_end=1.6), OnSigterm.DRAINS),
        # the end of a pod is seen late: what counts is when the streams were cut
        (seen(0, 4, 0, 4.0, old_end=0.3), OnSigterm.UNCLEAR),
        (seen(0, 4, 0, 4.0, old_end=0.3, late_seconds=4.0), OnSigterm.EXITS),
        (seen(0, 4, 0, 9.0, old_end=0.3, late_seconds=4.0), OnSigterm.UNCLEAR),
        (seen(1, 3, 0, 10.0, old_end=6.0, late_seconds=4.0), OnSigterm.LIMITED),
        # new ones that it began and cut: it took them, and did not finish them
        (seen(4, 0, 2, 9.0, new_cut=1), OnSigterm.UNCLEAR),
        (seen(4, 0, 0, 9.0, new_cut=1), OnSigterm.UNCLEAR),
        (seen(4, 0, 2, None, new_cut=1), OnSigterm.UNCLEAR),
        # served, perhaps by another one; who served nothing needs no alibi
        (seen(4, 0, 9, 9.0, others=["w-2"]), OnSigterm.UNCLEAR),
        (seen(4, 0, 9, None, others=["w-2"]), OnSigterm.UNCLEAR),
        (seen(4, 0, 0, 6.0, others=["w-2"]), OnSigterm.DRAINS),
        # what needs no refusal is not in doubt
        (seen(0, 4, 0, 0.1, refused=0, doubt="full"), OnSigterm.EXITS),
        (seen(4, 0, 9, 9.0, doubt="full"), OnSigterm.KEEPS_TAKING),
    ],
)
def test_behaviour_on_sigterm(what: SigtermSeen, behaviour: OnSigterm) -> None:
    assert what.behaviour is behaviour


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (seen(0, 4, 9, 0.1), "alone behind URL"),
        (seen(4, 0, 0, 9.0, new_cut=1), "alone behind URL"),
        (seen(4, 0, 9, 9.0, others=["w-2", "w-3"]), "w-2, w-3 is ready too"),
        (seen(4, 0, 0, None), "--watch-seconds"),
        (seen(4, 0, 0, 6.0, doubt="perhaps it was full"), "perhaps it was full"),
        (seen(4, 0, 0, 6.0, old_end=0.4), "--characters"),
        (seen(4, 0, 0, 6.0, refused=0), "refused nothing"),
        (seen(0, 4, 0, 30.0), "long before it ended"),
    ],
)
def test_what_is_not_clear_says_why(what: SigtermSeen, said: str) -> None:
    capacity = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)
    findings = Findings("http://h", "pod sonic/w", "2026-11-30", 0.4, capacity, what)
    assert said in findings.unclear
    assert any(said in line for line in findings.evidence())


def test_what_is_clear_needs_no_reason() -> None:
    for what in (seen(4, 0, 0, 6.0), seen(0, 4, 0, 0.1), seen(4, 0, 9, None)):
        assert what.why_unclear == ""


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


@pytest.mark.parametrize("what", [seen(4, 0, 0, 6.0), seen(0, 4, 0, 0.1), seen(4, 0, 9, None)])
def test_who_serves_callers_itself_needs_no_setting_of_workers(
    tmp_path: Path, what: SigtermSeen
) -> None:
    """config/standalone.yaml takes what was learned of its server, whatever that does."""
    capacity = CapacitySeen(OverCapacity.REJECTS, 16, 8, "status 429")
    findings = Findings("http://h", "pod sonic/s", "2026-11-30", 1.2, capacity, what, direct=True)
    standalone = yaml.safe_load((ROOT / "config" / "standalone.yaml").read_text())
    text = yaml.safe_load(findings.to_yaml())
    assert text == {"drain": {"idleSeconds": 3}, "scaling": {"overCapacity": "refuse"}}
    merged = {name: {**standalone.get(name, {}), **section} for name, section in text.items()}
    configured = load(standalone | merged, tmp_path)
    assert configured.topology == "standalone"
    assert configured.drain.idle_seconds == 3


def test_what_is_for_workers_alone_says_so() -> None:
    capacity = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)
    for what, said in ((seen(0, 4, 0, 0.1), True), (seen(4, 0, 0, 6.0), False)):
        text = Findings("http://h", "process 9", "2026-11-30", 0.4, capacity, what).to_yaml()
        assert ("with topology standalone leave it out" in text) == said


@pytest.mark.parametrize(
    ("capacity", "setting"),
    [
        (CapacitySeen(OverCapacity.REJECTS, 8, 4, "status 429: busy"), "refuse"),
        (CapacitySeen(OverCapacity.QUEUES, 8, 4), "queue"),
        # those without an answer may wait, or be lost
        (CapacitySeen(OverCapacity.QUEUES, 8, 4, "4 of 8 got no audio"), None),
        (CapacitySeen(OverCapacity.TAKES_ALL, 32, 32), None),
        (CapacitySeen(OverCapacity.FAILS, 8, 4, "closed: x"), None),
    ],
)
def test_what_it_does_over_capacity_is_configured(
    tmp_path: Path, capacity: CapacitySeen, setting: str | None
) -> None:
    findings = Findings("http://h", None, "2026-11-30", 0.4, capacity, seen(0, 4, 0, 0.1))
    assert findings.to_dict()["overCapacity"] == setting
    configured = load(VALID | yaml.safe_load(findings.to_yaml()), tmp_path)
    assert configured.scaling.over_capacity == setting
    assert configured.drain.worker == "wait-idle"


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
        "the last audio of them came after 5.0 s; the process ended after 6.0 s",
        "(drains)",
    ):
        assert part in text


REJECTS = CapacitySeen(OverCapacity.REJECTS, 8, 4, "rejected: status 429: busy (id 0123456789ab)")
TAKES_ALL = CapacitySeen(OverCapacity.TAKES_ALL, 16, 16)


@pytest.mark.parametrize(
    ("capacity", "beside", "refusals", "waiting", "said"),
    [
        (TAKES_ALL, (3, 3), ["closed: x"], 0, ""),
        (TAKES_ALL, (1, 3), ["closed: x"], 0, ""),
        (TAKES_ALL, (0, 3), ["closed: x"], 0, "not served before SIGTERM either"),
        (TAKES_ALL, (0, 3), [], 2, "not served before SIGTERM either"),
        (TAKES_ALL, (0, 0), ["closed: x"], 0, ""),
        (CapacitySeen(OverCapacity.QUEUES, 2, 1), (3, 3), ["closed: x"], 0, "one at a time"),
        (CapacitySeen(OverCapacity.QUEUES, 2, 1), (3, 3), [], 1, "one at a time"),
        (CapacitySeen(OverCapacity.QUEUES, 8, 4), (3, 3), [], 1, ""),
        (REJECTS, (3, 3), ["rejected: status 429: busy (id ba9876543210)"] * 2, 0, "over capacity"),
        (REJECTS, (3, 3), ["rejected: status 429: busy (id ba9876543210)"], 1, ""),
        (REJECTS, (3, 3), ["rejected: status 503: going away"], 0, ""),
        (REJECTS, (0, 3), [], 0, ""),
    ],
)
def test_refusals_with_another_reason(
    capacity: CapacitySeen,
    beside: tuple[int, int],
    refusals: list[str],
    waiting: int,
    said: str,
) -> None:
    found = doubt(capacity, beside, refusals, waiting)
    assert said in found
    assert bool(said) == bool(found)


HOSTILE = "status 429: \n  worker: sigterm\nscaling: {}\r\x85\u2028 \x1b[2J\ud800\ufeff"


def test_what_a_service_says_is_no_part_of_the_configuration() -> None:
    capacity = CapacitySeen(OverCapacity.REJECTS, 16, 8, HOSTILE)
    findings = Findings(
        f"http://h{HOSTILE}", f"pod {HOSTILE}", "2026-11-30", 0.4, capacity, notes=[HOSTILE]
    )
    text = findings.to_yaml()
    assert set(yaml.safe_load(text)) == {"drain", "scaling"}
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "drain:",
        "  idleSeconds: 2",
        "scaling:",
        "  overCapacity: refuse",
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


def burst(*spans: tuple[float, float], failed: tuple[Outcome, ...] = ()) -> list[Attempt]:
    tries = []
    for begin, end in spans:
        generation = Generation(0, "c", "t", True, 0.0, parts=[(begin, 10), (end, 10)])
        tries.append(Attempt(generation, Outcome.COMPLETED))
    return tries + [Attempt(Generation(0, "c", "t", True, 0.0), one, "said") for one in failed]


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
def test_over_capacity(tries: list[Attempt], kind: OverCapacity, together: int) -> None:
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
        ([URL, "--max-concurrency", "1"], "max-concurrency"),
        # what would be ignored
        ([URL, "--namespace", "sonic"], "--namespace: got it without --pod"),
        ([URL, "--pid", "77", "--container", "c"], "--container: got it without --pod"),
        *(
            ([URL, option, *value], f"{option}: got it without --pod or --pid")
            for option, *value in (
                ("--streams", "4"),
                ("--characters", "900"),
                ("--watch-seconds", "9"),
                ("--yes",),
            )
        ),
        ([URL, "--pod", "p", "--port", "5000"], "--port: got it with URL"),
        ([URL, "--pid", "77"], "--yes: not given"),
        ([URL, "--pod", "p"], "--yes: not given"),
        ([URL, "--pid", "77", "--watch-seconds", "0"], "--watch-seconds: got 0.0"),
        ([URL, "--out", "no/such/folder/x.yaml"], "--out no/such/folder/x.yaml: cannot be"),
        ([URL, "--key-env", "NOT_SET"], "environment variable NOT_SET: no API key"),
        ([URL], "cannot be reached"),
        (["nonsense"], "URL: got 'nonsense'"),
        # what kubectl would take for an option, or for more than one name
        (["--pod=-lapp=x"], "--pod: got '-lapp=x'; allowed: a name of lower-case letters, digits"),
        (["--pod", "-x", "--yes"], "--pod: got '-x'; allowed"),
        (["--pod", "", "--yes"], "--pod: got ''; allowed"),
        (["--pod", "p", "--namespace", "--kubeconfig=x"], "--namespace: got '--kubeconfig=x'"),
        (["--pod", "p", "--container=--", "--yes"], "--container: got '--'; allowed"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
