"""How many streams a core carries until its client is late: the load test and plain loops.

Alone, ``python -m benchmarks.streams_core echo|hear PORT STREAMS`` is one run of a plain loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from websockets.asyncio.client import ClientConnection, connect

from benchmarks.chunks_server import PARTS
from sonic_eks.bench.lag import LagProbe
from sonic_eks.bench.plan import Load, Target
from sonic_eks.bench.run import ALLOCATOR, Reporter, run
from sonic_eks.bench.statistics import LAG_LIMIT_SECONDS, percentile
from tests.standin.process import ROOT, free_ports, python

TRIES = 3
PERIOD_SECONDS = 0.1
"""Time between two parts of a stream's audio: 0.5 s each, five times faster than it plays."""

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""What this process began with: once it has a core to itself, it and its children see no other."""


@contextlib.contextmanager
def chunks_server() -> Iterator[int]:
    """Serve parts of audio on a core of its own, as fast as any client can ask."""
    [port] = free_ports(1)
    command = python("benchmarks.chunks_server", port, PERIOD_SECONDS)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            pin(process.pid, 1)
            yield port
        finally:
            process.kill()


def pin(pid: int, core: int) -> None:
    """Keep a process on a core of its own, where the system knows of that."""
    if len(CORES) > core:
        os.sched_setaffinity(pid, {CORES[core]})


async def our_lag(port: int, reporter: Reporter, streams: int) -> float:
    """Return the lag p99 in seconds of the load test with so many streams."""
    found = await run(
        Target(url=f"http://127.0.0.1:{port}", key="standin"),
        Load(concurrency=streams, generations=streams),
        processes=1,
        reporter=reporter,
    )
    heard = sum(record.completed for record in found.records if record.counted)
    return found.summary.lag if heard == streams else math.inf


async def plain_lag(way: str, port: int, streams: int) -> float:
    """Return the lag p99 in seconds of a plain loop with so many streams."""
    command = python("benchmarks.streams_core", way, port, streams)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, cwd=ROOT, env={**ALLOCATOR, **os.environ}
    )
    output, _ = await process.communicate()
    return float(json.loads(output)["lag"])


async def echo(socket: ClientConnection, begin: float) -> None:
    """Ask for a part and hear it, once a period.

    Streams begin at random within a period, as those of the server do: at even distances none
    would ever wait for another.
    """
    loop, ask = asyncio.get_running_loop(), json.dumps({"transcript": "x" * 139})
    due = begin + PERIOD_SECONDS * random.random()
    for _ in range(PARTS):
        await asyncio.sleep(due - loop.time())
        await socket.send(ask)
        await socket.recv()
        due += PERIOD_SECONDS


async def hear(socket: ClientConnection, begin: float) -> None:
    """Ask once, and hear every part and the end."""
    await socket.send(json.dumps({"transcript": "x" * 139, "context_id": "0" * 32}))
    for _ in range(PARTS + 1):
        await socket.recv(decode=False)


WAYS = {"echo": ("/plain", echo), "hear": ("/tts/websocket", hear)}


async def plain_loop(way: str, port: int, streams: int) -> float:
    """Return the lag p99 in seconds of many sockets, a stream on each."""
    probe, loop = LagProbe(), asyncio.get_running_loop()
    path, stream = WAYS[way]
    async with contextlib.AsyncExitStack() as stack:
        address = f"ws://127.0.0.1:{port}{path}"
        sockets = [
            await stack.enter_async_context(
                connect(address, compression=None, max_size=None, proxy=None)
            )
            for _ in range(streams)
        ]
        gc.freeze()  # as the load test does
        begin = loop.time()
        probing = asyncio.create_task(probe.run())
        await asyncio.gather(*(stream(socket, begin) for socket in sockets))
        probing.cancel()
        # A loop that falls behind need not be late with anything, but carries less than it should.
        in_time = loop.time() - begin <= PARTS * PERIOD_SECONDS * 1.1
    return percentile(probe.late_seconds, 99) if in_time else math.inf


async def carried(lag: Callable[[int], Awaitable[float]]) -> int:
    """Return the streams at which the lag stays within its limit in one of three, to 5 %.

    What else the machine does adds to the lag, and each time the streams begin at other moments.
    """

    async def within(streams: int) -> bool:
        for _ in range(TRIES):
            if await lag(streams) <= LAG_LIMIT_SECONDS:
                return True
        return False

    low, high = 0, 128
    while await within(high):
        low, high = high, high * 2
    while high - low > max(low // 20, 1):
        middle = (low + high) // 2
        if await within(middle):
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True)
class Carried:
    """Streams that a core carries in the load test, in an echo loop, and in one that only hears."""

    ours: int
    echo: int
    hear: int


async def compare_on_a_core(reporter: Reporter) -> Carried:
    """Have all three carried by the same core, one after the other, with a server on another."""
    pin(0, 0)
    with chunks_server() as port:
        return Carried(
            await carried(partial(our_lag, port, reporter)),
            await carried(partial(plain_lag, "echo", port)),
            await carried(partial(plain_lag, "hear", port)),
        )


if __name__ == "__main__":
    way, port, streams = sys.argv[1:]
    print(json.dumps({"lag": asyncio.run(plain_loop(way, int(port), int(streams)))}))
