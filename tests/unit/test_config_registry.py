"""Settings of the private registry: upstream credentials and platforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.configuration import fault_of, load, with_values

ROLE = "arn:aws:iam::111122223333:role/platform"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:docker-hub-AbCdEf"


@pytest.mark.parametrize(
    ("secrets", "fault"),
    [
        (
            {"docker.oi": SECRET},
            "registry.credentialSecretArns: got 'docker.oi'; allowed: hosts of upstream ",
        ),
        (
            {"quay.io": ROLE},
            f"registry.credentialSecretArns.quay.io: got '{ROLE}'; allowed: the ARN of a",
        ),
    ],
)
def test_credentials_refused(tmp_path: Path, secrets: dict[str, str], fault: str) -> None:
    told = fault_of(with_values(("registry.credentialSecretArns", secrets)), tmp_path)
    assert told.startswith(fault)


def test_credentials_accepted(tmp_path: Path) -> None:
    secrets = {"quay.io": SECRET, "registry.example.com": SECRET}
    vendor = ("registry.vendorRegistry", "registry.example.com/sonic")
    config = load(with_values(vendor, ("registry.credentialSecretArns", secrets)), tmp_path)
    assert config.registry.credential_secret_arns == secrets


def test_vendor_registry_with_a_scheme_is_told_without(tmp_path: Path) -> None:
    given = "https://Registry.example.com/sonic/"
    told = fault_of(with_values(("registry.vendorRegistry", given)), tmp_path)
    assert told.endswith("; nearest: registry.example.com/sonic")


@pytest.mark.parametrize(
    ("platforms", "accepted"),
    [
        ([], True),
        (["linux/amd64"], True),
        (["linux/arm64", "linux/amd64"], True),
        (["linux/arm64"], False),
        (["amd64"], False),
        ("linux/amd64", False),
    ],
)
def test_platforms_hold_that_of_the_nodes(
    tmp_path: Path, platforms: object, accepted: bool
) -> None:
    document = with_values(("registry.platforms", platforms))
    if accepted:
        assert list(load(document, tmp_path).registry.platforms) == platforms
    else:
        assert fault_of(document, tmp_path).startswith("registry.platforms")


ACCOUNT = ("deployment.account", "111122223333")


@pytest.mark.parametrize(
    ("accounts", "fault"),
    [
        (["444455556666", "444455556666"], "registry.pullAccountIds.1: got '444455556666'; "),
        (["111122223333"], "registry.pullAccountIds.0: got '111122223333'; allowed: accounts "),
        (["44445555666"], "registry.pullAccountIds.0: got '44445555666'; "),
        ([444455556666], "registry.pullAccountIds.0: got 444455556666; "),
        ("444455556666", "registry.pullAccountIds: got '444455556666'; "),
        ([f"{n:012}" for n in range(51)], "registry.pullAccountIds: got "),
    ],
)
def test_accounts_that_may_pull_refused(tmp_path: Path, accounts: object, fault: str) -> None:
    told = fault_of(with_values(ACCOUNT, ("registry.pullAccountIds", accounts)), tmp_path)
    assert told.startswith(fault)


@pytest.mark.parametrize(
    ("regions", "fault"),
    [
        (["us-east-1"], "registry.replicateTo.0: got 'us-east-1'; allowed: a region of the "),
        (["eu-west-1", "cn-north-1"], "registry.replicateTo.1: got 'cn-north-1'; allowed: "),
        (["eu-west-1", "eu-west-1"], "registry.replicateTo.1: got 'eu-west-1'; allowed: each once"),
        (["us-west-2a"], "registry.replicateTo.0: got 'us-west-2a'; allowed: a region name "),
        (["US-WEST-2"], "registry.replicateTo.0: got 'US-WEST-2'; allowed: a region name "),
        (["everywhere"], "registry.replicateTo.0: got 'everywhere'; allowed: a region name "),
        ("us-west-2", "registry.replicateTo: got 'us-west-2'; "),
        # Amazon ECR user guide, "Private image replication", considerations: 25 destinations.
        ([f"us-west-{n}" for n in range(1, 27)], "registry.replicateTo: got "),
    ],
)
def test_regions_of_replicas_refused(tmp_path: Path, regions: object, fault: str) -> None:
    told = fault_of(with_values(("registry.replicateTo", regions)), tmp_path)
    assert told.startswith(fault)


def test_registry_may_be_shared(tmp_path: Path) -> None:
    accounts = [f"{n:012}" for n in range(50)]
    regions = [f"us-west-{n}" for n in range(1, 26)]
    config = load(
        with_values(
            ACCOUNT, ("registry.pullAccountIds", accounts), ("registry.replicateTo", regions)
        ),
        tmp_path,
    )
    assert list(config.registry.pull_account_ids) == accounts
    assert list(config.registry.replicate_to) == regions
