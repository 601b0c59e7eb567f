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
