"""What goes wrong between registries, and what a run makes of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from sonic_eks.mirror.copier import Copier, Status
from sonic_eks.mirror.errors import MirrorError
from sonic_eks.mirror.plan import plan
from sonic_eks.mirror.retry import RetryPolicy
from tests.e2e.artifacts import Connect, MakeArtifact, only
from tests.e2e.conftest import FAST
from tests.e2e.fault_proxy import Fault, Proxy, once
from tests.e2e.registries import (
    Image,
    RegistryProcess,
    digest_of,
    noise,
    push_image,
    push_index,
    registry,
)

pytestmark = pytest.mark.slow


LARGE = noise(3_000_000, 1)
SMALL = noise(2000, 2)
BLOB = f"/blobs/{digest_of(LARGE)}"


@pytest.fixture
def image(upstream: RegistryProcess, place: str) -> Image:
    return push_image(upstream, f"{place}/image", "1.0", [LARGE, SMALL])


@pytest.mark.parametrize(
    "fault",
    [
        Fault("drop"),
        Fault("truncate", after=1_000_000),
        Fault("stall_body", after=1_000_000, seconds=3),
        Fault("status", 429, headers=(("Retry-After", "0"),)),
        Fault("status", 503),
        Fault("corrupt"),
    ],
    ids=lambda fault: f"{fault.kind}{fault.status or ''}",
)
def test_failing_download_is_taken_up_again(
    upstream_proxy: Proxy,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    fault: Fault,
) -> None:
    upstream_proxy.rule = once(BLOB, fault)
    artifact = artifact_of(upstream_proxy.host)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert (outcome.message, outcome.digest) == ("", image.digest)
    assert private.blob(artifact.repository, digest_of(LARGE)) == LARGE
    if fault.kind == "truncate":  # the second request asks for the rest alone
        assert upstream_proxy.sent_bytes < len(LARGE) + len(SMALL) + 100_000


@pytest.mark.parametrize(
    "fault",
    [
        Fault("drop_upload", after=1_000_000),
        Fault("drop"),
        Fault("stall", seconds=3),
        Fault("status", 500),
        Fault("status", 429, "TOOMANYREQUESTS", headers=(("Retry-After", "0"),)),
        Fault("status", 400, "DIGEST_INVALID", text="content does not match"),
    ],
    ids=lambda fault: f"{fault.kind}{fault.status or ''}",
)
def test_failing_upload_is_sent_again(
    upstream: RegistryProcess,
    private: RegistryProcess,
    private_proxy: Proxy,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    fault: Fault,
) -> None:
    private_proxy.rule = once("/blobs/uploads/.*digest=", fault, method="PUT")
    artifact = artifact_of(upstream.host)

    outcome = only(Copier(connect_to(private_proxy.host)).run([artifact]))

    assert (outcome.message, outcome.digest) == ("", image.digest)
    assert private.blob(artifact.repository, digest_of(LARGE)) == LARGE


@pytest.mark.parametrize("path", ["/manifests/1.0", "/manifests/sha256"])
def test_failing_manifest_request_is_sent_again(
    upstream: RegistryProcess,
    upstream_proxy: Proxy,
    private: RegistryProcess,
    private_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    path: str,
) -> None:
    image = push_index(upstream, f"{place}/image", "1.0", {"amd64": [SMALL], "arm64": [b"x"]})
    upstream_proxy.rule = once(path, Fault("status", 502), times=2)
    private_proxy.rule = once(path, Fault("drop"), times=2)
    artifact = artifact_of(upstream_proxy.host)

    assert only(Copier(connect_to(private_proxy.host)).run([artifact])).message == ""
    assert private.digest(artifact.repository, "1.0") == image.digest


def test_retry_waits_as_long_as_the_server_asks(
    upstream_proxy: Proxy,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    waits: list[float] = []
    upstream_proxy.rule = once(BLOB, Fault("status", 429, headers=(("Retry-After", "7"),)))
    retry = RetryPolicy(sleep=waits.append)

    Copier(connect_to(private.host, retry=retry)).run([artifact_of(upstream_proxy.host)])

    assert waits == [7]


def test_failure_that_stays_is_one_line_and_leaves_no_tag(
    upstream_proxy: Proxy,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    upstream_proxy.rule = once(BLOB, Fault("status", 503, text="try later"), times=100)
    artifact = artifact_of(upstream_proxy.host)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.status is Status.FAILED
    assert outcome.message.endswith(f"{digest_of(LARGE)}: HTTP 503: try later (tried 5 times)")
    assert "\n" not in outcome.message
    assert private.tags(artifact.repository) == []


def test_content_other_than_its_digest_never_arrives(
    upstream_proxy: Proxy,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    upstream_proxy.rule = once(BLOB, Fault("corrupt"), times=100)
    artifact = artifact_of(upstream_proxy.host)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert "digest mismatch: the content has sha256:" in outcome.message
    assert outcome.message.endswith("(tried 2 times)")
    assert private.blob(artifact.repository, digest_of(LARGE)) is None


def test_manifest_other_than_the_lock_is_refused(
    upstream: RegistryProcess,
    upstream_proxy: Proxy,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifact = artifact_of(upstream_proxy.host, digest=image.digest, source_digest=image.digest)
    upstream_proxy.rule = once("/manifests/sha256", Fault("corrupt"), times=100)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert f"digest mismatch: expected {image.digest}, got sha256:" in outcome.message
    assert private.tags(artifact.repository) == []


def test_digest_of_the_lock_that_is_gone_upstream(
    upstream: RegistryProcess,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    gone = f"sha256:{'0' * 64}"
    artifact = artifact_of(upstream.host, digest=gone, source_digest=gone)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.message.startswith(f"image/image: {gone} of the lock is gone upstream")
    assert outcome.message.endswith("run sonic-eks mirror lock")


def test_tag_that_is_not_upstream(
    upstream: RegistryProcess,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifact = artifact_of(upstream.host, tag="9.9")

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.message == f"image/image: {artifact.source} has no tag 9.9"


def test_repository_that_does_not_exist(
    upstream: RegistryProcess,
    private_proxy: Proxy,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    private_proxy.repositories = set()
    artifact = artifact_of(upstream.host)

    outcome = only(Copier(connect_to(private_proxy.host)).run([artifact]))

    assert outcome.message == (
        f"image/image: repository {private_proxy.host}/{artifact.repository} does not exist;"
        " deploy the registry stack first"
    )


def test_registry_that_is_not_there(
    private: RegistryProcess, artifact_of: MakeArtifact, connect_to: Connect
) -> None:
    outcome = only(Copier(connect_to(private.host)).run([artifact_of("127.0.0.1:1")]))

    assert "Connection refused (tried 5 times)" in outcome.message
    assert "\n" not in outcome.message


def test_plan_tells_what_it_cannot_find_out(
    private: RegistryProcess, artifact_of: MakeArtifact, connect_to: Connect
) -> None:
    (step,) = plan(connect_to(private.host), [artifact_of("127.0.0.1:1")])

    assert step.state is None
    assert "Connection refused" in step.problem


def test_failure_of_one_artifact_does_not_stop_the_others(
    upstream: RegistryProcess,
    private: RegistryProcess,
    image: Image,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifacts = [artifact_of(upstream.host, "absent"), artifact_of(upstream.host)]

    outcomes = Copier(connect_to(private.host)).run(artifacts)

    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.COPIED]


def test_full_disk(
    upstream: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    tmp_path: Path,
) -> None:
    push_image(upstream, f"{place}/large", "1.0", [noise(9_000_000, 1)])
    push_image(upstream, f"{place}/small", "1.0", [SMALL])
    artifacts = [artifact_of(upstream.host, name) for name in ("large", "small")]

    with registry(tmp_path / "full", disk_bytes=6_000_000) as full:
        outcomes = Copier(connect_to(full.host)).run(artifacts)
        tags = [full.tags(artifact.repository) for artifact in artifacts]

    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.COPIED]
    assert "\n" not in outcomes[0].message
    assert "(tried 5 times)" in outcomes[0].message
    assert tags == [[], ["1.0"]]


def test_error_names_the_artifact_once(
    private: RegistryProcess, artifact_of: MakeArtifact, connect_to: Connect
) -> None:
    artifact = dataclasses.replace(artifact_of("127.0.0.1:1"), source="Not A Reference")

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.message.startswith("image/image: malformed reference 'Not A Reference'")


def test_policy_gives_up_after_its_tries() -> None:
    with pytest.raises(MirrorError, match=r"x: HTTP 500 \(tried 5 times\)"):
        FAST.call("x", _always_500)


def _always_500() -> None:
    from sonic_eks.mirror.errors import TransientError

    raise TransientError("HTTP 500")
