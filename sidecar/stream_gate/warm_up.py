"""Requests that the server must have answered before the pod is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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

    def __init__(self, url: str, body: str, requests: int, key: str | None = None) -> None:
        self._url, self._body, self._key = urlsplit(url), body.encode(), key
        self._requests = self._left = requests
        self.own_ports: set[int] = set()
        """Ports of the connections that are the warm-up's own, and no caller's."""

    @property
    def done(self) -> bool:
        """Whether the server has answered often enough."""
        return self._left <= 0

    async def run(self, log: Callable[..., None]) -> None:
        """Go on for ever; a server that is not up yet, or answers badly, costs an attempt."""
        said = ""
        while True:
            if self.done:
                said = ""
                if not self._is_served():
                    self._left = self._requests
                    log("server_gone")
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            fault = await self._attempt()
            if not fault:
                self._left -= 1
                if self.done:
                    log("warmed_up")
                continue
            # Every second anew would say no more.
            if fault != said:
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

    async def _attempt(self) -> str:
        """Return "" for a good answer, else what was wrong with it."""
        try:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                status, size = await self._request()
        except Exception as error:
            # Whatever a server sends, the next attempt comes.
            return type(error).__name__
        if not status.startswith("2"):
            return f"status {status}"
        return "" if size else "an empty answer"

    async def _request(self) -> tuple[str, int]:
        """Return the status and the size of the body in bytes."""
        host, port = self._url.hostname or "", self._port
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        reader, writer = await asyncio.open_connection(host, port)
        own = writer.get_extra_info("sockname")[1]
        self.own_ports.add(own)
        try:
            key = f"Authorization: Bearer {self._key}\r\n" if self._key else ""
            head = (
                f"POST {target} HTTP/1.1\r\nHost: {host}:{port}\r\n{key}"
                f"Content-Type: application/json\r\nContent-Length: {len(self._body)}\r\n"
                "Connection: close\r\n\r\n"
            )
            writer.write(head.encode() + self._body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            words = answer.split("\r\n")[0].split(" ")
            status = words[1] if len(words) > 1 and words[0].startswith("HTTP/") else "?"
            chunked = "transfer-encoding: chunked" in answer.lower()
            return status, await (_chunked_size if chunked else _plain_size)(reader)
        finally:
            writer.transport.abort()
            asyncio.get_running_loop().call_later(_OWN_SECONDS, self.own_ports.discard, own)


async def _plain_size(reader: asyncio.StreamReader) -> int:
    size = 0
    while piece := await reader.read(_PIECE_BYTES):
        size += len(piece)
    return size


async def _chunked_size(reader: asyncio.StreamReader) -> int:
    """Return the size of what is in the chunks (RFC 9112, section 7.1)."""
    size = 0
    while length := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        left = length + 2  # the line's end
        while left:
            piece = await reader.read(min(left, _PIECE_BYTES))
            if not piece:
                raise EOFError
            left -= len(piece)
        size += length
    return size
