"""A WebSocket server that sends ready-made parts of audio at the least cost, for streams.py.

``/tts/websocket`` answers each request with a stream of parts, one a period; ``/plain`` with one
part at once. What a part says of its context is put into bytes that are there already.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import struct
import sys

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
_AUDIO = base64.b64encode(b"\x2a" * 24000).decode()  # half a second at 24 kHz, 16 bits
PARTS = 40
"""Parts of a stream."""

_MARK = "0" * 32
"""Stands for a context id, which our clients make of 32 digits."""


def _frame(message: str) -> bytes:
    data = message.encode()
    if len(data) < 126:
        return struct.pack("!BB", 0x81, len(data)) + data
    return struct.pack("!BBH", 0x81, 126, len(data)) + data


_CHUNK = _frame(json.dumps({"type": "chunk", "context_id": _MARK, "done": False, "data": _AUDIO}))
_DONE = _frame(json.dumps({"type": "done", "context_id": _MARK, "done": True}))
_CHUNK_PARTS = _CHUNK.split(_MARK.encode())
_DONE_PARTS = _DONE.split(_MARK.encode())


class Connection(asyncio.Protocol):
    """One client."""

    period = 0.1

    def __init__(self) -> None:
        self._buffer, self._upgraded, self._plain = b"", False, False
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer += data
        if not self._upgraded:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self._upgrade(head)
            self._buffer = rest
        while (message := self._message()) is not None:
            if self._plain:
                self._transport.write(_CHUNK)
            elif message:
                self._begin(json.loads(message)["context_id"].encode())

    def _upgrade(self, head: bytes) -> None:
        name = b"sec-websocket-key:"
        line = next(one for one in head.split(b"\r\n") if one.lower().startswith(name))
        key = line[len(name) :].strip()
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self._upgraded, self._plain = True, b"/plain" in head.split(b"\r\n")[0]

    def _message(self) -> bytes | None:
        """Return the next text of the client, b"" for another frame, None when there is none."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        length, at = buffer[1] & 0x7F, 2
        if length == 126:
            if len(buffer) < 4:
                return None
            length, at = int.from_bytes(buffer[2:4], "big"), 4
        end = at + 4 + length
        if len(buffer) < end:
            return None
        mask, data = buffer[at : at + 4], buffer[at + 4 : end]
        self._buffer = buffer[end:]
        if buffer[0] & 0x0F == 8:
            self._transport.close()
            return b""
        whole = (mask * (length // 4 + 1))[:length]
        clear = int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")
        return clear.to_bytes(length, "big")

    def _begin(self, context: bytes) -> None:
        self._loop.call_later(random.random() * self.period, self._send, context, PARTS)

    def _send(self, context: bytes, left: int) -> None:
        if self._transport.is_closing():
            return
        if left:
            self._transport.write(_CHUNK_PARTS[0] + context + _CHUNK_PARTS[1])
            self._loop.call_later(self.period, self._send, context, left - 1)
        else:
            self._transport.write(_DONE_PARTS[0] + context + _DONE_PARTS[1])


async def serve(port: int, period: float) -> None:
    """Serve until killed."""
    Connection.period = period
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
