"""The load test's processes and connections, on a stand-in that serves on loopback.

Other processes may make this machine slow, so what is asserted here is what happened, not how
fast: `make bench` compares times.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import chunks_server
from sidecar.stand_in.speech import CHARACTERS_PER_SECOND
from sonic_eks.bench import run as bench_run
from sonic_eks.bench.measure import Plan, measure
from sonic_eks.bench.plan import Arrivals, Load, Protocol, Target
from sonic_eks.bench.record import Outcome, Record
from sonic_eks.bench.run import Run
from sonic_eks.bench.texts import texts
from tests.plain_server import plain_server
from tests.standin.process import ROOT, free_ports, python, require_linux
from tests.standin.serving import Served, served

pytestmark = pytest.mark.slow

KEY = "sk-of-the-test"
CLOCK = 30


class Quiet:
    def begin(self, what: str, total: int) -> None: ...

    def advance(self, ended: int, failed: int) -> None: ...


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("standin"), "--clock", CLOCK) as running:
        yield running


@pytest.fixture(autouse=True)
def no_fault(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "service" in request.fixturenames:
        request.getfixturevalue("service").fault("")


def load(
    service: Served, *, processes: int = 1, target: dict[str, Any] | None = None, **what: Any
) -> Run:
    of = Target(url=service.url, key=KEY, **{"timeout_seconds": 1.0, **(target or {})})
    return asyncio.run(bench_run.run(of, Load(**what), processes=processes, reporter=Quiet()))


def children(parent: int, module: str) -> list[int]:
    """Return the processes that `parent` started with a module, as /proc tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # pid (name) state ppid: names hold no ")" here
            started_by = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if started_by == parent and module.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_until(check: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


def outcomes(run: Run) -> Counter[Outcome]:
    return Counter(r.outcome for r in run.records if r.counted)


def counted(run: Run) -> list[Record]:
    return [r for r in run.records if r.counted]


@pytest.mark.parametrize(
    ("protocol", "arrivals"),
    [
        (Protocol.WEBSOCKET, Arrivals.CLOSED),
        (Protocol.WEBSOCKET, Arrivals.POISSON),
        (Protocol.SSE, Arrivals.CONSTANT),
        (Protocol.BYTES, Arrivals.CLOSED),
    ],
)
def test_every_protocol_hears_all_of_the_audio(
    service: Served, protocol: Protocol, arrivals: Arrivals
) -> None:
    run = load(
        service,
        target={"protocol": protocol},
        arrivals=arrivals,
        generations=24,
        concurrency=4,
        rate=30,
    )
    assert outcomes(run) == {Outcome.COMPLETED: 24}
    for record in counted(run):
        # whole samples: half a sample of rounding
        assert record.audio_seconds == pytest.approx(
            record.characters / CHARACTERS_PER_SECOND, abs=1 / 24000
        )
        assert record.sent is not None
        assert record.sent >= record.scheduled
    if protocol is not Protocol.BYTES:  # which has no context
        truth = service.truth()
        over = [r.ttfb_seconds - (truth[r.context_id] or 0) for r in counted(run)]
        assert min(over) > 0, "heard before it was sent"
        assert statistics.median(over) < 0.1


@pytest.mark.parametrize(
    ("protocol", "fault", "outcome"),
    [
        (Protocol.WEBSOCKET, "stall", Outcome.TIMEOUT),
        (Protocol.WEBSOCKET, "hang", Outcome.TIMEOUT),
        (Protocol.WEBSOCKET, "reject", Outcome.REJECTED),
        (Protocol.WEBSOCKET, "close", Outcome.CLOSED),
        (Protocol.SSE, "close", Outcome.CLOSED),
        (Protocol.BYTES, "hang", Outcome.TIMEOUT),
        (Protocol.BYTES, "reject", Outcome.REJECTED),
    ],
)
def test_every_fault_is_counted(
    service: Served, protocol: Protocol, fault: str, outcome: Outcome
) -> None:
    """Every fourth generation is struck, whatever its text; no other one is."""
    service.fault(f"{fault}:0.25")
    run = load(service, target={"protocol": protocol}, generations=16, concurrency=8)
    struck = outcomes(run)[outcome]
    assert outcomes(run) == {outcome: struck, Outcome.COMPLETED: 16 - struck}
    if fault in ("hang", "reject"):
        assert 3 <= struck <= 5, "4, and one more or less for those that are not counted"
        assert all(r.first_audio is None for r in counted(run) if not r.completed)
    else:
        # a text of up to 1 s, two chunks, is over before the fault
        assert 1 <= struck <= 5
        assert all(r.first_audio is not None for r in counted(run) if not r.completed)
    assert run.summary.ttfb[99] == float("inf")


def test_slow_audio_makes_underruns(tmp_path: Path) -> None:
    """At the wall clock's pace: 0.5 s of audio take 0.05 s, and with the fault 0.55 s."""
    seeds = itertools.count()
    short = next(s for s in seeds if all(len(t) < 40 for t in itertools.islice(texts(s), 2)))
    with served(tmp_path) as service:
        assert load(service, generations=1, seed=short).summary.underruns == 0
        service.fault("slow")
        run = load(service, generations=1, seed=short)
    for record in counted(run):
        # nothing is late after the first part; of n parts of 0.5 s, n - 1 are (the last is short)
        parts = math.ceil(record.audio_seconds / 0.5)
        assert record.underruns == parts - 1
        assert record.stall_seconds == pytest.approx(0.05 * record.underruns, abs=0.05 * parts)


def test_contexts_share_sockets(service: Served) -> None:
    run = load(service, target={"contexts_per_socket": 4}, generations=40, concurrency=8)
    assert outcomes(run) == {Outcome.COMPLETED: 40}
    # Eight begin at once, and none has room before its connection is there.
    assert sum(r.connect_seconds is not None for r in run.records) <= 8
    service.fault("close:0.1")
    run = load(service, target={"contexts_per_socket": 4}, generations=40, concurrency=8)
    assert outcomes(run)[Outcome.CLOSED] > 0
    assert set(outcomes(run)) <= {Outcome.CLOSED, Outcome.COMPLETED}


def test_processes_share_the_load(service: Served) -> None:
    run = load(service, processes=3, generations=30, concurrency=7)
    assert run.processes == 3
    assert outcomes(run) == {Outcome.COMPLETED: 30}
    assert 3 < run.summary.in_progress <= 7.001, "more than the slots of one process"
    # all together say the texts once, and six of them again, as one process would
    assert len({r.characters for r in run.records}) > 15


def test_http_connections_are_used_again(tmp_path: Path) -> None:
    """The stand-in closes after each answer; this one does not."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 48000\r\n\r\n" + b"\0" * 48000
    with plain_server(answer) as port:
        of = Target(url=f"http://127.0.0.1:{port}", key=KEY, protocol=Protocol.BYTES)
        run = asyncio.run(
            bench_run.run(of, Load(generations=20, concurrency=2), processes=1, reporter=Quiet())
        )
    assert outcomes(run) == {Outcome.COMPLETED: 20}
    assert sum(r.connect_seconds is not None for r in run.records) == 2
    assert {r.audio_seconds for r in counted(run)} == {1.0}


def test_a_starved_client_marks_its_run_not_valid(service: Served) -> None:
    """The processes of the load are stopped for half of the time, as by a quota of CPU time."""
    require_linux()
    done = threading.Event()

    def starve() -> None:
        while not done.wait(0.05):
            pids = children(os.getpid(), "sonic_eks.bench.process")
            for pid in pids:
                send(pid, signal.SIGSTOP)
            time.sleep(0.05)
            for pid in pids:
                send(pid, signal.SIGCONT)

    thread = threading.Thread(target=starve)
    thread.start()
    try:
        plan = Plan(
            target=Target(url=service.url, key=KEY),
            load=Load(generations=2),
            processes=1,
            max_processes=2,
        )
        result = asyncio.run(measure(plan, Quiet()))
    finally:
        done.set()
        thread.join()
    assert len(result.runs) == 3, "repeated twice"
    assert not any(run.summary.valid for run in result.runs)
    assert all(run.summary.lag > 0.02 for run in result.runs)
    [problem] = result.problems
    assert problem.startswith("not valid: the client was the bottleneck, its own lag is")
    assert result.to_dict()["problems"] == [problem]


@pytest.mark.parametrize("variable", ["CARTESIA_API_KEY", "ANOTHER_NAME"])
def test_the_key_is_where_nobody_looks(
    service: Served, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Neither in the arguments nor in the environment of the processes, nor in a result."""
    require_linux()
    monkeypatch.setenv(variable, f" {KEY} ")
    seen: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            for pid in children(os.getpid(), "sonic_eks.bench.process"):
                for part in ("cmdline", "environ"):
                    with contextlib.suppress(OSError):
                        seen.append(Path(f"/proc/{pid}/{part}").read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        plan = Plan(target=Target(url=service.url, key=KEY), load=Load(generations=3))
        result = asyncio.run(measure(plan, Quiet()))
    finally:
        done.set()
        thread.join()
    assert seen
    assert not any(KEY.encode() in data for data in seen)
    assert KEY not in repr(result)
    assert KEY not in str(result.to_dict())


def test_no_process_outlives_the_one_that_started_it(service: Served) -> None:
    require_linux()
    code = (
        "import asyncio; from tests.e2e.test_bench import *;"
        f"asyncio.run(bench_run.run(Target(url={service.url!r}, key='k'),"
        " Load(generations=100000, concurrency=2), processes=2, reporter=Quiet()))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        wait_until(lambda: len(children(parent.pid, "sonic_eks.bench.process")) == 2)
        pids = children(parent.pid, "sonic_eks.bench.process")
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids))


def test_to_hear_audio_does_not_fetch_memory_anew() -> None:
    """Five pages a part, a third of the work, is what it is with the allocator's defaults."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the settings are those of glibc's allocator")
    [port] = free_ports(1)
    command = python("benchmarks.chunks_server", port, 0.005)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
            target = Target(url=f"http://127.0.0.1:{port}", key=KEY)
            wanted = Load(concurrency=16, generations=500)
            asyncio.run(bench_run.run(target, wanted, processes=1, reporter=Quiet()))
            faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
        finally:
            server.kill()
    assert faults < 500 * chunks_server.PARTS


def test_the_benchmark_and_its_server_have_a_core_each() -> None:
    require_linux()
    code = (
        "import os; from benchmarks.streams_core import CORES, chunks_server, pin;"
        "from tests.e2e.test_bench import children\n"
        "pin(0, 0)\n"
        "with chunks_server():\n"
        "    [server] = children(os.getpid(), 'benchmarks.chunks_server')\n"
        "    print(CORES, sorted(os.sched_getaffinity(0)), sorted(os.sched_getaffinity(server)))"
    )
    output = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    cores = sorted(os.sched_getaffinity(0))
    mine, servers = (cores[:1], cores[1:2]) if len(cores) > 1 else (cores, cores)
    assert output == f"{cores} {mine} {servers}\n"


def test_the_command_line_measures(service: Served, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    command = [sys.executable, "-m", "sonic_eks.cli.main", "bench", service.url]
    options = ["--concurrency", "2", "--generations", "4", "--json", "--report", str(report)]
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "CARTESIA_API_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    result = json.loads(done.stdout)
    assert done.stderr.splitlines() == result["problems"]
    assert done.returncode == (1 if result["problems"] else 0)
    for one in result["runs"]:
        assert (one["generations"], one["failures"]) == (4, {})
        assert 0 < one["ttfb"]["50"] < one["ttfb"]["99"]
    assert report.read_text().count("base64,") == (
        3 if any(r["valid"] for r in result["runs"]) else 0
    )
    assert KEY not in done.stdout + done.stderr + report.read_text()
