"""Requests that the server must have answered before the pod is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from sidecar.stream_gate.sockets import is_served

_ATTEMPT_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_PIECE_BYTES = 65_536
# The server's end of a connection may be open a moment longer than the gate's.
_OWN_SECONDS = 3.0


class WarmUp:
    """Posts a body to the server until it has answered `requests` times with something in it.

    A server that is started anew in its pod is cold again, and warmed up again.
    """

    def __init__(self, url: str, body: str, requests: int, key_file: str | None = None) -> None:
        self._url, self._body, self._key_file = urlsplit(url), body.encode(), key_file
        self._requests = self._left = requests
        self._attempt: asyncio.Task[str] | None = None
        self.own_ports: set[int] = set()
        """Ports of the connections that are the warm-up's own, and no caller's."""

    @property
    def done(self) -> bool:
        """Whether the server has answered often enough."""
        return self._left <= 0

    def pause(self) -> None:
        """End the attempt that is under way: a drain waits for callers, not for this."""
        if self._attempt is not None:
            self._attempt.cancel()

    async def run(self, log: Callable[..., None], paused: Callable[[], bool]) -> None:
        """Go on for ever; a server that is not up yet, or answers badly, costs an attempt."""
        said = ""
        while True:
            if paused() or self.done:
                if self.done and not self._is_served():
                    self._left, said = self._requests, ""
                    log("server_gone")
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            fault = await self._try()
            if not fault:
                self._left -= 1
                if self._left <= 0:
                    log("warmed_up")
                continue
            # Every second anew would say no more.
            if fault != said and not paused():
                log("warm_up_failed", fault=fault)
            said = fault
            await asyncio.sleep(_PAUSE_SECONDS)

    def _is_served(self) -> bool:
        try:
            return is_served(self._port)
        except OSError:
            return True  # unknown: a warm server stays in use

    @property
    def _port(self) -> int:
        return self._url.port or 80

    async def _try(self) -> str:
        """Return "" for a good answer, else what was wrong with it."""
        self._attempt = asyncio.create_task(self._answer())
        await asyncio.wait([self._attempt])
        if self._attempt.cancelled():
            return "paused"
        # Whatever a server sends, the next attempt comes.
        error = self._attempt.exception()
        return type(error).__name__ if error is not None else self._attempt.result()

    async def _answer(self) -> str:
        async with asyncio.timeout(_ATTEMPT_SECONDS):
            status, size = await self._request(self._head())
        if not status.startswith("2"):
            return f"status {status}"
        return "" if size else "an empty answer"

    def _head(self) -> bytes:
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        lines = [
            f"POST {target} HTTP/1.1",
            f"Host: {self._url.hostname}:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(self._body)}",
            "Connection: close",
        ]
        if self._key_file is not None:
            # Anew each time: the file is replaced when the secret is.
            key = Path(self._key_file).read_text(encoding="utf-8").strip()
            if not key.isprintable():
                raise ValueError("a key of one line is expected")
            lines.append(f"Authorization: Bearer {key}")
        return "\r\n".join([*lines, "", ""]).encode()

    async def _request(self, head: bytes) -> tuple[str, int]:
        """Return the status and the size of the body in bytes."""
        reader, writer = await asyncio.open_connection(self._url.hostname, self._port)
        own = writer.get_extra_info("sockname")[1]
        self.own_ports.add(own)
        try:
            writer.write(head + self._body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *headers = answer.lower().split("\r\n")
            words = first.split(" ")
            status = words[1] if len(words) > 1 and words[0].startswith("http/") else "?"
            return status, await _size(reader, dict(h.split(": ", 1) for h in headers if ": " in h))
        finally:
            writer.transport.abort()
            asyncio.get_running_loop().call_later(_OWN_SECONDS, self.own_ports.discard, own)


async def _size(reader: asyncio.StreamReader, headers: dict[str, str]) -> int:
    """Read a body to its end (RFC 9112, section 6.3) and return its size in bytes."""
    if headers.get("transfer-encoding", "").strip() == "chunked":
        size = 0
        while length := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await _skip(reader, length + 2)  # and the line's end
            size += length
        return size
    if "content-length" in headers:
        size = int(headers["content-length"])
        await _skip(reader, size)
        return size
    size = 0
    while piece := await reader.read(_PIECE_BYTES):
        size += len(piece)
    return size


async def _skip(reader: asyncio.StreamReader, count: int) -> None:
    while count:
        piece = await reader.read(min(count, _PIECE_BYTES))
        if not piece:
            raise EOFError
        count -= len(piece)
