"""One run: its load dealt out to processes, their records brought together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from operator import sub
from pathlib import Path
from typing import Any, Protocol

import sonic_eks
from sonic_eks.bench.arrivals import constant, poisson
from sonic_eks.bench.driver import LEAD_SECONDS, PAUSE_SECONDS
from sonic_eks.bench.inputs import environment_without_key
from sonic_eks.bench.plan import Arrivals, Load, Target
from sonic_eks.bench.record import Record
from sonic_eks.bench.statistics import Summary, summarize
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError

START_SECONDS = LEAD_SECONDS + 0.1
"""Time for the last process to hear when the run begins, and for the first connection."""

LEAST_SHARE = 0.9
"""Share of a closed loop's concurrency that has to be in progress in the mean."""

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
"""Environment in which glibc keeps the memory that it got: mallopt(3).

An event loop reads into 256 KiB, over the default of 128 KiB from which on memory is fetched from
the system and given back each time. That was a third of the work to hear a part of audio.
"""

_LINE_BYTES = 1 << 30
"""Longest line of a process: all of its records."""


class Reporter(Protocol):
    """Hears how far a run is."""

    def begin(self, what: str, total: int) -> None:
        """Another run begins."""

    def advance(self, ended: int, failed: int) -> None:
        """So many of its generations ended and failed."""


@dataclass(frozen=True)
class Run:
    """What one run gave."""

    load: Load
    records: tuple[Record, ...]
    summary: Summary
    processes: int

    @property
    def kept_up(self) -> bool:
        """Whether a closed loop had about as many generations in progress as it claims.

        Processes share its slots, and the first of them may be done long before the last. To open
        a connection and to pause after a failure is what a slot does too.
        """
        if self.load.arrivals is not Arrivals.CLOSED:
            return True
        between = self.summary.failed * PAUSE_SECONDS
        between += sum(r.connect_seconds or 0.0 for r in self.records if r.counted)
        held = self.summary.in_progress + between / self.summary.seconds
        return held >= LEAST_SHARE * self.load.concurrency

    @property
    def valid(self) -> bool:
        """Whether its figures are those of the service under the load that it claims."""
        return self.summary.valid and self.kept_up


def deal(target: Target, load: Load, processes: int) -> list[dict[str, Any]]:
    """Return the parts of a load, each of which goes to a process of its own.

    A process has its share of the slots, and as many of the generations for each slot as the
    others: all end at about the same time.
    """
    offsets = _offsets(load)
    if offsets is None:
        processes = min(processes, load.concurrency)
    slots = [_part(load.concurrency, index, processes) for index in range(processes)]
    ends = [load.generations * held // load.concurrency for held in accumulate(slots)]
    return [
        {
            "target": asdict(target),
            "seed": load.seed,
            "index": index,
            "processes": processes,
            "offsets": offsets[index::processes] if offsets is not None else None,
            "concurrency": slots[index],
            "count": count,
        }
        for index, count in enumerate(map(sub, ends, [0, *ends]))
    ]


def _offsets(load: Load) -> list[tuple[int, float]] | None:
    if load.arrivals is Arrivals.CLOSED:
        return None
    if load.arrivals is Arrivals.CONSTANT:
        return list(enumerate(constant(load.rate, load.generations)))
    return list(enumerate(poisson(load.rate, load.generations, load.seed)))


def _part(total: int, index: int, parts: int) -> int:
    return total // parts + (index < total % parts)


async def run(target: Target, load: Load, *, processes: int, reporter: Reporter) -> Run:
    """Run a load once.

    Raises
    ------
    SonicEksError
        When a process of the load ended by itself.
    """
    parts = deal(target, load, processes)
    children: list[Process] = []
    try:
        for _ in parts:
            children.append(await _spawn(target.key))
        await asyncio.gather(*(_prepare(c, p) for c, p in zip(children, parts, strict=True)))
        start = {"start": time.monotonic() + START_SECONDS}
        heard = [(0, 0)] * len(children)

        async def follow(index: int) -> dict[str, Any]:
            await _write(children[index], start)
            while "records" not in (line := await _read(children[index])):
                heard[index] = line["ended"], line["failed"]
                reporter.advance(sum(e for e, _ in heard), sum(f for _, f in heard))
            return line

        answers = await asyncio.gather(*(follow(index) for index in range(len(children))))
        await asyncio.gather(*(child.wait() for child in children))
    finally:
        await asyncio.gather(*(_end(child) for child in children))
    records = sorted(
        (Record.from_dict(data) for answer in answers for data in answer["records"]),
        key=lambda record: record.scheduled,
    )
    lags = [max(answer[name] for answer in answers) for name in ("lag", "opening_lag")]
    return Run(load, tuple(records), summarize(records, *lags), len(parts))


async def _spawn(key: str) -> Process:
    # From wherever this package was imported, be it an archive that nobody installed.
    places = [str(Path(sonic_eks.__file__).parent.parent), *_search_path()]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "sonic_eks.bench.process"),
        stdin=PIPE,
        stdout=PIPE,
        limit=_LINE_BYTES,
        env={
            **ALLOCATOR,
            **environment_without_key(key),
            "PYTHONPATH": os.pathsep.join(places),
        },
        # Ctrl-C is for this process, which then ends the others.
        start_new_session=True,
    )


def _search_path() -> Sequence[str]:
    return [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]


async def _prepare(child: Process, part: dict[str, Any]) -> None:
    await _write(child, part)
    await _read(child)


async def _write(child: Process, document: dict[str, Any]) -> None:
    assert child.stdin is not None
    # By a pipe, so that the API key is in no list of processes and in no environment.
    child.stdin.write(json.dumps(document).encode() + b"\n")
    with contextlib.suppress(OSError):  # its end is told by _read
        await child.stdin.drain()


async def _read(child: Process) -> dict[str, Any]:
    assert child.stdout is not None
    line = await child.stdout.readline()
    if not line.endswith(b"\n"):
        status = await child.wait()
        raise SonicEksError(
            f"bench: a process of the load was ended by signal {-status}"
            f" ({signal.strsignal(-status)}); was there enough memory?"
            if status < 0
            else f"bench: a process of the load ended with status {status}; see what it printed",
            exit_status=PROBLEM_FOUND,
        )
    document: dict[str, Any] = json.loads(line)
    return document


async def _end(child: Process) -> None:
    """End a process, which is at its end when the run is."""
    if child.returncode is None:
        # Not Process.kill: it may reap the process, and its status would be lost.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
    await child.wait()
