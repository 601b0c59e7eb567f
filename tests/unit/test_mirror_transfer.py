"""Content on its way, retries, and what failures mean."""

from __future__ import annotations

import hashlib
import io
import socket
from collections.abc import Iterator

import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.auth import Anonymous
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.errors import MirrorError, NotFoundError, RefusedError, TransientError
from sonic_eks.mirror.http import ExpiredError, explained
from sonic_eks.mirror.locking import resolve_lock
from sonic_eks.mirror.manifest import Descriptor
from sonic_eks.mirror.progress import in_bytes
from sonic_eks.mirror.retry import RetryPolicy
from sonic_eks.mirror.transfer import SizedBody, verified
from sonic_eks.upstream import Kind

NO_WAIT = RetryPolicy(tries=3, sleep=lambda seconds: None)


def descriptor(content: bytes) -> Descriptor:
    return Descriptor(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))


class Broken:
    """Gives content piece by piece and breaks off after given numbers of bytes."""

    def __init__(self, content: bytes, breaks: list[int], *, silent: bool = False) -> None:
        self.content = content
        self.breaks = breaks
        self.silent = silent
        self.offsets: list[int] = []

    def __call__(self, offset: int) -> Iterator[bytes]:
        self.offsets.append(offset)
        end = offset + self.breaks.pop(0) if self.breaks else len(self.content)
        for start in range(offset, min(end, len(self.content)), 3):
            yield self.content[start : min(start + 3, end)]
        if end < len(self.content) and not self.silent:
            raise TransientError("connection reset")


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=2), st.booleans())
def test_content_is_whole_however_it_broke_off(
    content: bytes, breaks: list[int], silent: bool
) -> None:
    read = Broken(content, breaks, silent=silent)

    assert b"".join(verified(descriptor(content), "blob", read, NO_WAIT)) == content


def test_download_goes_on_where_it_broke_off() -> None:
    read = Broken(b"0123456789", [4, 3])

    b"".join(verified(descriptor(b"0123456789"), "blob", read, NO_WAIT))

    assert read.offsets == [0, 4, 7]


@given(st.binary(min_size=1, max_size=60), st.integers(0, 59), st.integers(1, 255))
def test_wrong_content_is_never_given_out_whole(content: bytes, place: int, change: int) -> None:
    wrong = bytearray(content)
    wrong[place % len(content)] ^= change
    given_out = bytearray()
    pieces = verified(descriptor(content), "blob", Broken(bytes(wrong), []), NO_WAIT)

    with pytest.raises(TransientError, match="digest mismatch"):
        given_out.extend(byte for piece in pieces for byte in piece)
    assert len(given_out) < len(content)


def test_content_longer_than_it_says_is_refused() -> None:
    blob = Descriptor(descriptor(b"0123456789").digest, 5)

    with pytest.raises(TransientError, match="digest mismatch"):
        b"".join(verified(blob, "blob", Broken(b"0123456789x", []), NO_WAIT))


def test_download_without_progress_gives_up() -> None:
    read = Broken(b"0123456789", [0, 0, 0, 0])

    with pytest.raises(MirrorError, match=r"^blob x: connection reset \(tried 3 times\)$"):
        b"".join(verified(descriptor(b"0123456789"), "blob x", read, NO_WAIT))


def test_progress_resets_the_count_of_failures() -> None:
    content = bytes(30)

    assert (
        b"".join(verified(descriptor(content), "b", Broken(content, [3] * 9), NO_WAIT)) == content
    )


def test_body_can_be_sent_again() -> None:
    body = SizedBody(lambda: iter([b"ab", b"c"]), 3)

    assert (list(body), list(body), len(body)) == ([b"ab", b"c"], [b"ab", b"c"], 3)


def test_waits_grow_to_the_cap_and_are_drawn_from_zero() -> None:
    bounds: list[tuple[float, float]] = []

    def draw(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    policy = RetryPolicy(
        tries=6, base_seconds=1, cap_seconds=5, sleep=lambda seconds: None, draw=draw
    )

    with pytest.raises(MirrorError, match=r"x: busy \(tried 6 times\)"):
        policy.call("x", _busy)
    assert bounds == [(0, 1), (0, 2), (0, 4), (0, 5), (0, 5)]


def test_server_may_ask_for_a_longer_wait_and_never_gets_a_shorter_one() -> None:
    waits: list[float] = []
    policy = RetryPolicy(tries=3, sleep=waits.append, draw=lambda low, high: 0.25)
    answers = iter([2.0, None])

    def ask() -> str:
        for seconds in answers:
            raise TransientError("busy", retry_after_seconds=seconds)
        return "done"

    assert policy.call("x", ask) == "done"
    assert waits == [2.0, 0.25]


def test_error_may_allow_fewer_tries() -> None:
    calls = []

    def action() -> None:
        calls.append(1)
        raise TransientError("wrong", tries=2)

    with pytest.raises(MirrorError, match=r"\(tried 2 times\)"):
        NO_WAIT.call("x", action)
    assert len(calls) == 2


def test_each_wait_is_told() -> None:
    said: list[str] = []
    policy = RetryPolicy(
        tries=3, sleep=lambda _: None, draw=lambda _, high: high, heard=said.append
    )

    with pytest.raises(MirrorError):
        policy.call("x", _busy)
    assert said == ["x: busy; try 2 of 3 in 1 s", "x: busy; try 3 of 3 in 2 s"]


@pytest.mark.parametrize(
    "artifact",
    [
        Artifact("a", Kind.IMAGE, "registry.example/a", "1", "tests", "d/a"),
        Artifact("a", Kind.CHART, "https://charts.example/a", "1", "tests", "d/a"),
    ],
    ids=["registry", "charts"],
)
def test_a_name_that_does_not_resolve_is_given_up_within_ten_seconds(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    waits: list[float] = []
    said: list[str] = []
    # The product's policy with the longest waits that it may draw.
    retry = RetryPolicy(sleep=waits.append, draw=lambda _, high: high, heard=said.append)
    connections = Connections("localhost:1", credentials=Anonymous(), retry=retry)

    with pytest.raises(MirrorError, match="Name or service not known"):
        resolve_lock(connections, [artifact])
    assert 1 <= len(waits) == len(said)
    assert sum(waits) <= 10


def _busy() -> None:
    raise TransientError("busy")


def answered(
    status: int, body: bytes = b"", headers: dict[str, str] | None = None, *, signed: bool = False
) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    response.raw = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
    response.headers.update(headers or {})
    response.request = requests.Request(
        "GET", "https://x", headers={"Authorization": "Basic eDp5"} if signed else {}
    ).prepare()
    return requests.HTTPError(response=response)


def told(code: str, message: str = "m") -> bytes:
    return f'{{"errors": [{{"code": "{code}", "message": "{message}"}}]}}'.encode()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            answered(429, told("TOOMANYREQUESTS", "slow")),
            TransientError,
            "HTTP 429 TOOMANYREQUESTS",
        ),
        (answered(500), TransientError, "HTTP 500"),
        (answered(503, b"<html>busy</html>"), TransientError, "HTTP 503"),
        (answered(400, told("DIGEST_INVALID")), TransientError, "DIGEST_INVALID"),
        (answered(404, told("BLOB_UPLOAD_UNKNOWN")), TransientError, "BLOB_UPLOAD_UNKNOWN"),
        (answered(404, told("MANIFEST_UNKNOWN")), NotFoundError, "what: HTTP 404 MANIFEST_UNKNOWN"),
        (answered(403, told("DENIED", "no")), RefusedError, "what: HTTP 403 DENIED: no"),
        (answered(403, b"Token has expired"), ExpiredError, "HTTP 403: Token has expired"),
        (answered(400, signed=True), ExpiredError, "HTTP 400"),
        (answered(400), RefusedError, "what: HTTP 400"),
        (answered(405, told("UNSUPPORTED")), RefusedError, "what: HTTP 405 UNSUPPORTED"),
        (requests.ConnectionError("reset"), TransientError, "reset"),
        (requests.ReadTimeout("slow"), TransientError, "slow"),
        (requests.exceptions.SSLError("EOF"), TransientError, "TLS failed: EOF"),
        (requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED"), MirrorError, "not trusted"),
        (urllib3.exceptions.IncompleteRead(3, 5), TransientError, "3 bytes read"),
        (requests.TooManyRedirects("30"), MirrorError, "broke the protocol"),
        (KeyError("Location"), MirrorError, "broke the protocol: KeyError('Location')"),
    ],
)
def test_failure_passes_or_stays(error: Exception, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught, explained("what"):
        raise error
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("100000", 120), ("x", None), ("", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    with pytest.raises(TransientError) as caught, explained("what"):
        raise answered(429, headers={"Retry-After": header})
    assert caught.value.retry_after_seconds == seconds


def test_product_errors_pass_unchanged() -> None:
    with pytest.raises(MirrorError, match=r"^mine$"), explained("what"):
        raise MirrorError("mine")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 1024**3, "5.0 GiB")]
)
def test_bytes_for_people(size: int, text: str) -> None:
    assert in_bytes(size) == text
