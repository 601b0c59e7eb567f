"""Requests that the server must have answered before the pod is ready."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from urllib.parse import urlsplit

_ATTEMPT_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_CHUNK_BYTES = 65_536


class WarmUp:
    """Posts a body to the server until it has answered `requests` times with something in it."""

    def __init__(self, url: str, body: str, requests: int, key: str | None = None) -> None:
        self._url, self._body, self._key = urlsplit(url), body.encode(), key
        self._left = requests

    @property
    def done(self) -> bool:
        """Whether the server has answered often enough."""
        return self._left <= 0

    async def run(self, log: Callable[..., None]) -> None:
        """Go on until it is done; a server that is not up yet costs an attempt."""
        said = ""
        while not self.done:
            try:
                async with asyncio.timeout(_ATTEMPT_SECONDS):
                    fault = await self._request()
            except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
                fault = type(error).__name__
            if fault:
                # Every second anew would say no more.
                if fault != said:
                    log("warm_up_failed", fault=fault)
                said = fault
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._left -= 1
        log("warmed_up")

    async def _request(self) -> str:
        """Return "" for a good answer, else what was wrong with it."""
        host, port = self._url.hostname or "", self._url.port or 80
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        reader, writer = await asyncio.open_connection(host, port)
        try:
            key = f"Authorization: Bearer {self._key}\r\n" if self._key else ""
            head = (
                f"POST {target} HTTP/1.1\r\nHost: {host}:{port}\r\n{key}"
                f"Content-Type: application/json\r\nContent-Length: {len(self._body)}\r\n"
                "Connection: close\r\n\r\n"
            )
            writer.write(head.encode() + self._body)
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1].decode("latin-1") if answer[:5] == b"HTTP/" else "?"
            size = 0
            while chunk := await reader.read(_CHUNK_BYTES):
                size += len(chunk)
            if not status.startswith("2"):
                return f"status {status}"
            return "" if size else "an empty answer"
        finally:
            with contextlib.suppress(OSError):
                writer.close()
