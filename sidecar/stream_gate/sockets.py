"""The pod's TCP connections, read without privilege."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import Path

Key = Hashable
"""Identity of a socket for as long as it lives."""

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h and linux/tcp.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x001 | 0x300
_NLM_F_DUMP_INTR = 0x10
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_ESTABLISHED, _CLOSE_WAIT, _LISTEN = 1, 8, 10
_STATES = 1 << _ESTABLISHED | 1 << _CLOSE_WAIT
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBxI")  # inet_diag_req_v2: family, protocol, extensions, states
_MESSAGE_BYTES = 72  # inet_diag_msg: 4, inet_diag_sockid 48, five u32
_BYTES = struct.Struct("=QQ")  # tcp_info: tcpi_bytes_acked, tcpi_bytes_received
_BYTES_OFFSET = 120
_NETLINK_TIMEOUT_SECONDS = 2.0


def _attributes(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of each rtattr in data[at:end]."""
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > end:
            return
        yield kind, at + 4, at + length
        at += (length + 3) & ~3


def _parse_message(data: bytes, at: int, end: int) -> tuple[int, int, Key, int] | None:
    """Local and remote port, key and payload bytes of an inet_diag_msg; None without counters."""
    if end - at < _MESSAGE_BYTES:
        return None
    local, remote = struct.unpack_from("!HH", data, at + 4)
    cookie = data[at + 44 : at + 52]
    for kind, start, stop in _attributes(data, at + _MESSAGE_BYTES, end):
        if kind == _INET_DIAG_INFO and stop - start >= _BYTES_OFFSET + _BYTES.size:
            acked, received = _BYTES.unpack_from(data, start + _BYTES_OFFSET)
            return local, remote, cookie, acked + received
    return None


def _dump(
    diag: socket.socket, family: int, port: int, sequence: int, without: Collection[int]
) -> dict[Key, int]:
    """Payload bytes by socket of one address family and local port; the kernel filters."""
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _STATES)
    body += struct.pack("!H", port).ljust(48, b"\0")
    head = _HEADER.pack(
        _HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, sequence, 0
    )
    diag.send(head + body)
    found: dict[Key, int] = {}
    while True:
        data, _, flags, _ = diag.recvmsg(1 << 17)
        if not data or flags & socket.MSG_TRUNC:
            raise OSError("netlink answer cut short")
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, message_flags, answers, _ = _HEADER.unpack_from(data, at)
            end = at + length
            if length < _HEADER.size or end > len(data):
                raise OSError("netlink answer malformed")
            if answers == sequence:
                if kind == _NLMSG_DONE:
                    return found
                if kind == _NLMSG_ERROR:
                    (code,) = struct.unpack_from("=i", data, at + _HEADER.size)
                    raise OSError(-code, "netlink refused the dump")
                if message_flags & _NLM_F_DUMP_INTR:
                    raise InterruptedError("sockets changed during the dump")
                parsed = _parse_message(data, at + _HEADER.size, end)
                if parsed is None:
                    raise OSError("kernel gives no byte counters")
                local, remote, key, size = parsed
                if local == port and remote not in without:
                    found[key] = size
            at += (length + 3) & ~3


def read_netlink(ports: Sequence[int], without: Collection[int] = ()) -> dict[Key, int]:
    """Payload bytes sent (acknowledged) and received of each open connection to `ports`.

    Connections from the remote ports `without` are left out.

    Raises
    ------
    OSError
        When the kernel refuses or has no counters (before Linux 4.2).
    """
    kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as diag:
        diag.settimeout(_NETLINK_TIMEOUT_SECONDS)
        found: dict[Key, int] = {}
        sequence = 0
        for port in ports:
            for family in (socket.AF_INET, socket.AF_INET6):
                sequence += 1
                found |= _dump(diag, family, port, sequence, without)
        return found


def read_proc(
    ports: Sequence[int], without: Collection[int] = (), root: str = "/proc/net"
) -> dict[Key, int]:
    """Open connections to `ports` from /proc/net/tcp and tcp6, all with 0 bytes.

    Connections from the remote ports `without` are left out.

    Raises
    ------
    OSError
        When neither file can be read.
    """
    return {
        (local, remote): 0
        for local, remote, state in _proc_sockets(root)
        if _port(local) in ports
        and _port(remote) not in without
        and state in (_ESTABLISHED, _CLOSE_WAIT)
    }


def is_served(port: int, root: str = "/proc/net") -> bool:
    """Whether something listens on `port`, by /proc/net/tcp and tcp6.

    Raises
    ------
    OSError
        When neither file can be read.
    """
    return any(_port(local) == port and state == _LISTEN for local, _, state in _proc_sockets(root))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _proc_sockets(root: str) -> Iterator[tuple[str, str, int]]:
    """Local and remote address and state of each TCP socket."""
    read = 0
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(root, name).read_text().splitlines()[1:]
        except OSError:
            continue  # IPv6 may be off
        read += 1
        for line in lines:
            field = line.split()
            with contextlib.suppress(IndexError, ValueError):
                local, remote, state = field[1], field[2], int(field[3], 16)
                _port(local), _port(remote)
                yield local, remote, state
    if not read:
        raise OSError(f"neither tcp nor tcp6 can be read in {root}")
