"""The stream gate as a process of its own: what it counts, and when its drains end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sys
from pathlib import Path

import pytest

from tests.standin.gate import Peers, run, running, server, talk
from tests.standin.process import (
    free_ports,
    http_get,
    python,
    require_linux,
)

pytestmark = pytest.mark.slow

HOSTS = ["127.0.0.1", "::1"]


@pytest.fixture(autouse=True)
def _linux() -> None:
    require_linux()


WITHOUT_NETLINK = """
import runpy, socket, sys
class Refusing(socket.socket):
    def __init__(self, family=-1, *rest, **named):
        if family == socket.AF_NETLINK:
            raise PermissionError(1, "Operation not permitted")
        super().__init__(family, *rest, **named)
socket.socket = Refusing
runpy.run_module("sidecar.stream_gate", run_name="__main__", alter_sys=True)
"""


# Puts a log in the place of standard output, then runs the gate.
WITH_LOG = """
import os, runpy
reads, writes = os.pipe()
{prepare}
os.dup2(writes, 1)
runpy.run_module("sidecar.stream_gate", run_name="__main__", alter_sys=True)
"""
FULL = """
os.set_blocking(writes, False)
while True:
    try:
        os.write(writes, b"x" * 4096)
    except BlockingIOError:
        break
os.set_blocking(writes, True)
"""


@pytest.mark.parametrize("prepare", [FULL, "os.close(reads)"], ids=["full", "closed"])
def test_a_log_that_takes_nothing_stops_nothing(prepare: str) -> None:
    async def scenario() -> None:
        code = WITH_LOG.format(prepare=prepare)
        with server() as (listener, port):
            command = [sys.executable, "-c", code]
            async with running("--watch-port", port, command=command) as gate:
                peers = Peers(listener, 1)
                talking = asyncio.create_task(talk(peers, 0))
                await gate.becomes("sonic_active_streams", 1)
                drain = asyncio.create_task(gate.drain())
                await gate.becomes("sonic_draining", 1)
                talking.cancel()
                assert (await drain)["reason"] == "idle"
                peers.close()

    run(scenario)


@pytest.mark.parametrize("host", HOSTS)
def test_counts_connections_and_streams(host: str) -> None:
    async def scenario() -> None:
        with server(host) as (listener, port):
            async with running("--watch-port", port) as gate:
                assert await gate.value("sonic_open_connections") == 0
                peers = Peers(listener, 3)
                await gate.becomes("sonic_open_connections", 3)
                await gate.becomes("sonic_active_streams", 0)
                talking = asyncio.create_task(talk(peers, 1))
                await gate.becomes("sonic_active_streams", 1)
                talking.cancel()
                await gate.becomes("sonic_active_streams", 0)
                peers.close()
                await gate.becomes("sonic_open_connections", 0)

    run(scenario)


def test_drain_waits_for_the_last_busy_connection() -> None:
    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port, propagation=0.3) as gate:
                peers = Peers(listener, 2)
                talking = asyncio.create_task(talk(peers, 0, 1))
                await gate.becomes("sonic_active_streams", 2)
                drain = asyncio.create_task(gate.drain())
                await gate.becomes("sonic_draining", 1)
                await asyncio.sleep(1)
                assert not drain.done()
                assert (await http_get(gate.port, "/ready"))[0] == 200
                talking.cancel()
                await asyncio.sleep(0)
                peers.close()
                assert (await drain)["reason"] == "drained"
                assert await gate.value("sonic_draining") == 0
                assert await gate.value("sonic_streams_cut_total") == 0

    run(scenario)


def test_a_drain_that_nobody_waits_for_is_one_all_the_same() -> None:
    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port) as gate:
                peers = Peers(listener, 1)
                talking = asyncio.create_task(talk(peers, 0))
                await gate.becomes("sonic_active_streams", 1)
                assert (await http_get(gate.port, "/begin-drain", seconds=2))[0] == 200
                assert await gate.value("sonic_draining") == 1
                talking.cancel()
                await asyncio.sleep(0)
                # Who waits joins it.
                assert (await gate.drain())["reason"] == "idle"
                assert await gate.value("sonic_draining") == 0
                peers.close()

    run(scenario)


def test_pooled_idle_connections_do_not_hold_a_drain() -> None:
    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port) as gate:
                peers = Peers(listener, 5)
                await gate.becomes("sonic_open_connections", 5)
                assert (await gate.drain())["reason"] == "idle"
                peers.close()

    run(scenario)


def test_budget_ends_a_drain_and_counts_the_cuts() -> None:
    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port, budget=1.0) as gate:
                peers = Peers(listener, 3)
                talking = asyncio.create_task(talk(peers, 0, 2))
                await gate.becomes("sonic_active_streams", 2)
                answer = await gate.drain()
                talking.cancel()
                assert (answer["reason"], answer["cut"]) == ("budget", 2)
                assert await gate.value("sonic_streams_cut_total") == 2
                peers.close()

    run(scenario)


def test_thousand_connections_are_cheap() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 3000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(3000, hard), hard))

    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port) as gate:
                peers = Peers(listener, 1000)
                await gate.becomes("sonic_open_connections", 1000)
                before = _cpu_seconds(gate.process.pid)
                await asyncio.sleep(2)  # 40 looks at most
                # A look takes some milliseconds; at the product's two a second that is 2 %.
                assert _cpu_seconds(gate.process.pid) - before < 40 * 0.05
                status = Path(f"/proc/{gate.process.pid}/status").read_text()
                [kib] = [line.split()[1] for line in status.splitlines() if "VmHWM" in line]
                assert int(kib) < 48 * 1024
                peers.close(*range(999))
                await gate.becomes("sonic_open_connections", 1)
                peers.close(999)

    run(scenario)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_vanished_and_stalled_clients_do_not_hold_a_drain() -> None:
    """A peer that is gone acknowledges nothing, whatever the server still writes to it."""

    async def scenario() -> None:
        with server() as (listener, port):
            async with running("--watch-port", port) as gate:
                peers = Peers(listener, 3)
                peers.clients[0].shutdown(socket.SHUT_WR)  # half-closed, the server goes on
                peers.servers[1].setblocking(False)  # takes nothing; the server writes on

                async def write_on() -> None:
                    while True:
                        with contextlib.suppress(BlockingIOError):
                            peers.servers[1].send(b"a" * 65536)
                        await asyncio.sleep(0.01)

                writing = asyncio.create_task(write_on())
                await gate.becomes("sonic_open_connections", 3)
                assert (await gate.drain())["reason"] == "idle"
                writing.cancel()
                peers.close()

    run(scenario)


def test_without_netlink_it_counts_connections_and_says_so(tmp_path: Path) -> None:
    launcher = tmp_path / "without_netlink.py"
    launcher.write_text(WITHOUT_NETLINK)

    async def scenario() -> None:
        with server() as (listener, port):
            command = [*python("x")[:1], str(launcher)]
            async with running("--watch-port", port, command=command) as gate:
                text = (await http_get(gate.port, "/metrics"))[1]
                assert 'sonic_gate_source{watch="sockets",source="proc"} 1' in text
                peers = Peers(listener, 2)
                await gate.becomes("sonic_active_streams", 2)
                drain = asyncio.create_task(gate.drain())
                await asyncio.sleep(1)
                assert not drain.done()  # idle, but that cannot be seen
                peers.close()
                assert (await drain)["reason"] == "drained"

    run(scenario)


def test_worker_whose_metrics_hang_is_drained_to_the_budget() -> None:
    async def scenario() -> None:
        with server() as (_, port):  # takes connections and never answers
            url = f"http://127.0.0.1:{port}/metrics"
            async with running("--load-url", url, budget=1.0) as gate:
                answer = await gate.drain()
                assert (answer["reason"], answer["cut"]) == ("budget", None)
                assert await gate.value("sonic_load") is None
                assert (await gate.value("sonic_gate_failed_looks_total") or 0) > 0

    run(scenario)


def test_a_load_that_cannot_be_reached_leaves_the_word_to_the_sockets() -> None:
    async def scenario() -> None:
        [closed] = free_ports(1)
        with server() as (listener, port):
            url = f"http://127.0.0.1:{closed}/metrics"
            watched = ("--watch-port", port, "--load-url", url)
            async with running(*watched, propagation=0.2, budget=2.0) as gate:
                peers = Peers(listener, 1)
                talking = asyncio.create_task(talk(peers, 0))
                await gate.becomes("sonic_active_streams", 1)
                assert await gate.value("sonic_load") is None
                answer = await gate.drain()
                talking.cancel()
                peers.close()
                # It was busy to the end: the load that nobody answers is no zero.
                assert (answer["reason"], answer["cut"]) == ("budget", 1)

    run(scenario)
