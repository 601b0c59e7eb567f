"""Reading the kernel's view of real sockets."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stream_gate import sockets
from sidecar.stream_gate.sockets import read_netlink, read_proc


@pytest.fixture(autouse=True)
def _linux() -> None:
    if sys.platform != "linux":
        pytest.skip("needs Linux: netlink and /proc")


FAMILIES = [
    pytest.param(socket.AF_INET, "127.0.0.1", id="IPv4"),
    pytest.param(socket.AF_INET6, "::1", id="IPv6"),
]


@contextlib.contextmanager
def pair(listener: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection to `listener`: client, server."""
    with socket.socket(listener.family) as client:
        client.connect(listener.getsockname()[:2])
        server, _ = listener.accept()
        with server:
            yield client, server


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_counts_payload_of_both_directions(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        assert read_netlink([port]) == {}
        with pair(listener) as (client, server):
            [(key, before)] = read_netlink([port]).items()
            assert before < 8
            client.sendall(b"x" * 1000)
            assert len(server.recv(1000, socket.MSG_WAITALL)) == 1000
            server.sendall(b"y" * 5000)
            assert len(client.recv(5000, socket.MSG_WAITALL)) == 5000
            [(key_now, after)] = read_netlink([port]).items()
            assert key_now == key
            assert 6000 <= after < 6008
        assert read_netlink([port]) == {}


@pytest.mark.parametrize("read", [read_netlink, read_proc])
@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_only_the_servers_side_of_the_watched_ports(
    family: socket.AddressFamily, host: str, read
) -> None:
    with (
        socket.create_server((host, 0), family=family) as one,
        socket.create_server((host, 0), family=family) as other,
        pair(one),
        pair(one),
        pair(other),
    ):
        ports = [s.getsockname()[1] for s in (one, other)]
        assert len(read(ports[:1])) == 2
        assert len(read(ports)) == 3
        assert len(read([1])) == 0


@pytest.mark.parametrize("read", [read_netlink, read_proc])
def test_dual_stack_listener_is_counted_once(read) -> None:
    """Servers on [::] see IPv4 clients as ::ffff:a.b.c.d."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("::1", port)):
            assert len(read([port])) == 2


@pytest.mark.parametrize("read", [read_netlink, read_proc])
def test_client_that_closed_its_half_still_counts(read) -> None:
    """CLOSE_WAIT: the server may still be sending."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pair(listener) as (client, server):
            client.shutdown(socket.SHUT_WR)
            assert server.recv(1) == b""
            assert len(read([port])) == 1


def test_bytes_that_the_peer_does_not_take_are_not_progress() -> None:
    """A stalled or vanished client: the send buffer fills, nothing more is acknowledged."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pair(listener) as (_client, server):
            server.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.send(b"z" * 65536)
            settled, looks = -1, 0
            for _ in range(200):  # until the receive window is full, however busy the machine
                [now] = read_netlink([port]).values()
                looks = looks + 1 if now == settled else 0
                if looks == 10:
                    break
                settled = now
                time.sleep(0.02)
            [again] = read_netlink([port]).values()
            assert again == settled


def test_sockets_keep_their_identity_and_do_not_share_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pair(listener):
            [first] = read_netlink([port])
            with pair(listener):
                both = set(read_netlink([port]))
            assert first in both
            assert len(both) == 2
            assert set(read_netlink([port])) == {first}


@given(st.binary(max_size=400))
def test_any_message_is_parsed_or_refused(data: bytes) -> None:
    parsed = sockets._parse_message(data, 0, len(data))
    assert parsed is None or len(data) >= 72 + 4 + 136


class _Answers:
    """A netlink socket that gives prepared answers."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def settimeout(self, _seconds):
        return None

    def send(self, data):
        return len(data)

    def recvmsg(self, _size):
        if not self._answers:
            raise TimeoutError
        return self._answers.pop(0), [], 0, None


def header(kind: int, body: bytes, flags: int = 0, sequence: int = 1) -> bytes:
    return sockets._HEADER.pack(16 + len(body), kind, flags, sequence, 0) + body


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([b""], OSError),
        ([b"\x04\0\0\0" + b"\0" * 12], OSError),
        ([b"\xff\xff\0\0" + b"\0" * 12], OSError),
        ([header(2, (-errno.EPERM).to_bytes(4, "little", signed=True))], PermissionError),
        ([header(20, b"\0" * 72, flags=0x10)], InterruptedError),
        ([header(20, b"\0" * 72)], OSError),
        ([], TimeoutError),
    ],
    ids=["empty", "short length", "long length", "refused", "interrupted", "no info", "silent"],
)
def test_bad_netlink_answers_are_errors(monkeypatch, answers, error) -> None:
    monkeypatch.setattr(sockets.socket, "socket", lambda *_: _Answers(*answers))
    with pytest.raises(error):
        read_netlink([5000])


def test_answers_to_an_earlier_request_are_ignored(monkeypatch) -> None:
    answers = [
        header(2, b"\xff\xff\xff\xff", sequence=9),
        header(3, b"\0" * 4),
        header(3, b"", 0, 2),
    ]
    monkeypatch.setattr(sockets.socket, "socket", lambda *_: _Answers(*answers))
    assert read_netlink([5000]) == {}


def test_proc_survives_odd_lines(tmp_path: Path) -> None:
    # columns of /proc/net/tcp: proc_net_tcp.txt of the Linux kernel's documentation
    (tmp_path / "tcp").write_text(
        "  sl  local_address rem_address   st\n"
        "   0: 0100007F:1388 0100007F:C001 01 0:0\n"
        "   1: 0100007F:1388 0100007F:C002 08 0:0\n"
        "   2: 0100007F:1388 00000000:0000 0A 0:0\n"
        "   3: 0100007F:1388 0100007F:C003 06 0:0\n"
        "   4: 0100007F:1389 0100007F:C004 01 0:0\n"
        "   5: junk\n\n   6: 0100007F:zz x 01\n"
    )
    assert len(read_proc([5000], root=str(tmp_path))) == 2
    with pytest.raises(OSError, match="neither"):
        read_proc([5000], root=str(tmp_path / "none"))
