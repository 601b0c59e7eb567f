"""The one list against all that a cluster reads: nothing missing, nothing unused."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.mirror.lock import Lock, LockEntry
from sonic_eks.mirror.verify import image_references, missing_references
from sonic_eks.upstream import UPSTREAMS, Kind, Upstream
from tests.configuration import with_values
from tests.synth import ROOT, charts_of, stacks_of

ACCOUNT = ("deployment.account", "111122223333")
DOCUMENTS: dict[str, dict[str, Any]] = {
    "default": with_values(ACCOUNT),
    "air-gapped": with_values(
        ACCOUNT,
        ("network.egress", "none"),
        ("license.mode", "airGapped"),
        ("license.dataPath", "/data"),
    ),
    "two-models": with_values(
        ACCOUNT,
        ("models", [{"name": "sonic-3"}, {"name": "sonic-2", "image": "sonic-2"}]),
        ("nodes.gpu.maxNodes", 16),
    ),
    "standalone": with_values(
        ACCOUNT,
        ("topology", "standalone"),
        ("models", [{"image": "server"}]),
        ("scaling.headroomGpus", 0),
    ),
    "china": with_values(
        ACCOUNT,
        ("deployment.region", "cn-north-1"),
        ("network.zones", ["cn-north-1a", "cn-north-1b"]),
    ),
}
# Typed by hand, with the documents that it is from.
DEFAULTS: dict[str, dict[str, str]] = yaml.safe_load(
    (ROOT / "tests" / "expected" / "chart_images.yaml").read_text()
)


@cache
def configuration(name: str) -> Configuration:
    return Configuration.model_validate(DOCUMENTS[name])


@cache
def helm_charts(name: str) -> dict[str, dict[str, Any]]:
    """Properties of every Helm release of a deployment, by its chart."""
    template = Template.from_stack(stacks_of(configuration(name)).cluster)
    found = template.find_resources("Custom::AWSCDK-EKS-HelmChart").values()
    return {resource["Properties"]["Chart"]: resource["Properties"] for resource in found}


def values_of(name: str, chart: str) -> dict[str, Any]:
    given = helm_charts(name)[chart].get("Values", "{}")
    if isinstance(given, dict):  # joined around what is known only after a deployment
        given = "".join(p if isinstance(p, str) else "later" for p in given["Fn::Join"][1])
    values: dict[str, Any] = json.loads(given)
    return values


def at(values: dict[str, Any], path: str) -> dict[str, Any]:
    for key in path.split("."):
        values = values[key]
    return values


def helm_images(name: str) -> set[str]:
    """Images in the values of every chart, at the places where the charts read them."""
    found = set()
    for chart, paths in DEFAULTS.items():
        for path in paths:
            image = at(values_of(name, chart), path)
            host = f"{image['registry']}/" if "registry" in image else ""
            found.add(f"{host}{image['repository']}:{image['tag']}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_list_and_references_are_the_same(name: str) -> None:
    config = configuration(name)
    catalogue = Catalogue(config)
    manifests = [manifest for chart in charts_of(config) for manifest in chart.manifests]
    # Manifests are rendered before the account is looked up, the cluster's charts with it.
    used = image_references(manifests) | helm_images(name)
    charts = {
        f"{properties['Repository']}:{properties['Version']}"
        for properties in helm_charts(name).values()
    }

    listed = {f"{catalogue.host}/{a.repository}:{a.tag}" for a in images_of(catalogue)}
    assert used == listed
    assert charts == {
        f"oci://{catalogue.host}/{a.repository}:{a.tag}"
        for a in catalogue.artifacts
        if a.kind is Kind.CHART
    }
    assert missing_references(used, {catalogue.host}, catalogue.artifacts) == []


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.name)
def test_something_needs_each_of_the_list(upstream: Upstream) -> None:
    assert any(upstream.need.holds(configuration(name)) for name in DOCUMENTS)
    always = all(upstream.need.holds(configuration(name)) for name in DOCUMENTS)
    assert always == (upstream.need.text == "always")


def images_of(catalogue: Catalogue) -> list[Any]:
    return [artifact for artifact in catalogue.artifacts if artifact.kind is Kind.IMAGE]


def test_charts_of_the_list_are_those_with_typed_images() -> None:
    assert {u.name for u in UPSTREAMS if u.kind is Kind.CHART} == set(DEFAULTS)


@pytest.mark.parametrize(
    ("chart", "path", "image"),
    [(chart, path, image) for chart, paths in DEFAULTS.items() for path, image in paths.items()],
)
def test_image_of_a_chart_is_replaced_by_its_copy(chart: str, path: str, image: str) -> None:
    """A chart gets the copy of the image that it would pull, not of another one."""
    given = at(values_of("default", chart), path)
    catalogue = Catalogue(configuration("default"))
    host = f"{given['registry']}/" if "registry" in given else ""
    (copy,) = (
        artifact
        for artifact in images_of(catalogue)
        if f"{catalogue.host}/{artifact.repository}" == f"{host}{given['repository']}"
    )

    assert copy.source == image
    assert copy.tag == given["tag"]


def test_image_that_the_list_lacks_is_found() -> None:
    config = configuration("default")
    catalogue = Catalogue(config)
    manifests = [manifest for chart in charts_of(config) for manifest in chart.manifests]
    without = [artifact for artifact in catalogue.artifacts if artifact.name != "nats"]

    missing = missing_references(image_references(manifests), {catalogue.host}, without)

    assert missing == [catalogue.image("nats")]


def test_references_are_exact_once_there_is_a_lock() -> None:
    config = Configuration.model_validate(
        with_values(ACCOUNT, ("registry.vendorRegistry", "vendor.example/sonic"))
    )
    unlocked = Catalogue(config)
    lock: Lock = {
        a.key: LockEntry(
            source=str(a.source),
            tag=a.tag,
            platforms=(),
            digest=f"sha256:{index:064x}",
            source_digest=f"sha256:{index:064x}",
            size_bytes=1,
        )
        for index, a in enumerate(unlocked.artifacts)
    }
    catalogue = Catalogue(config, lock)

    for artifact in images_of(catalogue):
        assert catalogue.image(artifact.name).endswith(
            f"/{artifact.repository}:{artifact.tag}@{lock[artifact.key].digest}"
        )
    # Repositories, tags and chart addresses stay as they were.
    for one, other in zip(catalogue.artifacts, unlocked.artifacts, strict=True):
        assert dataclasses.replace(one, digest=None, source_digest=None) == other
