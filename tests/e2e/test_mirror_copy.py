"""Copies between two real registries: exact, complete, and checked by another program."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest

from sonic_eks.mirror.copier import Copier, Outcome, Status
from tests.e2e.artifacts import Connect, MakeArtifact, locked, only
from tests.e2e.fault_proxy import Fault, Proxy
from tests.e2e.registries import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    RegistryProcess,
    digest_of,
    noise,
    push_image,
    push_index,
)
from tests.tools import require_tool

pytestmark = pytest.mark.slow


def skopeo(*arguments: str) -> str:
    command = [require_tool("skopeo"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_index_arrives_whole_and_unchanged(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(300_000, 1), noise(50_000, 2)], "arm64": [noise(200_000, 3)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers, attested=True)
    artifact = artifact_of(upstream.host)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert (outcome.status, outcome.digest) == (Status.COPIED, image.digest)
    assert outcome.sent_bytes == image.size
    assert private.digest(artifact.repository, "1.0") == image.digest
    assert private.tags(artifact.repository) == ["1.0"]  # children have no tags of their own
    for child in image.children:
        assert private.digest(artifact.repository, child) == child
    for blob in image.blobs:
        content = private.blob(artifact.repository, blob)
        assert content is not None
        assert digest_of(content) == blob


def test_skopeo_reads_the_same_digests(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(1000, 1)], "arm64": [noise(1000, 2)]}
    push_index(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream.host)
    Copier(connect_to(private.host)).run([artifact])

    def read(host: str, repository: str, reference: str) -> str:
        image = f"docker://{host}/{repository}{reference}"
        return skopeo("inspect", "--tls-verify=false", "--raw", image)

    raw = read(private.host, artifact.repository, ":1.0")
    assert raw == read(upstream.host, f"{place}/image", ":1.0")
    entries = json.loads(raw)["manifests"]
    assert len(entries) == 2
    for entry in entries:
        child = read(private.host, artifact.repository, f"@{entry['digest']}")
        assert digest_of(child.encode()) == entry["digest"]


@pytest.mark.parametrize(
    ("media_type", "layer_type", "with_media_type"),
    [
        (DOCKER_MANIFEST, "application/vnd.docker.image.rootfs.diff.tar.gzip", True),
        (
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.oci.image.layer.v1.tar+zstd",
            True,
        ),
        # As Helm pushes charts.
        (
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            False,
        ),
    ],
    ids=["docker", "zstd", "without mediaType"],
)
def test_single_manifest_keeps_its_bytes(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    media_type: str,
    layer_type: str,
    with_media_type: bool,
) -> None:
    push_image(
        upstream,
        f"{place}/image",
        "1.0",
        [noise(1000, 1)],
        media_type=media_type,
        layer_type=layer_type,
        with_media_type=with_media_type,
    )
    artifact = artifact_of(upstream.host)

    assert only(Copier(connect_to(private.host)).run([artifact])).status is Status.COPIED

    expected = upstream.manifest(f"{place}/image", "1.0")
    assert private.manifest(artifact.repository, "1.0") == expected


def test_docker_manifest_list_keeps_its_digest(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    child = push_image(
        upstream, f"{place}/image", None, [noise(1000, 1)], media_type=DOCKER_MANIFEST
    )
    size = len(upstream.manifest(f"{place}/image", child.digest) or b"")
    platform = {"os": "linux", "architecture": "amd64"}
    entry = {"mediaType": DOCKER_MANIFEST, "digest": child.digest, "size": size}
    body = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": DOCKER_LIST,
            "manifests": [{**entry, "platform": platform}],
        }
    ).encode()
    upstream.push_manifest(f"{place}/image", "1.0", body, DOCKER_LIST)
    artifact = artifact_of(upstream.host)

    assert only(Copier(connect_to(private.host)).run([artifact])).digest == digest_of(body)
    assert private.manifest(artifact.repository, "1.0") == body


def test_one_chosen_platform_gives_its_own_manifest(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(3000, 1)], "arm64": [noise(5000, 2)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers, attested=True)
    artifact = artifact_of(upstream.host, platforms=("linux/amd64",))

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.digest == image.children[0]
    assert private.digest(artifact.repository, "1.0") == image.children[0]
    assert private.digest(artifact.repository, image.children[1]) is None


def test_several_chosen_platforms_give_the_same_reduced_index_each_time(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(300, 1)], "arm64": [noise(500, 2)], "s390x": [noise(700, 3)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream.host, platforms=("linux/amd64", "linux/arm64"))

    first = only(Copier(connect_to(private.host)).run([artifact]))
    second = only(Copier(connect_to(private.host)).run([artifact]))

    assert (first.status, second.status) == (Status.COPIED, Status.PRESENT)
    assert first.digest == second.digest == private.digest(artifact.repository, "1.0")
    index = json.loads(private.manifest(artifact.repository, "1.0") or b"")
    assert [entry["digest"] for entry in index["manifests"]] == list(image.children[:2])


def test_platform_that_is_not_there_is_refused(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    push_index(upstream, f"{place}/image", "1.0", {"arm64": [b"x"], "s390x": [b"y"]})
    push_image(upstream, f"{place}/single", "1.0", [b"x"], architecture="arm64")
    artifacts = [
        artifact_of(upstream.host, name, platforms=("linux/amd64",)) for name in ("image", "single")
    ]

    index, single = Copier(connect_to(private.host)).run(artifacts)

    assert index.message == (
        "image/image: has no platform 'linux/amd64'; it has linux/arm64, linux/s390x"
    )
    assert single.message == "image/single: has only the platform 'linux/arm64', not linux/amd64"
    assert private.tags(artifacts[0].repository) == []


def test_run_with_everything_present_asks_once_for_each_artifact(
    upstream: RegistryProcess,
    private_proxy: Proxy,
    upstream_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(3000, 1)], "arm64": [noise(5000, 2)]}
    push_index(upstream, f"{place}/index", "1.0", layers)
    push_image(upstream, f"{place}/single", "1.0", [noise(3000, 1)])
    connections = connect_to(private_proxy.host)
    artifacts = [
        locked(connections, artifact_of(upstream_proxy.host, name)) for name in ("index", "single")
    ]
    Copier(connections).run(artifacts)
    private_proxy.requests.clear()
    upstream_proxy.requests.clear()

    outcomes = Copier(connect_to(private_proxy.host)).run(artifacts)

    assert {outcome.status for outcome in outcomes} == {Status.PRESENT}
    assert sorted(private_proxy.requests) == [
        ("HEAD", f"/v2/{artifact.repository}/manifests/1.0", 200) for artifact in artifacts
    ]
    assert upstream_proxy.requests == []


def test_layer_that_images_share_is_sent_once(
    upstream: RegistryProcess,
    private: RegistryProcess,
    private_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    shared = noise(400_000, 9)
    for name in ("one", "two"):
        push_image(upstream, f"{place}/{name}", "1.0", [shared, noise(1000, len(name))])
    artifacts = [artifact_of(upstream.host, name) for name in ("one", "two")]

    outcomes = Copier(connect_to(private_proxy.host)).run(artifacts)

    assert [outcome.status for outcome in outcomes] == [Status.COPIED] * 2
    assert private_proxy.received_bytes < 410_000
    for artifact in artifacts:
        assert private.blob(artifact.repository, digest_of(shared)) == shared


def test_tag_with_another_digest_is_an_error(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifact = artifact_of(upstream.host)
    there = push_image(private, artifact.repository, "1.0", [b"old"])
    wanted = push_image(upstream, f"{place}/image", "1.0", [b"new"])

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.status is Status.FAILED
    assert f"tag 1.0 holds {there.digest} instead of {wanted.digest}" in outcome.message
    assert private.digest(artifact.repository, "1.0") == there.digest


def test_tag_that_another_writer_set_meanwhile_is_done(
    upstream: RegistryProcess,
    private: RegistryProcess,
    private_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    image = push_image(upstream, f"{place}/image", "1.0", [b"layer"])
    artifact = artifact_of(upstream.host)
    body = upstream.manifest(f"{place}/image", "1.0") or b""

    def other_writer(method: str, path: str) -> Fault | None:
        if method == "PUT" and path.endswith("/manifests/1.0"):
            private.push_manifest(
                artifact.repository, "1.0", body, "application/vnd.oci.image.manifest.v1+json"
            )
        return None

    private_proxy.rule, private_proxy.immutable = other_writer, True

    outcome = only(Copier(connect_to(private_proxy.host)).run([artifact]))

    assert (outcome.status, outcome.digest) == (Status.COPIED, image.digest)
    assert ("PUT", f"/v2/{artifact.repository}/manifests/1.0", 400) in private_proxy.requests


def test_tag_comes_last(
    upstream: RegistryProcess,
    private_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(9000, 1), noise(900, 2)], "arm64": [noise(5000, 3)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream.host)

    Copier(connect_to(private_proxy.host)).run([artifact])

    written = [path for method, path, _ in private_proxy.requests if method == "PUT"]
    manifests = [path.rpartition("/")[2] for path in written if "/manifests/" in path]
    assert written[-3:] == [p for p in written if "/manifests/" in p]
    assert manifests == [*image.children, "1.0"]


def test_two_runs_at_once_do_no_harm(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = {"amd64": [noise(2_000_000, 1), noise(900, 2)], "arm64": [noise(1_500_000, 3)]}
    image = push_index(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream.host)
    outcomes: list[Outcome] = []
    barrier = threading.Barrier(2)

    def run() -> None:
        copier = Copier(connect_to(private.host))
        barrier.wait()
        outcomes.extend(copier.run([artifact]))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [outcome.message for outcome in outcomes] == [""] * 2
    assert [outcome.digest for outcome in outcomes] == [image.digest] * 2
    assert Status.FAILED not in {outcome.status for outcome in outcomes}
    for blob in image.blobs:
        assert digest_of(private.blob(artifact.repository, blob) or b"") == blob
