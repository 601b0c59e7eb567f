"""The vendor's wire protocol: requests out, events in (read in its SDK, `cartesia` 4.2.0)."""

from __future__ import annotations

import binascii
import json
import ssl
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from sonic_eks.bench.plan import Target
from sonic_eks.bench.record import Failure, Generation, Outcome, refused

API_VERSION = "2026-08-14"
"""``cartesia-version`` that SDK 4.2.0 sends."""


_SECONDS_A_CHARACTER = 0.2
"""Longest time for a character of text: three times that of speech, about 15 in a second."""


_CUT_OUT = "<audio>"
"""What stands in the place of audio while the rest of an event is read; no base64."""

_LONG_BYTES = 256
"""Audio in an event from which on it is worth to cut it out."""


class Reservation(Protocol):
    """Room for one generation on a connection that is open."""

    connect_seconds: float | None
    """How long the connection took, if it was opened for this reservation."""

    async def generate(self, generation: Generation) -> None:
        """Send the request and hear all of it; raises Failure."""

    def release(self) -> None:
        """Give the room back."""


class Transport(Protocol):
    """The connections of a process."""

    async def reserve(self) -> Reservation:
        """Open or find a connection; raises Failure."""

    async def close(self) -> None:
        """Close all connections."""


def headers(target: Target) -> dict[str, str]:
    """Return the headers of a request."""
    return {"Authorization": f"Bearer {target.key}", "cartesia-version": API_VERSION}


def address(target: Target, path: str, *, websocket: bool = False) -> str:
    """Return the URL of a path of the service."""
    parts = urlsplit(target.url)
    scheme = {"http": "ws", "https": "wss"}[parts.scheme] if websocket else parts.scheme
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + path, "", ""))


def tls(target: Target) -> ssl.SSLContext | None:
    """Return the settings of TLS, made once: reading the certificates takes milliseconds."""
    return ssl.create_default_context() if urlsplit(target.url).scheme == "https" else None


def longest_seconds(target: Target, text: str) -> float:
    """Return the longest time for a whole generation, after which it is a hang too."""
    return target.timeout_seconds + _SECONDS_A_CHARACTER * len(text)


def hang(target: Target, generation: Generation, now: float) -> Failure:
    """Return the failure of a generation that is waited for no longer."""
    longest = longest_seconds(target, generation.text)
    if generation.sent is not None and now - generation.sent >= longest:
        return Failure(Outcome.TIMEOUT, f"not complete within {longest:g} s")
    return Failure(Outcome.TIMEOUT, f"no audio for {target.timeout_seconds:g} s")


def request_body(target: Target, text: str) -> dict[str, Any]:
    """Return what a generation asks for, on every transport."""
    return {
        "model_id": target.model,
        "transcript": text,
        "voice": {"mode": "id", "id": target.voice},
        "language": target.language,
        "output_format": {
            "container": "raw",
            "encoding": target.encoding,
            "sample_rate": target.sample_rate,
        },
    }


def websocket_message(target: Target, generation: Generation) -> str:
    """Return the message that begins and completes a context."""
    return json.dumps(
        request_body(target, generation.text)
        | {
            "context_id": generation.context_id,
            "continue": False,
            "max_buffer_delay_ms": target.buffer_delay_ms,
        }
    )


def cancel_message(context_id: str) -> str:
    """Return the message that ends a context early."""
    return json.dumps({"context_id": context_id, "cancel": True})


def parse_event(data: bytes) -> dict[str, Any]:
    """Read one event, whose context is named by a text or not at all; else raises Failure."""
    try:
        event = _chunk(data) or json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if (
        not isinstance(event, dict)
        or not isinstance(event.get("type"), str)
        or not isinstance(event.get("context_id"), str | None)
    ):
        raise Failure(Outcome.ERROR, "an answer that is no event of the protocol")
    return event


def _chunk(data: bytes) -> dict[str, Any] | None:
    """Read a chunk without its audio, which is put in as it is; None for what is not that simple.

    The audio is nearly all of it, and to read it as JSON would be a third of the client's work.
    Characters that JSON wants escaped, which base64 has not either, are not looked for in it.
    """
    key = data.find(b'"data"')
    begin = data.find(b'"', key + len(b'"data"')) + 1
    end = data.find(b'"', begin)
    if key < 0 or not begin or end - begin < _LONG_BYTES or data.find(b"\\", begin, end) >= 0:
        return None
    try:
        audio = data[begin:end].decode("ascii")
    except UnicodeDecodeError:
        return None
    event = json.loads(data[:begin] + _CUT_OUT.encode() + data[end:])
    # Deeper in the event, or named twice, it is something else.
    if not isinstance(event, dict) or event.get("data") != _CUT_OUT:
        return None
    event["data"] = audio
    return event


def hear(event: dict[str, Any], generation: Generation, now: float) -> bool:
    """Apply an event to its generation; return whether it was the last. Raises Failure."""
    kind = event["type"]
    if kind == "chunk":
        data = event.get("data")
        if not isinstance(data, str):
            raise Failure(Outcome.ERROR, "a chunk without audio")
        generation.heard(now, _audio_bytes(data, first=not generation.parts))
        return False
    if kind == "error":
        raise error_of(event)
    if kind == "done" and not generation.parts:
        raise Failure(Outcome.ERROR, "ended without audio")
    return bool(kind == "done")


def _audio_bytes(data: str, *, first: bool) -> int:
    """Return the bytes of a part of audio; raises Failure for what is no base64."""
    try:
        # Of the first part all is looked at. Of the others the length is enough: to decode them
        # would cost the client most of its time.
        if first:
            binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        raise Failure(Outcome.ERROR, "a chunk whose audio is no base64") from None
    if len(data) % 4:
        raise Failure(Outcome.ERROR, "a chunk whose audio is no base64")
    return len(data) * 3 // 4 - data.count("=", max(0, len(data) - 2))


def error_of(event: dict[str, Any]) -> Failure:
    """Return the failure that an error event, or the body of an error answer, tells of."""
    status = event.get("status_code")
    if not isinstance(status, int) or not 400 <= status <= 599:
        status = 500
    try:
        texts = [str(event.get(key) or "") for key in ("title", "message", "error")]
        said = ": ".join(filter(None, texts)) or str(event.get("error_code") or "")
    except RecursionError:
        said = ""
    return refused(status, said or "no reason given")
