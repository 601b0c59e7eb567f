"""References into the private registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sonic_eks import catalogue as module
from sonic_eks.catalogue import (
    API_IMAGE,
    LICENSE_PROXY_IMAGE,
    Catalogue,
    every_artifact,
    worker_image,
)
from sonic_eks.config import Configuration
from sonic_eks.late import Late
from sonic_eks.upstream import UPSTREAMS, Kind, Need, Upstream
from tests.configuration import load, with_values
from tests.expected.config_values import REGIONS
from tests.synth import changed

# Amazon ECR API reference, CreateRepository, repositoryName.
ECR_REPOSITORY = re.compile(r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*")


@pytest.mark.parametrize("region", REGIONS)
def test_the_host(tmp_path: Path, region: str) -> None:
    config = load(
        with_values(
            ("deployment.region", region),
            ("deployment.account", "111122223333"),
            ("network.zones", [f"{region}a", f"{region}b"]),
        ),
        tmp_path,
    )
    assert Catalogue(config).host == f"111122223333.dkr.ecr.{region}.{REGIONS[region][1]}"


def test_the_host_waits_for_an_account_that_is_not_named(default_config: Configuration) -> None:
    host = Catalogue(default_config).host
    assert host == f"{Late.ACCOUNT.marker}.dkr.ecr.us-east-1.amazonaws.com"


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    changes = [
        ("deployment.name", "voice"),
        ("deployment.account", "111122223333"),
        ("models", [{"name": "a", "maxReplicas": 2}, {"name": "b", "maxReplicas": 2}]),
        ("registry.versions", {"nats": "9.9.9", "sonic-worker-b": "b-1"}),
        ("registry.sonicRelease", "sonic-20990101"),
    ]
    return Catalogue(load(with_values(*changes), tmp_path))


HOST = "111122223333.dkr.ecr.us-east-1.amazonaws.com"


def test_images(catalogue: Catalogue) -> None:
    assert catalogue.image("nats") == f"{HOST}/voice/images/nats:9.9.9"
    assert catalogue.image_repository("nats") == f"{HOST}/voice/images/nats"
    assert catalogue.image(API_IMAGE) == f"{HOST}/voice/images/sonic-api:sonic-20990101"
    assert (
        catalogue.image(LICENSE_PROXY_IMAGE)
        == f"{HOST}/voice/images/sonic-license-proxy:sonic-20990101"
    )
    worker = f"{HOST}/voice/images/sonic-worker"
    assert catalogue.image(worker_image("a")) == f"{worker}-a:sonic-20990101"
    assert catalogue.image(worker_image("b")) == f"{worker}-b:b-1"


def test_charts(catalogue: Catalogue) -> None:
    for upstream in UPSTREAMS:
        if upstream.kind is Kind.CHART:
            address = catalogue.chart(upstream.name)
            assert address == f"oci://{HOST}/voice/charts/{upstream.name}"
            assert catalogue.tag(Kind.CHART, upstream.name) == upstream.tag


def test_names_are_unique() -> None:
    # `registry.versions` names artifacts of both kinds.
    names = [upstream.name for upstream in UPSTREAMS]
    assert len(set(names)) == len(names)


def test_every_artifact_is_pinned_and_has_a_repository_of_its_own(catalogue: Catalogue) -> None:
    assert len(catalogue.artifacts) >= 10 + 4
    repositories = [artifact.repository for artifact in catalogue.artifacts]
    assert len(set(repositories)) == len(repositories)
    for artifact in catalogue.artifacts:
        assert artifact.tag
        assert "latest" not in artifact.tag.lower()


def test_repositories_are_ones_that_ecr_takes_with_the_longest_names(tmp_path: Path) -> None:
    config = load(
        with_values(("deployment.name", "v" * 100), ("models", [{"name": "m" * 40}])), tmp_path
    )
    for artifact in Catalogue(config).artifacts:
        assert ECR_REPOSITORY.fullmatch(artifact.repository)
        assert 2 <= len(artifact.repository) <= 256


@pytest.mark.parametrize(
    ("registry", "source"),
    [
        (None, None),
        ("registry.example.com", "registry.example.com/cartesia-api"),
        ("registry.example.com:5000/sonic", "registry.example.com:5000/sonic/cartesia-api"),
    ],
)
def test_vendor_images_come_from_the_vendors_registry(
    tmp_path: Path, registry: str | None, source: str | None
) -> None:
    config = load(with_values(("registry.vendorRegistry", registry)), tmp_path)
    (api,) = [a for a in Catalogue(config).artifacts if a.name == API_IMAGE]
    assert api.source == source


def test_an_unknown_image_is_a_programming_error(catalogue: Catalogue) -> None:
    with pytest.raises(KeyError):
        catalogue.image("karpenter-crd")  # a chart, no image


def test_an_artifact_is_there_when_the_configuration_needs_it(
    monkeypatch: pytest.MonkeyPatch, default_config: Configuration
) -> None:
    def hears_callers(config: Configuration) -> bool:
        return bool(config.edge.client_cidrs)

    extra = Upstream(
        "extra",
        Kind.IMAGE,
        "quay.io/example/extra",
        "1",
        "sonic",
        Need("`edge.clientCidrs` is set", hears_callers),
    )
    monkeypatch.setattr(module, "UPSTREAMS", (*UPSTREAMS, extra))
    with_it = changed(default_config, edge={"clientCidrs": ["10.0.0.0/16"]})

    assert "extra" not in {artifact.name for artifact in Catalogue(default_config).artifacts}
    assert "extra" in {artifact.name for artifact in Catalogue(with_it).artifacts}
    (listed,) = (a for a in every_artifact(default_config) if a.name == "extra")
    assert listed.needed == "`edge.clientCidrs` is set"


def test_every_artifact_says_which_configurations_need_it(catalogue: Catalogue) -> None:
    needed = {artifact.name: artifact.needed for artifact in catalogue.artifacts}
    assert all(needed.values())
    assert needed["karpenter"] == "always"
    assert needed[API_IMAGE] == needed["nats"] == "`topology` is distributed"
    assert needed[worker_image("a")] == "a model of that name"
