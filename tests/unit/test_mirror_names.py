"""Names in registries: references, tags, hosts."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.errors import BAD_INPUT, SonicEksError
from sonic_eks.mirror.reference import (
    RepositoryName,
    check_host,
    check_tag,
    is_digest,
    is_loopback,
    parse_repository,
)
from sonic_eks.upstream import UPSTREAMS


@pytest.mark.parametrize(
    ("text", "host", "path", "api_host"),
    [
        ("quay.io/prometheus/prometheus", "quay.io", "prometheus/prometheus", "quay.io"),
        ("oci://public.ecr.aws/a/b", "public.ecr.aws", "a/b", "public.ecr.aws"),
        ("docker.io/library/nats", "docker.io", "library/nats", "registry-1.docker.io"),
        ("docker.io/nats", "docker.io", "library/nats", "registry-1.docker.io"),
        ("localhost:5000/x", "localhost:5000", "x", "localhost:5000"),
        (
            "us-docker.pkg.dev/p/r/i-m__g.e",
            "us-docker.pkg.dev",
            "p/r/i-m__g.e",
            "us-docker.pkg.dev",
        ),
    ],
)
def test_reference_is_split(text: str, host: str, path: str, api_host: str) -> None:
    name = parse_repository(text)

    assert name == RepositoryName(host, path)
    assert name.api_host == api_host


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nats",
        "library/nats",  # which registry?
        "quay.io",
        "quay.io/",
        "quay.io/Upper",
        "quay.io/a:1.0",
        "quay.io/a@sha256:" + "0" * 64,
        "quay.io/a//b",
        "quay.io/../a",
        "https://quay.io/a",
        "quay.io/a\n",
        "user@quay.io/a",
    ],
)
def test_malformed_reference_is_bad_input(text: str) -> None:
    with pytest.raises(SonicEksError, match=r"^malformed reference '") as caught:
        parse_repository(text)
    assert caught.value.exit_status == BAD_INPUT


@given(st.text())
def test_any_text_is_a_reference_or_one_line(text: str) -> None:
    with contextlib.suppress(SonicEksError):  # any other exception fails
        name = parse_repository(text)
        assert parse_repository(str(name)) == name


def test_every_upstream_image_has_a_reference() -> None:
    for upstream in UPSTREAMS:
        if not upstream.is_http:
            assert parse_repository(upstream.source).host in upstream.source


@pytest.mark.parametrize("tag", ["", "a" * 129, "-a", ".a", "a b", "a/b", "a:b", "1.0\n"])
def test_malformed_tag_is_bad_input(tag: str) -> None:
    with pytest.raises(SonicEksError, match=r"^malformed tag "):
        check_tag(tag)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sha256:" + "a" * 64, True),
        ("sha256:" + "A" * 64, False),
        ("sha256:" + "a" * 63, False),
        ("sha512:" + "a" * 128, False),
        ("sha256:" + "a" * 64 + "\n", False),
        (None, False),
        (7, False),
    ],
)
def test_digest(text: object, expected: bool) -> None:
    assert is_digest(text) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("[::1]:5000", True),
        ("[::1]", True),
        ("10.0.0.1:5000", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com", False),
    ],
)
def test_loopback_alone_may_be_plain_http(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a/b",
        "https://a",
        "a:b",
        "A.example",
        "a.example:1234567",
        "a.example:65536",
        "a..b",
        "-a.b",
        "a.b-",
        f"{'a' * 64}.b",
        ".".join(["a" * 63] * 4),
        "[::g]:1",
        "[::1",
        "a.example:\u0661",
    ],
)
def test_malformed_host_is_bad_input(host: str) -> None:
    with pytest.raises(SonicEksError, match=r"^malformed registry host "):
        check_host(host)
