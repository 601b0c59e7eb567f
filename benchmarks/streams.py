"""Measure the load test itself: does it say what is true, and how many streams does a core carry.

1. Agreement: percentiles of time to first byte against the delays that a stand-in logged, without
   and with failures; the official SDK on the same server.
2. The search, on a stand-in whose capacity is known from the table that it follows.
3. Streams on one core until the client itself is late, beside two plain `websockets` loops that
   look at nothing: an echo loop, which asks for each part of audio and is the limit, and one that
   asks once for a stream and hears it, which is the least that this work can be.

All of it on loopback; give it a machine that does nothing else. Status 1: a limit was passed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartesia import AsyncCartesia
from rich.console import Console
from rich.table import Table

from benchmarks.streams_core import TRIES, compare_on_a_core
from sonic_eks.bench.measure import Plan, measure
from sonic_eks.bench.plan import Load, Slo, Target
from sonic_eks.bench.run import Run, run
from sonic_eks.bench.statistics import LAG_LIMIT_SECONDS, percentile, ttfb_percentile
from sonic_eks.bench.texts import texts
from tests.standin.serving import Served, served

GENERATIONS = 2000
FAULTY_GENERATIONS = 500
FAULT = "hang:0.02"
REPEATS = 2

CLOCK = 4
"""How much faster than the wall clock the stand-in is; its first audio takes 12 to 75 ms then."""

RELATIVE, ABSOLUTE_SECONDS = 0.03, 0.002
SDK_RELATIVE, SDK_ABSOLUTE_SECONDS = 0.10, 0.005
SDK_GENERATIONS = 200

# Rows of the stand-in's table, tests/standin/README.md: p95 is 85 ms at 3 generations in progress
# (interpolated) and 115 ms at 4.
KNOWN_CAPACITY, KNOWN_SLO_MS = 3, 100.0

SHARE_LIMIT = 0.5


@dataclass
class Figure:
    """A figure beside its limit."""

    name: str
    measured: str
    limit: str
    passed: bool


@dataclass
class Result:
    """What was measured."""

    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, measured: str, limit: str, passed: bool) -> None:
        """Add a figure."""
        self.figures.append(Figure(name, measured, limit, passed))

    @property
    def passed(self) -> bool:
        """Whether all is within the limits."""
        return all(figure.passed for figure in self.figures)


class Quiet:
    """Hears of runs and says nothing."""

    def begin(self, what: str, total: int) -> None:
        """Say nothing."""

    def advance(self, ended: int, failed: int) -> None:
        """Say nothing."""


def target(service: Served, **more: Any) -> Target:
    """Return the stand-in as a target."""
    return Target(url=service.url, key="standin", **more)


async def valid(once: Callable[[], Awaitable[Run]]) -> Run:
    """Run, and repeat a run that its own self-check marks not valid, twice at most."""
    for _ in range(1 + REPEATS):
        found = await once()
        if found.summary.valid:
            break
    return found


def compare(result: Result, name: str, service: Served, found: Run) -> None:
    """Compare percentiles with those of the delays that the stand-in logged."""
    logged = service.truth()
    counted = [record for record in found.records if record.counted]
    true = [logged[record.context_id] for record in counted]
    delays = [math.inf if seconds is None else seconds for seconds in true]
    failed = sum(seconds is None for seconds in true)
    result.add(
        f"{name}: generations, of which failed",
        f"{len(counted)}, {found.summary.failed}",
        f"{len(counted)}, {failed}",
        found.summary.failed == failed,
    )
    for percent in (50, 95, 99):
        truth, seen = percentile(delays, percent), ttfb_percentile(found.records, percent)
        allowed = max(truth * RELATIVE, ABSOLUTE_SECONDS)
        result.add(
            f"{name}: TTFB p{percent} ms",
            f"{seen * 1000:.2f}",
            f"{truth * 1000:.2f} ± {allowed * 1000:.2f}",
            seen == truth or (math.isfinite(truth) and abs(seen - truth) <= allowed),
        )
    lag = found.summary.lag
    limit = f"{LAG_LIMIT_SECONDS * 1000:g}"
    result.add(f"{name}: lag p99 ms", f"{lag * 1000:.2f}", limit, found.summary.valid)


async def agreement(result: Result, folder: Path) -> None:
    """Compare with the truth, without and with failures, and with the SDK."""
    with served(folder, "--clock", CLOCK) as service:
        load = Load(concurrency=8, generations=GENERATIONS)
        found = await valid(lambda: run(target(service), load, processes=1, reporter=Quiet()))
        compare(result, "agreement", service, found)
        ours = await valid(
            lambda: run(
                target(service),
                Load(concurrency=4, generations=SDK_GENERATIONS),
                processes=1,
                reporter=Quiet(),
            )
        )
        theirs = await sdk_median(service, 4, SDK_GENERATIONS)
        median = ttfb_percentile(ours.records, 50)
        allowed = max(theirs * SDK_RELATIVE, SDK_ABSOLUTE_SECONDS)
        result.add(
            "beside the SDK: TTFB p50 ms",
            f"{median * 1000:.2f}",
            f"{theirs * 1000:.2f} ± {allowed * 1000:.2f}",
            abs(median - theirs) <= allowed,
        )
        service.fault(FAULT)
        faulty = Load(concurrency=8, generations=FAULTY_GENERATIONS)
        impatient = target(service, timeout_seconds=2.0)
        found = await valid(lambda: run(impatient, faulty, processes=1, reporter=Quiet()))
        compare(result, f"agreement, {FAULT}", service, found)


async def sdk_median(service: Served, concurrency: int, count: int) -> float:
    """Return the median time to first audio in seconds that the official SDK sees."""
    said = texts(1)
    seen: list[float] = []
    voice: Any = {"mode": "id", "id": "standin"}
    address = f"127.0.0.1:{service.port}"
    async with AsyncCartesia(
        api_key="standin", base_url=f"http://{address}", websocket_base_url=f"ws://{address}"
    ) as client:

        async def caller() -> None:
            options: Any = {"compression": None}
            async with client.tts.websocket_connect(
                websocket_connection_options=options
            ) as connection:
                while len(seen) < count:
                    context = connection.context(timeout=10)
                    begin = time.monotonic()
                    await context.send(
                        model_id="sonic-3",
                        transcript=next(said),
                        voice=voice,
                        output_format={
                            "container": "raw",
                            "encoding": "pcm_s16le",
                            "sample_rate": 24000,
                        },
                        continue_=False,
                    )
                    first = True
                    async for event in context.receive():
                        if first and event.type == "chunk":
                            seen.append(time.monotonic() - begin)
                            first = False

        await asyncio.gather(*(caller() for _ in range(concurrency)))
    return statistics.median(seen)


async def search(result: Result, folder: Path) -> None:
    """Search the capacity that the stand-in's table gives."""
    with served(folder, "--clock", CLOCK) as service:
        plan = Plan(
            target=target(service),
            load=Load(generations=120),
            slo=Slo(ttfb_ms=KNOWN_SLO_MS / CLOCK),
            max_concurrency=16,
        )
        found = await measure(plan, Quiet())
    shown = "none: " + "; ".join(found.problems) if found.highest is None else str(found.highest)
    near = found.highest is not None and abs(found.highest - KNOWN_CAPACITY) <= 1
    result.add("search: generations at the objective", shown, f"{KNOWN_CAPACITY} ± 1", near)


async def core(result: Result) -> None:
    """Compare the streams that one core carries with those of plain loops."""
    found = await compare_on_a_core(Quiet())
    result.add(
        f"streams on a core at lag p99 {LAG_LIMIT_SECONDS * 1000:g} ms, best of {TRIES}",
        str(found.ours),
        f"{SHARE_LIMIT:g} x {found.echo} of an echo loop ({found.hear} of one that only hears)",
        found.ours >= SHARE_LIMIT * found.echo,
    )


SECTIONS = ("core", "agreement", "search")


async def measure_all(parts: list[str]) -> Result:
    """Measure the parts that were asked for."""
    result = Result()
    with tempfile.TemporaryDirectory() as folder:
        if "agreement" in parts:
            await agreement(result, Path(folder))
        if "search" in parts:
            await search(result, Path(folder))
        if "core" in parts:
            await core(result)
    return result


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--part", choices=SECTIONS, action="append", help="only this; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")
    options = parser.parse_args()
    result = asyncio.run(measure_all(options.part or list(SECTIONS)))
    if options.json:
        figures = [vars(figure) for figure in result.figures]
        print(json.dumps({"passed": result.passed, "figures": figures}, indent=2))
    else:
        shown = Table(title="load test")
        for column in ("figure", "measured", "truth or limit", ""):
            shown.add_column(column)
        for figure in result.figures:
            verdict = "" if figure.passed else "missed"
            shown.add_row(figure.name, figure.measured, figure.limit, verdict)
        Console().print(shown)
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
