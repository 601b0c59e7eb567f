"""What counts as active, from byte counters and from a load metric."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stream_gate import watch
from sidecar.stream_gate.watch import LoadWatch, SocketWatch, State, parse_load

IDLE = 2.0


class Sockets:
    """Byte counters to look at, and errors to meet on the way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counters: dict[str, int] = {}
        self.netlink_error: OSError | None = None
        self.proc_error: OSError | None = None
        self.interruptions = 0
        monkeypatch.setattr(watch, "read_netlink", self._netlink)
        monkeypatch.setattr(watch, "read_proc", self._proc)
        self._watch = SocketWatch([5000], IDLE)

    def _netlink(self, _ports, _without):
        if self.interruptions:
            self.interruptions -= 1
            raise InterruptedError
        if self.netlink_error:
            raise self.netlink_error
        return dict(self.counters)

    def _proc(self, _ports, _without):
        if self.proc_error:
            raise self.proc_error
        return {("proc", name): 0 for name in self.counters}

    def look(self, now: float, **counters: int) -> State:
        self.counters = counters
        return asyncio.run(self._watch.look(now))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Sockets:
    return Sockets(monkeypatch)


def test_payload_within_the_idle_time_is_active(seen: Sockets) -> None:
    seen.look(0, a=10_000, b=10_000)
    seen.look(2, a=10_000, b=10_000)
    state = seen.look(2.5, a=14_000, b=10_000)
    assert (state.active, len(state.connections or ()), state.quiet) == (1, 2, False)
    assert seen.look(4.4, a=14_000, b=10_000).active == 1
    state = seen.look(4.6, a=14_000, b=10_000)
    assert (state.active, state.quiet) == (0, True)


@pytest.mark.parametrize(("payload", "active"), [(64, 0), (65, 1)])
def test_keepalives_are_not_activity(seen: Sockets, payload: int, active: int) -> None:
    seen.look(0, a=5000)
    assert seen.look(2, a=5000 + payload).active == active


def test_keepalives_do_not_add_up(seen: Sockets) -> None:
    """A ping and its pong once a second for an hour."""
    states = [seen.look(float(second), a=5000 + 16 * second) for second in range(3600)]
    assert {state.active for state in states[2:]} == {0}


def test_slow_trickle_is_activity(seen: Sockets) -> None:
    """The window slides: 33 bytes a second are 66 in any two."""
    states = [seen.look(float(second), a=5000 + 33 * second) for second in range(60)]
    assert {state.active for state in states[2:]} == {1}


def test_new_connection_counts_from_its_first_byte(seen: Sockets) -> None:
    seen.look(0)
    seen.look(2)
    assert seen.look(2.5, a=300).active == 1
    assert seen.look(3.0, a=300, b=10).active == 1
    assert seen.look(4.6, a=300, b=10).active == 0


def test_first_looks_take_old_payload_for_new(seen: Sockets) -> None:
    """After a restart the gate has no history; it must not call a busy pod quiet."""
    assert seen.look(0, a=10_000).active == 1
    assert seen.look(1, a=10_000).active == 1
    assert seen.look(2, a=10_000).active == 0


def test_without_netlink_each_connection_counts_as_active(seen: Sockets) -> None:
    seen.netlink_error = PermissionError()
    for now in range(5):
        state = seen.look(float(now), a=10, b=10)
        assert (state.source, state.active, state.quiet) == ("proc", 2, False)
    assert seen.look(5).quiet


def test_change_of_source_forgets_the_history(seen: Sockets) -> None:
    seen.look(0, a=10_000)
    seen.look(2, a=10_000)
    seen.netlink_error = OSError()
    seen.look(3, a=10_000)
    seen.netlink_error = None
    assert seen.look(3.5, a=10_000).active == 1


def test_nothing_readable_is_unknown_not_zero(seen: Sockets) -> None:
    seen.netlink_error = seen.proc_error = OSError()
    state = seen.look(0, a=1)
    assert (state.source, state.connections, state.active) == ("none", None, None)
    assert not state.quiet


def test_interrupted_dump_is_tried_again(seen: Sockets) -> None:
    seen.interruptions = 3
    assert seen.look(0, a=1).source == "netlink"


# Prometheus' text format: "Exposition formats" in the Prometheus documentation
@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("inferno_worker_load 3\n", 3),
        ("inferno_worker_load 0\n", 0),
        ('inferno_worker_load{model="a"} 2\ninferno_worker_load{model="b"} 1\n', 3),
        ('inferno_worker_load{a="}",b="x\\"y",} 2 1700000000000\n', 2),
        ("# TYPE inferno_worker_load gauge\ninferno_worker_load\t1.5\n", 1.5),
        ("inferno_worker_load_total 9\ninferno_worker_load 1\r\n", 1),
        ("", None),
        ("inferno_worker_capacity 8\n", None),
        ("inferno_worker_load NaN\n", None),
        ("inferno_worker_load +Inf\n", None),
        ("inferno_worker_load -1\n", None),
        ("inferno_worker_load x\n", None),
        ('inferno_worker_load{a="b 3\n', None),
        ('inferno_worker_load{m="a"} 0\ninferno_worker_load{m="b"} NaN\n', None),
        ("<html>busy</html>", None),
    ],
)
def test_parse_load(text: str, load: float | None) -> None:
    assert parse_load(text, "inferno_worker_load") == load


@given(st.text())
def test_parse_load_survives_anything(text: str) -> None:
    load = parse_load(f"inferno_worker_load{text}\n", "inferno_worker_load")
    assert load is None or load >= 0


def test_parse_load_is_linear_in_a_hostile_line() -> None:
    hostile = "inferno_worker_load{" + '"\\' * 200_000
    assert parse_load(hostile, "inferno_worker_load") is None


@contextlib.asynccontextmanager
async def answering(data: bytes | None) -> AsyncIterator[str]:
    """A server that answers each request with `data`; None: hangs."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if data is None:
            await asyncio.Event().wait()
        else:
            writer.write(data)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
    finally:
        server.close()


def look_at(data: bytes | None, *times: float) -> list[State]:
    async def run() -> list[State]:
        async with answering(data) as url:
            load = LoadWatch(url, "inferno_worker_load", IDLE)
            return [await load.look(now) for now in times]

    return asyncio.run(run())


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


def test_load_is_read_and_must_be_zero_for_the_idle_time() -> None:
    [busy] = look_at(OK + b"inferno_worker_load 2\n", 0)
    assert (busy.source, busy.active, busy.connections, busy.quiet) == ("metrics", 2, None, False)
    zeros = look_at(OK + b"inferno_worker_load 0\n", 0, 1, 1.9, 2)
    assert [state.quiet for state in zeros] == [False, False, False, True]


def test_part_of_a_generation_is_one_that_can_be_cut() -> None:
    [state] = look_at(OK + b"inferno_worker_load 0.2\n", 0)
    assert state.active == 1


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\0\xff garbage",
        b"HTTP/1.1 500 Oops\r\n\r\ninferno_worker_load 0\n",
        OK + b"other 0\n",
        OK + b"inferno_worker_load \xff\xfe\n",
    ],
    ids=["hangs", "closes", "garbage", "500", "no such metric", "not a number"],
)
def test_unreadable_load_is_unknown(monkeypatch, data: bytes | None) -> None:
    monkeypatch.setattr(watch, "_LOAD_TIMEOUT_SECONDS", 0.2)
    states = look_at(data, 0, 10)
    assert [(state.source, state.active, state.quiet) for state in states] == [
        ("none", None, False)
    ] * 2


def test_endless_answer_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(watch, "_LOAD_LIMIT_BYTES", 1000)
    assert look_at(OK + b"inferno_worker_load 0\n" + b"x" * 10_000, 0)[0].source == "none"


def test_unknown_load_starts_the_idle_time_anew(monkeypatch) -> None:
    answers = iter(["inferno_worker_load 0", "gibberish", *["inferno_worker_load 0"] * 2])

    async def fetch(_self: LoadWatch) -> str:
        return next(answers)

    monkeypatch.setattr(LoadWatch, "_fetch", fetch)
    load = LoadWatch("http://127.0.0.1/metrics", "inferno_worker_load", IDLE)
    quiet = [asyncio.run(load.look(now)).quiet for now in (0.0, 1.5, 3.0, 3.5)]
    assert quiet == [False, False, False, True]


def test_a_load_that_cannot_be_reached_is_unknown(unused_port: int) -> None:
    """A wrong port, or a server whose metrics thread is gone, must not look idle."""
    load = LoadWatch(f"http://127.0.0.1:{unused_port}/metrics", "inferno_worker_load", IDLE)
    states = [asyncio.run(load.look(now)) for now in (0.0, 2.0, 60.0)]
    assert {(state.source, state.active, state.quiet) for state in states} == {
        ("none", None, False)
    }


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
