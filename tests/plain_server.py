"""An HTTP server that gives one answer to everything, in a thread."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def plain_server(answer: bytes | None) -> Iterator[int]:
    """Serve on a free port until the end of the block.

    Each request is read with its body and answered by `answer`, bytes as they go over the wire;
    None: it is never answered. The connection stays open.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()
        open_sockets: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                open_sockets.append(one)
                threading.Thread(target=serve, args=(one,), daemon=True).start()

        def serve(one: socket.socket) -> None:
            with contextlib.suppress(OSError), one.makefile("rb") as lines:
                while _read_request(lines):
                    if answer is None:
                        ended.wait()
                        return
                    one.sendall(answer)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            for one in open_sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()


def _read_request(stream: BinaryIO) -> bool:
    """Read one request; return whether there was one."""
    length = 0
    line = stream.readline()
    if not line:
        return False
    while line.strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        line = stream.readline()
    stream.read(length)
    return True
