"""The list, the lock, the catalogue's references, and images in use."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.errors import BAD_INPUT, SonicEksError
from sonic_eks.mirror.artifact import Artifact, read_list, write_list
from sonic_eks.mirror.aws import connect
from sonic_eks.mirror.lock import LockEntry, lock_path, locked, read_lock, write_lock
from sonic_eks.mirror.verify import image_references, missing_references
from sonic_eks.upstream import Kind

DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64
HOST = "111122223333.dkr.ecr.us-east-1.amazonaws.com"


def artifact(**changes: Any) -> Artifact:
    base = Artifact("nats", Kind.IMAGE, "docker.io/library/nats", "2.0", "sonic", "d/images/nats")
    return dataclasses.replace(base, **changes)


def entry(**changes: Any) -> LockEntry:
    base = LockEntry("docker.io/library/nats", "2.0", (), DIGEST, OTHER, 7)
    return dataclasses.replace(base, **changes)


def test_list_survives_writing_and_reading(tmp_path: Path, default_config: Configuration) -> None:
    artifacts = Catalogue(default_config).artifacts
    path = tmp_path / "list.json"
    path.write_text(write_list(artifacts))

    assert read_list(path) == artifacts


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": "x"}]', '[{"kind": "song"}]'])
def test_file_that_is_no_list_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.json"
    path.write_text(text)

    with pytest.raises(SonicEksError) as caught:
        read_list(path)
    assert caught.value.exit_status == BAD_INPUT


def test_lock_lies_beside_its_configuration() -> None:
    assert lock_path(Path("config/voice.eu.yaml")) == Path("config/voice.eu.lock.json")


def test_lock_survives_writing_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.lock.json"
    lock = {"image/nats": entry(), "chart/keda": entry(platforms=("linux/amd64",))}

    assert read_lock(path) is None
    assert write_lock(path, lock) is True
    assert read_lock(path) == lock
    assert write_lock(path, lock) is False
    assert [item.name for item in tmp_path.iterdir()] == ["a.lock.json"]  # no scratch file left


@pytest.mark.parametrize("target", ["/dev/zero", "fifo", "."])
def test_lock_that_is_no_file_is_refused_at_once(tmp_path: Path, target: str) -> None:
    if target == "fifo":
        os.mkfifo(tmp_path / "fifo")
    path = tmp_path / "a.lock.json"
    path.symlink_to(tmp_path / target)
    with pytest.raises(SonicEksError, match=r"no file|Is a directory") as caught:
        read_lock(path)
    assert caught.value.exit_status == BAD_INPUT


def test_lock_that_is_huge_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.lock.json"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(SonicEksError, match="larger than 10000000 bytes"):
        read_lock(path)


def test_lock_that_links_nowhere_is_not_taken_for_none(tmp_path: Path) -> None:
    path = tmp_path / "a.lock.json"
    path.symlink_to(tmp_path / "gone.json")

    with pytest.raises(SonicEksError, match=r"a link to '.*, which is not there") as caught:
        read_lock(path)
    assert caught.value.exit_status == BAD_INPUT
    (tmp_path / "gone.json").write_text('{"version": 1, "artifacts": {}}')
    assert read_lock(path) == {}


def test_locked_artifact_has_its_digests() -> None:
    (found,) = locked([artifact()], {"image/nats": entry()})

    assert (found.digest, found.source_digest) == (DIGEST, OTHER)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tag": "2.1"}, "docker.io/library/nats:2.1"),
        ({"source": "quay.io/nats"}, "quay.io/nats:2.0"),
        ({"platforms": ("linux/amd64",)}, "(linux/amd64)"),
    ],
)
def test_stale_lock_is_bad_input(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SonicEksError) as caught:
        locked([artifact(**changes)], {"image/nats": entry()})
    assert caught.value.exit_status == BAD_INPUT
    assert said in str(caught.value)
    assert str(caught.value).endswith("run sonic-eks mirror lock")


def test_artifact_without_a_source_needs_no_lock() -> None:
    unknown = artifact(source=None)

    assert locked([unknown], {}) == (unknown,)


def test_catalogue_without_lock_refers_by_tag(default_config: Configuration) -> None:
    catalogue = Catalogue(default_config)

    assert catalogue.image("nats").endswith(f":{catalogue.tag(Kind.IMAGE, 'nats')}")
    assert catalogue.digest(Kind.IMAGE, "nats") is None


def test_credentials_and_platforms_reach_the_artifacts(default_config: Configuration) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-AbCdEf"
    values = default_config.model_dump(by_alias=True)
    values["registry"] |= {
        "credentialSecretArns": {"ghcr.io": arn},
        "platforms": ["linux/amd64"],
    }
    artifacts = Catalogue(Configuration.model_validate(values)).artifacts

    images = [a for a in artifacts if a.kind is Kind.IMAGE]
    assert (
        {a.name for a in artifacts if a.secret_arn == arn}
        == {a.name for a in images if (a.source or "").startswith("ghcr.io/")}
        >= {"keda-operator"}
    )
    assert {a.platforms for a in images} == {("linux/amd64",)}
    assert {a.platforms for a in artifacts if a.kind is Kind.CHART} == {()}


def test_repositories_and_names_are_unique(default_config: Configuration) -> None:
    artifacts = Catalogue(default_config).artifacts

    assert len({a.repository for a in artifacts}) == len({a.key for a in artifacts})
    assert len({a.key for a in artifacts}) == len(artifacts)


@pytest.mark.parametrize(
    "host", ["example.com", "111122223333.dkr.ecr.us-east-1.example.com", "docker.io"]
)
def test_registry_other_than_ecr_is_bad_input(host: str) -> None:
    with pytest.raises(SonicEksError, match="not Amazon ECR") as caught:
        connect(host)
    assert caught.value.exit_status == BAD_INPUT


@pytest.mark.parametrize(
    "host",
    [
        HOST,
        "111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn",
        "111122223333.dkr.ecr.us-gov-west-1.amazonaws.com",
        "111122223333.dkr.ecr-fips.us-gov-west-1.amazonaws.com",
    ],
)
def test_ecr_of_every_partition_is_a_registry(host: str) -> None:
    assert connect(host).host == host


@pytest.mark.parametrize(
    ("reference", "missing"),
    [
        (f"{HOST}/d/images/nats:2.0", False),
        (f"{HOST}/d/images/nats:2.0@{DIGEST}", False),
        (f"{HOST}/d/images/nats@{DIGEST}", False),
        (f"{HOST}/d/images/nats:2.1", True),
        (f"{HOST}/d/images/nats:2.0@{OTHER}", True),
        (f"{HOST}/d/images/other:2.0", True),
        ("docker.io/library/nats:2.0", True),
        ("nats", True),
        ("localhost:5000/d/images/nats", True),
    ],
)
def test_image_in_use_is_in_the_list_or_missing(reference: str, missing: bool) -> None:
    found = missing_references([reference], {HOST}, [artifact(digest=DIGEST)])

    assert found == ([reference] if missing else [])


def test_images_are_found_in_every_kind_of_container() -> None:
    document = {
        "items": [
            {"spec": {"containers": [{"image": "a"}, {"name": "none"}], "initContainers": None}},
            {"spec": {"template": {"spec": {"initContainers": [{"image": "b"}]}}}},
            {"spec": {"ephemeralContainers": [{"image": "c"}], "image": "not a container's"}},
        ]
    }

    assert image_references(document) == {"a", "b", "c"}


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["containers", "spec", "image"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_document_can_be_searched_for_images(document: Any) -> None:
    assert isinstance(image_references(document), set)
