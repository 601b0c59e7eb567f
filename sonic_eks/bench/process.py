"""One process of a load: its part of a run on standard input, records on standard output.

A process of its own, so that nothing but the load runs on its event loop, and several where one
core is not enough. Both ways one JSON document a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from sonic_eks.bench.driver import Driver
from sonic_eks.bench.http import HttpConnections
from sonic_eks.bench.lag import LagProbe
from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.bench.protocol import Transport
from sonic_eks.bench.statistics import percentile
from sonic_eks.bench.texts import texts
from sonic_eks.bench.websocket import WebSockets

_REPORT_SECONDS = 0.25


def transport_of(target: Target) -> Transport:
    """Return the connections that a target's protocol needs."""
    if target.protocol is Protocol.WEBSOCKET:
        return WebSockets(target)
    return HttpConnections(target)


def texts_of(part: dict[str, Any]) -> Iterator[str]:
    """Return the texts of one of several processes: every n-th of the run's."""
    return itertools.islice(texts(part["seed"]), part["index"], None, part["processes"])


async def run(part: dict[str, Any]) -> dict[str, Any]:
    """Run a part of a load; return its records and how late this process was."""
    target = Target(**{**part["target"], "protocol": Protocol(part["target"]["protocol"])})
    transport, probe = transport_of(target), LagProbe()
    driver = Driver(target, transport, texts_of(part), part["start"])
    probing = asyncio.create_task(probe.run())
    watching = [probing, asyncio.create_task(_report(driver))]

    opening: list[float] = []

    def steady() -> None:
        # To open many connections is work that the counted generations do not meet; and they are
        # no garbage, either.
        opening.extend(probe.late_seconds)
        probe.late_seconds.clear()
        gc.freeze()

    def over() -> None:
        # Nor do they meet the work to end those that run then, and their connections.
        probing.cancel()

    driver.on_steady, driver.on_over = steady, over
    # What was imported is not garbage; to look through it would be a pause of milliseconds.
    gc.freeze()
    try:
        if part["offsets"] is not None:
            await driver.open_loop([(number, offset) for number, offset in part["offsets"]])
        else:
            await driver.closed_loop(part["concurrency"], part["count"])
    finally:
        for task in watching:
            task.cancel()
        await transport.close()
    late = (probe.late_seconds, driver.late_seconds)
    return {
        "records": [record.to_dict() for record in driver.records],
        "lag": max(percentile(seconds or [0.0], 99) for seconds in late),
        "opening_lag": percentile(opening or [0.0], 99),
    }


async def _report(driver: Driver) -> None:
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        try:
            _print({"ended": driver.ended, "failed": driver.failed})
        except BrokenPipeError:
            os._exit(1)  # who started this process is gone, and with it the reason for the load


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the part that the first line of standard input describes, once the second says when."""
    part = json.loads(sys.stdin.readline())
    _print({"ready": True})
    part["start"] = json.loads(sys.stdin.readline())["start"]
    # Interrupts are for the process that started this one; it ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        _print(asyncio.run(run(part)))


if __name__ == "__main__":
    main()
