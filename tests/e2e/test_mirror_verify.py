"""What is there and what is missing: plan and verify, against real registries."""

from __future__ import annotations

import dataclasses

import pytest

from sonic_eks.mirror.copier import Copier
from sonic_eks.mirror.examine import State
from sonic_eks.mirror.plan import plan
from sonic_eks.mirror.verify import verify
from tests.e2e.artifacts import Connect, MakeArtifact, locked
from tests.e2e.fault_proxy import Proxy
from tests.e2e.registries import (
    RegistryProcess,
    noise,
    push_image,
    push_index,
)

pytestmark = pytest.mark.slow


def test_plan_counts_what_is_missing_and_writes_nothing(
    upstream: RegistryProcess,
    private_proxy: Proxy,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    image = push_image(upstream, f"{place}/image", "1.0", [noise(7000, 1), noise(500, 2)])
    artifact = artifact_of(upstream.host)
    private.push_blob(artifact.repository, noise(7000, 1))

    (step,) = plan(connect_to(private_proxy.host), [artifact])

    assert (step.state, step.digest) == (State.MISSING, image.digest)
    assert (step.total_bytes, step.missing_bytes) == (image.size, image.size - 7000)
    assert {method for method, _, _ in private_proxy.requests} == {"HEAD"}


def test_verify_finds_a_manifest_in_the_place_of_an_index(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(3000, 1)], "arm64": [noise(5000, 2)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers)
    connections = connect_to(private.host)
    artifact = locked(connections, artifact_of(upstream.host))
    Copier(connections).run([artifact])
    assert [check.problem for check in verify(connections, [artifact])] == [""]

    child = private.manifest(artifact.repository, image.children[0]) or b""
    private.push_manifest(
        artifact.repository, "1.0", child, "application/vnd.oci.image.manifest.v1+json"
    )
    (check,) = verify(connections, [artifact])
    assert f"holds {image.children[0]} instead of {image.digest}" in check.problem


def test_verify_finds_an_index_without_one_of_its_manifests(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(3000, 1)], "arm64": [noise(5000, 2)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers)
    connections = connect_to(private.host)
    artifact = artifact_of(upstream.host)
    Copier(connections).run([artifact])

    private.request("DELETE", f"/v2/{artifact.repository}/manifests/{image.children[1]}")
    (check,) = verify(connections, [artifact])

    assert f"not its linux/arm64 {image.children[1]}" in check.problem


def test_verify_says_what_is_missing(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    push_image(upstream, f"{place}/image", "1.0", [b"layer"])
    artifact = artifact_of(upstream.host)
    by_hand = artifact_of(upstream.host, "by-hand", source=None)

    missing, unknown = verify(connect_to(private.host), [artifact, by_hand])

    assert missing.problem.startswith(f"image/image: missing in {private.host}/")
    assert "no source is known; set registry.vendorRegistry" in unknown.problem
    push_image(private, by_hand.repository, "1.0", [b"pushed by hand"])
    assert verify(connect_to(private.host), [by_hand])[0].problem == ""
    other = dataclasses.replace(by_hand, digest=f"sha256:{'0' * 64}")
    assert "instead of sha256:000" in verify(connect_to(private.host), [other])[0].problem
