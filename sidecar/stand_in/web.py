"""HTTP/1.1 and WebSocket (RFC 6455) server on asyncio streams; standard library only.

Small on purpose: no TLS, no compression, one request a connection except for WebSockets.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_LIMIT_BYTES = 1 << 20


@dataclass
class Request:
    """One HTTP request and the connection it came on."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answered: bool = field(default=False, init=False)

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; raises ValueError otherwise."""
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("body is not a JSON object")
        return value

    async def answer(self, status: int, body: bytes | str | dict[str, Any]) -> None:
        """Answer at once; a dict goes as JSON, text as it is."""
        kind = "application/json" if isinstance(body, dict) else "text/plain; charset=utf-8"
        data = json.dumps(body) if isinstance(body, dict) else body
        data = data.encode() if isinstance(data, str) else data
        self._head(status, kind, f"Content-Length: {len(data)}\r\n")
        self.writer.write(data)
        await self.writer.drain()

    def begin(self, kind: str) -> None:
        """Begin a chunked answer."""
        self._head(200, kind, "Transfer-Encoding: chunked\r\n")

    async def chunk(self, data: bytes) -> None:
        """Send a part of a chunked answer; b"" ends it."""
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    def _head(self, status: int, kind: str, more: str) -> None:
        self.answered = True
        line = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}\r\n"
        self.writer.write(f"{line}Content-Type: {kind}\r\nConnection: close\r\n{more}\r\n".encode())

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks to go on as a WebSocket."""
        return self.headers.get("upgrade", "").lower() == "websocket"

    def upgrade(self) -> WebSocket:
        """Go on as a WebSocket."""
        self.answered = True
        key = self.headers.get("sec-websocket-key", "").encode()
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
        self.writer.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        return WebSocket(self.reader, self.writer)


class WebSocket:
    """The server's end of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: dict[str, Any]) -> None:
        """Send one JSON message."""
        self._writer.write(_frame(_TEXT, json.dumps(message).encode()))
        await self._writer.drain()

    def abort(self) -> None:
        """Drop the connection without a closing handshake."""
        self._writer.transport.abort()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Messages until the client closes."""
        parts = b""
        while True:
            final, kind, data = await self._read_frame()
            if kind == _CLOSE:
                self._writer.write(_frame(_CLOSE, data[:2]))
                return
            if kind == _PING:
                self._writer.write(_frame(_PONG, data))
            elif kind != _PONG:
                parts += data
                if final:
                    yield parts
                    parts = b""

    async def _read_frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length >= 126:
            size = 2 if length == 126 else 8
            length = int.from_bytes(await self._reader.readexactly(size), "big")
        if length > _LIMIT_BYTES:
            raise ValueError("frame too long")
        mask = await self._reader.readexactly(4) if second & 0x80 else b"\0\0\0\0"
        data = await self._reader.readexactly(length)
        whole = (mask * (length // 4 + 1))[:length]
        clear = int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")
        return bool(first & 0x80), first & 0x0F, clear.to_bytes(length, "big")


def _frame(kind: int, data: bytes) -> bytes:
    length = len(data)
    if length < 126:
        head = struct.pack("!BB", 0x80 | kind, length)
    elif length < 65536:
        head = struct.pack("!BBH", 0x80 | kind, 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 127, length)
    return head + data


Handler = Callable[[Request], Awaitable[None]]


async def listen(handler: Handler, host: str | None, port: int) -> asyncio.Server:
    """Serve `handler`; a client that goes or talks nonsense costs its own connection only."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            method, path, _ = first.split(" ")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            length = int(headers.get("content-length") or 0)
            if not 0 <= length <= _LIMIT_BYTES:
                raise ValueError("body too long")
            body = await reader.readexactly(length)
            request = Request(method, path.partition("?")[0], headers, body, reader, writer)
            await handler(request)
            if not request.answered:
                await request.answer(404, "not found\n")
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    return await asyncio.start_server(serve, host, port, backlog=4096)
