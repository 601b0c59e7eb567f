"""A reverse proxy in front of a registry that counts requests and breaks them on demand."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_PIECE = 64 * 1024
_HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of the registry's answer.

    ``after`` bytes of the answer's body (or, for uploads, of the request's) pass first.
    """

    kind: str  # status, drop, stall, truncate, corrupt, drop_upload
    status: int = 0
    code: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    after: int = 0
    seconds: float = 0
    text: str = ""


Rule = Callable[[str, str], Fault | None]
"""Takes method and path, gives the fault if the request is to have one."""


@dataclass
class Proxy:
    """Where the proxy listens, what it saw, and the rule that breaks requests."""

    host: str
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    received_bytes: int = 0
    sent_bytes: int = 0
    rule: Rule | None = None
    # As Amazon ECR: a tag that exists takes no second push, not even of the same digest.
    immutable: bool = False
    # As Amazon ECR: repositories are made beforehand. None: any is fine.
    repositories: set[str] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, method: str, pattern: str = "") -> int:
        return sum(1 for m, p, _ in self.requests if m == method and re.search(pattern, p))


def once(pattern: str, fault: Fault, times: int = 1, method: str = "") -> Rule:
    """Break the first `times` requests whose path matches."""
    left = [times]
    lock = threading.Lock()

    def rule(requested: str, path: str) -> Fault | None:
        with lock:
            if left[0] and re.search(pattern, path) and method in ("", requested):
                left[0] -= 1
                return fault
        return None

    return rule


@contextlib.contextmanager
def proxy(upstream: str) -> Iterator[Proxy]:
    """Run a proxy in front of `upstream` (host:port, plain HTTP)."""

    class Handler(_Handler):
        target = upstream

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Proxy(f"127.0.0.1:{server.server_address[1]}")
    Handler.proxy = running
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: str
    proxy: Proxy

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        fault = self.proxy.rule(self.command, self.path) if self.proxy.rule else None
        fault = fault or self._as_ecr()
        if fault and fault.kind == "stall":
            time.sleep(fault.seconds)
            fault = Fault("drop")
        if fault and fault.kind == "drop":
            self._note(0)
            self._reset()
            return
        if fault and fault.kind == "status":
            self._answer_status(fault)
            return
        try:
            self._forward(fault)
        except (OSError, http.client.HTTPException):
            self._reset()

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _as_ecr(self) -> Fault | None:
        match = re.match(r"/v2/(.+)/(manifests|blobs)/(.+)$", self.path.partition("?")[0])
        if match is None:
            return None
        name, kind, reference = match.groups()
        known = self.proxy.repositories
        if known is not None and name not in known:
            return Fault("status", 404, "NAME_UNKNOWN", text="The repository does not exist")
        tag = kind == "manifests" and self.command == "PUT" and ":" not in reference
        if tag and self.proxy.immutable and self._exists():
            return Fault("status", 400, "TAG_INVALID", text="The image tag already exists")
        return None

    def _exists(self) -> bool:
        connection = http.client.HTTPConnection(self.target, timeout=10)
        accept = (
            "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"
        )
        with contextlib.closing(connection):
            connection.request("HEAD", self.path, headers={"Accept": accept})
            return connection.getresponse().status == 200

    def _forward(self, fault: Fault | None) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        connection = http.client.HTTPConnection(self.target, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for key, value in self.headers.items():
                connection.putheader(key, value)
            connection.endheaders()
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                self._pass_chunks(connection)
            elif not self._pass_body(connection, length, fault):
                return
            response = connection.getresponse()
            self._note(response.status)
            self._answer(response, fault)

    def _pass_chunks(self, connection: http.client.HTTPConnection) -> None:
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            connection.send(b"%x\r\n%s\r\n" % (size, data))
            if size == 0:
                return

    def _pass_body(
        self, connection: http.client.HTTPConnection, length: int, fault: Fault | None
    ) -> bool:
        left = length
        while left:
            piece = self.rfile.read(min(_PIECE, left))
            if not piece:
                raise OSError("the client went away")
            left -= len(piece)
            with self.proxy.lock:
                self.proxy.received_bytes += len(piece)
            if fault and fault.kind == "drop_upload" and length - left > fault.after:
                self._note(0)
                self._reset()
                return False
            connection.send(piece)
        return True

    def _answer(self, response: http.client.HTTPResponse, fault: Fault | None) -> None:
        self.send_response(response.status)
        length = response.headers.get("Content-Length")
        for key, value in response.getheaders():
            if key.lower() not in _HOP_BY_HOP:
                self.send_header(key, value.replace(self.target, self.proxy.host))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        passed = 0
        while piece := response.read(_PIECE):
            if fault and fault.kind == "corrupt" and passed == 0:
                piece = bytes([piece[0] ^ 1]) + piece[1:]
            if fault and fault.kind in ("truncate", "stall_body"):
                piece = piece[: max(fault.after - passed, 0)]
            self.wfile.write(piece)
            passed += len(piece)
            with self.proxy.lock:
                self.proxy.sent_bytes += len(piece)
            if fault and fault.kind == "stall_body" and passed >= fault.after:
                time.sleep(fault.seconds)
            if fault and fault.kind in ("truncate", "stall_body") and passed >= fault.after:
                self.wfile.flush()
                self.close_connection = True
                return

    def _answer_status(self, fault: Fault) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        while length > 0:
            length -= len(self.rfile.read(min(_PIECE, length)))
        self._note(fault.status)
        body = fault.text.encode()
        if fault.code:
            error = {"code": fault.code, "message": fault.text}
            body = json.dumps({"errors": [error]}).encode()
        self.send_response(fault.status)
        for key, value in fault.headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _note(self, status: int) -> None:
        with self.proxy.lock:
            self.proxy.requests.append((self.command, self.path, status))

    def _reset(self) -> None:
        """Close as a crash does: with a reset, no answer."""
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
