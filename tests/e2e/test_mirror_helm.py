"""Charts: pushed by the real helm, or from a Helm repository; pulled and rendered by helm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.copier import Copier, Status
from sonic_eks.upstream import Kind
from tests.e2e.artifacts import Connect, MakeArtifact, only
from tests.e2e.helm import Helm, files_served, helm_program, write_chart
from tests.e2e.registries import OCI_MANIFEST, RegistryProcess, digest_of

pytestmark = pytest.mark.slow


@pytest.fixture
def helm(pytestconfig: pytest.Config, tmp_path: Path) -> Helm:
    cache = pytestconfig.cache
    assert cache is not None
    return Helm(helm_program(Path(cache.mkdir("helm"))), tmp_path / "home")


@pytest.fixture
def package(helm: Helm, tmp_path: Path) -> Path:
    """A packaged chart, alone in its folder."""
    packages = tmp_path / "packages"
    helm("package", write_chart(tmp_path / "source"), "-d", packages)
    return packages / "greeter-1.2.3.tgz"


@pytest.fixture
def repository(helm: Helm, package: Path) -> Iterator[str]:
    """A Helm repository over HTTP with that chart."""
    helm("repo", "index", package.parent)
    with files_served(package.parent) as address:
        yield address


@pytest.fixture
def chart_of(artifact_of: MakeArtifact, place: str) -> MakeArtifact:
    def make(host: str, **fields: object) -> Artifact:
        values: dict[str, object] = {"kind": Kind.CHART, "tag": "1.2.3", **fields}
        return artifact_of(host, "greeter", **values)

    return make


def test_chart_that_helm_pushed_keeps_its_bytes(
    helm: Helm,
    package: Path,
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    chart_of: MakeArtifact,
    connect_to: Connect,
    tmp_path: Path,
) -> None:
    helm("push", package, f"oci://{upstream.host}/{place}", "--plain-http")
    artifact = chart_of(upstream.host, source=f"oci://{upstream.host}/{place}/greeter")
    pushed = upstream.manifest(f"{place}/greeter", "1.2.3")
    assert pushed is not None

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert (outcome.message, outcome.digest) == ("", digest_of(pushed))
    address = f"oci://{private.host}/{artifact.repository}"
    helm("pull", address, "--version", "1.2.3", "--plain-http", "-d", tmp_path)
    assert (tmp_path / package.name).read_bytes() == package.read_bytes()


def test_chart_of_a_helm_repository_is_what_helm_would_push(
    helm: Helm,
    package: Path,
    repository: str,
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    chart_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    helm("push", package, f"oci://{upstream.host}/{place}", "--plain-http")
    artifact = chart_of(upstream.host, source=repository)
    Copier(connect_to(private.host)).run([artifact])

    ours = json.loads(private.manifest(artifact.repository, "1.2.3") or b"")
    theirs = json.loads(upstream.manifest(f"{place}/greeter", "1.2.3") or b"")

    assert ours["mediaType"] == OCI_MANIFEST  # helm leaves it out
    assert [(x["mediaType"], x["digest"]) for x in ours["layers"]] == [
        (x["mediaType"], x["digest"]) for x in theirs["layers"]
    ]
    assert ours["config"]["mediaType"] == theirs["config"]["mediaType"]
    our_config = private.blob(artifact.repository, ours["config"]["digest"]) or b""
    their_config = upstream.blob(f"{place}/greeter", theirs["config"]["digest"]) or b""
    assert {k: v for k, v in json.loads(our_config).items() if v} == json.loads(their_config)


def test_helm_pulls_and_renders_the_copy_of_a_helm_repositorys_chart(
    helm: Helm,
    package: Path,
    repository: str,
    private: RegistryProcess,
    chart_of: MakeArtifact,
    connect_to: Connect,
    tmp_path: Path,
) -> None:
    artifact = chart_of(private.host, source=repository)
    assert only(Copier(connect_to(private.host)).run([artifact])).status is Status.COPIED
    address = f"oci://{private.host}/{artifact.repository}"

    helm("pull", address, "--version", "1.2.3", "--plain-http", "-d", tmp_path)
    rendered = helm(
        *("template", "release", address, "--version", "1.2.3", "--plain-http"),
        *("--set", "greeting=moin"),
    )

    assert (tmp_path / package.name).read_bytes() == package.read_bytes()
    assert "greeting: moin" in rendered
    assert 'app: "1.10"' in rendered


def test_chart_of_a_helm_repository_has_the_same_digest_each_time(
    helm: Helm,
    package: Path,
    repository: str,
    private: RegistryProcess,
    chart_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifact = chart_of(private.host, source=repository)
    first = only(Copier(connect_to(private.host)).run([artifact]))
    # A repository that is indexed anew says another time of creation.
    helm("repo", "index", package.parent)

    second = only(Copier(connect_to(private.host)).run([artifact]))

    assert (first.status, second.status) == (Status.COPIED, Status.PRESENT)
    assert first.digest == second.digest


def test_package_other_than_the_index_says_is_refused(
    package: Path,
    repository: str,
    private: RegistryProcess,
    chart_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    artifact = chart_of(private.host, source=repository)
    package.write_bytes(package.read_bytes() + b"more")

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert "digest mismatch: the index says sha256:" in outcome.message
    assert private.tags(artifact.repository) == []


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (None, "HTTP 404"),
        ("entries: {}", "not in the repository's index"),
        ("entries: {greeter: [{version: 1.0.0}]}", "not in the repository's index"),
        (
            "entries: {greeter: [{version: 1.2.3, urls: [x.tgz]}]}",
            "the index gives no SHA-256 or no address",
        ),
        ("entries: [", "no YAML"),
        ("just text", "not in the repository's index"),
    ],
)
def test_index_that_cannot_be_used(
    package: Path,
    repository: str,
    private: RegistryProcess,
    chart_of: MakeArtifact,
    connect_to: Connect,
    index: str | None,
    said: str,
) -> None:
    artifact = chart_of(private.host, source=repository)
    (package.parent / "index.yaml").unlink()
    if index is not None:
        (package.parent / "index.yaml").write_text(index)

    outcome = only(Copier(connect_to(private.host)).run([artifact]))

    assert outcome.status is Status.FAILED
    assert said in outcome.message
    assert "\n" not in outcome.message
