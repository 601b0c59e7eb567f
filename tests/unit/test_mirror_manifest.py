"""Manifests: what is read of them, and what is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.mirror.errors import MirrorError
from sonic_eks.mirror.manifest import matching_platforms, parse_manifest

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


def layer(**changes: Any) -> dict[str, Any]:
    return {
        "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
        "digest": OTHER,
        "size": 7,
        **changes,
    }


def image(**changes: Any) -> dict[str, Any]:
    config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": DIGEST, "size": 2}
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config}
    return {**document, "layers": [layer()], **changes}


def child(digit: str, platform: dict[str, str] | None) -> dict[str, Any]:
    entry = {"mediaType": OCI_MANIFEST, "digest": "sha256:" + digit * 64, "size": 10}
    return {**entry, "platform": platform} if platform else entry


def linux(architecture: str, variant: str | None = None) -> dict[str, str]:
    platform = {"os": "linux", "architecture": architecture}
    return {**platform, "variant": variant} if variant else platform


def index(*entries: dict[str, Any]) -> bytes:
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
    return json.dumps(document, indent=2).encode()


def parsed(document: Any, content_type: str = OCI_MANIFEST) -> Any:
    return parse_manifest(json.dumps(document).encode(), content_type, "here")


def test_blobs_are_configuration_and_layers_each_once() -> None:
    manifest = parsed(image(layers=[layer(), layer()]))

    assert [(blob.digest, blob.size) for blob in manifest.blobs] == [(DIGEST, 2), (OTHER, 7)]
    assert not manifest.is_index


def test_type_comes_from_the_registry_where_the_document_has_none() -> None:
    document = image()
    del document["mediaType"]

    assert parsed(document, f"{OCI_MANIFEST}; charset=utf-8").media_type == OCI_MANIFEST


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "no JSON object"),
        ({"schemaVersion": 1, "mediaType": OCI_MANIFEST}, "schemaVersion is not 2"),
        (
            image(mediaType="application/vnd.docker.distribution.manifest.v1+prettyjws"),
            "manifest.v1",
        ),
        (image(mediaType="text/html"), "manifest type 'text/html' cannot be copied"),
        (image(manifests=[]), "do not fit its type"),
        ({"schemaVersion": 2, "mediaType": OCI_MANIFEST}, "do not fit its type"),
        (image(mediaType=OCI_INDEX), "do not fit its type"),
        (image(layers={}), "layers is no list"),
        (image(layers=[7]), "no JSON object"),
        (image(layers=[layer(digest="sha512:" + "1" * 128)]), "only SHA-256 can"),
        (image(layers=[layer(digest=None)]), "only SHA-256 can"),
        (image(layers=[layer(size=-1)]), "no number of bytes"),
        (image(layers=[layer(size=True)]), "no number of bytes"),
        (image(layers=[layer(size="7")]), "no number of bytes"),
        (image(config=None), "no JSON object"),
        (image(layers=[layer(urls=["https://elsewhere.example/l"])]), "kept outside the registry"),
        (
            image(
                layers=[
                    layer(mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
                ]
            ),
            "choose platforms without such layers",
        ),
        (
            image(
                layers=[
                    layer(mediaType="application/vnd.oci.image.layer.nondistributable.v1.tar+zstd")
                ]
            ),
            "kept outside the registry",
        ),
    ],
)
def test_what_cannot_be_copied_is_one_line(document: Any, said: str) -> None:
    with pytest.raises(MirrorError) as caught:
        parsed(document)
    assert caught.value.exit_status == PROBLEM_FOUND
    assert str(caught.value).startswith("here: ")
    assert said in str(caught.value)


@given(st.binary())
def test_any_answer_is_a_manifest_or_one_line(body: bytes) -> None:
    with pytest.raises(SonicEksError) as caught:
        parse_manifest(body, OCI_MANIFEST, "here")
    assert "\n" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.sampled_from(["config", "layers", "mediaType", "schemaVersion"]), json_values)
def test_any_value_in_a_manifest_is_read_or_one_line(key: str, value: Any) -> None:
    with contextlib.suppress(SonicEksError):  # any other exception fails
        assert parsed(image(**{key: value})).media_type == OCI_MANIFEST


class TestPlatforms:
    body = index(
        child("a", linux("amd64")),
        child("b", linux("arm64", "v8")),
        child("c", linux("arm", "v7")),
        child("d", {"os": "unknown", "architecture": "unknown"}),
    )

    def chosen(self, *wanted: str) -> list[str]:
        whole = parse_manifest(self.body, OCI_INDEX, "here")
        reduced = matching_platforms(whole, wanted, "here")
        return [entry.digest[7] for entry in reduced.children]

    @pytest.mark.parametrize(
        ("wanted", "kept"),
        [
            (("linux/amd64",), ["a"]),
            (("linux/arm64",), ["b"]),
            (("linux/arm64/v8",), ["b"]),
            (("linux/arm",), ["c"]),  # not arm64
            (("linux/arm64", "linux/amd64"), ["a", "b"]),
        ],
    )
    def test_chosen_platforms_are_kept(self, wanted: tuple[str, ...], kept: list[str]) -> None:
        assert self.chosen(*wanted) == kept

    def test_platform_that_is_not_there_is_refused_with_what_is(self) -> None:
        with pytest.raises(MirrorError, match="it has linux/amd64, linux/arm64/v8, linux/arm/v7"):
            self.chosen("linux/amd64", "windows/amd64")

    def test_index_stays_as_it_is_when_nothing_is_left_out(self) -> None:
        whole = parse_manifest(index(child("a", linux("amd64"))), OCI_INDEX, "here")

        assert matching_platforms(whole, ("linux/amd64",), "here").body == whole.body

    def test_reduced_index_keeps_entries_and_annotations(self) -> None:
        document = json.loads(self.body)
        document["annotations"] = {"org.opencontainers.image.title": "Grüße"}
        whole = parse_manifest(json.dumps(document).encode(), OCI_INDEX, "here")

        reduced = json.loads(matching_platforms(whole, ("linux/arm64",), "here").body)

        assert reduced["annotations"] == document["annotations"]
        assert reduced["manifests"] == [child("b", linux("arm64", "v8"))]
