"""What a reader of a synthesized deployment is told about its network."""

from __future__ import annotations

import pytest

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.deployment import Deployment, load_deployment
from sonic_eks.notices import Notice, unset_vendor_names, warnings
from tests.configuration import with_values
from tests.synth import ROOT, changed


def notices(name: str) -> list[Notice]:
    return warnings(load_deployment(ROOT / "config" / f"{name}.yaml"))


def test_an_existing_vpc_names_the_route_table_that_nothing_checks() -> None:
    (notice,) = [n for n in notices("existing-vpc") if n.field == "network.existing"]
    # The GPU subnet's, which must not lead to the internet.
    assert "rtb-0a1b2c3d4e5f60004" in notice.text


@pytest.mark.parametrize("name", ["default", "isolated", "production"])
def test_a_vpc_that_is_made_needs_no_look(name: str) -> None:
    assert "network.existing" not in {notice.field for notice in notices(name)}


def test_production_leaves_only_what_cannot_be_settled_here() -> None:
    fields = {notice.field for notice in notices("production")}
    # Capacity is for a measurement to settle, digests for `sonic-eks mirror lock`, and where its
    # images are for the vendor.
    assert fields <= {"scaling.generationsPerGpu", "registry", "registry.vendorRegistry"}


@pytest.mark.parametrize(
    ("license_settings", "told"),
    [
        ({}, False),
        ({"mode": "airGapped", "dataPath": "/data"}, True),
        (
            {
                "mode": "airGapped",
                "dataPath": "/data",
                "seedFile": "license",
                "seedSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:x-AbCdEf",
            },
            False,
        ),
    ],
)
def test_an_air_gapped_license_that_nothing_seeds_is_told(
    license_settings: dict[str, str], told: bool
) -> None:
    config = Configuration.model_validate(with_values(("license", license_settings)))
    assert ("license.seedFile" in {n.field for n in unset_vendor_names(config)}) is told


@pytest.mark.parametrize("name", ["isolated", "production"])
def test_notices_name_no_secret(name: str) -> None:
    found = notices(name) + unset_vendor_names(load_deployment(ROOT / f"config/{name}.yaml").config)
    assert found
    assert "secretsmanager" not in str(found)


def test_who_replicates_is_told_whose_rules_go(default_config: Configuration) -> None:
    config = changed(default_config, registry={"replicateTo": ["us-west-2"]})
    found = {n.field: n.text for n in warnings(Deployment(config, Catalogue(config)))}
    assert "deletes all of them" in found["registry.replicateTo"]
    assert "registry.replicateTo" not in {notice.field for notice in notices("default")}
