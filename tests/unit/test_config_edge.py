"""The endpoint service and the private name of the load balancer, as configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

ROOT_OF = "arn:aws:iam::444455556666:root"
ROLE = "arn:aws:iam::444455556666:role/caller"
LINK = "edge.privateLink"
DNS = "edge.privateDns"


def test_a_private_link(tmp_path: Path) -> None:
    arns = [ROOT_OF, ROLE, "arn:aws:iam::444455556666:user/caller"]
    config = load(with_values((LINK, {"allowedPrincipalArns": arns})), tmp_path)
    link = config.edge.private_link
    assert link is not None
    assert list(link.allowed_principal_arns) == arns
    assert link.acceptance_required, "nobody connects unseen by default"


def test_principals_of_other_accounts_are_the_purpose(tmp_path: Path) -> None:
    document = with_values(
        (LINK, {"allowedPrincipalArns": [ROOT_OF]}), ("deployment.account", "111122223333")
    )
    assert load(document, tmp_path).edge.private_link is not None


@pytest.mark.parametrize(
    ("arn", "allowed"),
    [
        ("*", "ARNs of callers; * makes the service public"),
        ("444455556666", "the ARN of an account, an IAM role or an IAM user without a path"),
        # ModifyVpcEndpointServicePermissions: principal ARNs with path components are refused.
        (ROLE.replace("role/", "role/team/"), "without a path"),
        (ROLE.replace("role/", "policy/"), "without a path"),
        ("arn:aws:iam::*:root", "without a path"),
        ("arn:aws:sts::444455556666:assumed-role/caller/me", "without a path"),
        ("arn:aws-cn:iam::444455556666:root", "an ARN of the partition aws (that of us-east-1)"),
    ],
)
def test_principals_refused(tmp_path: Path, arn: str, allowed: str) -> None:
    fault = fault_of(with_values((LINK, {"allowedPrincipalArns": [arn]})), tmp_path)
    assert fault.startswith(f"{LINK}.allowedPrincipalArns.0: got {arn!r}; allowed: ")
    assert allowed in fault


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ({"allowedPrincipalArns": []}, "got a list of 0; allowed: a list of 1 to 50 entries"),
        ({"allowedPrincipalArns": [ROLE] * 2}, f"1: got '{ROLE}'; allowed: each principal once"),
        ({}, "missing; give "),
    ],
)
def test_private_links_refused(tmp_path: Path, link: dict[str, Any], fault: str) -> None:
    found = fault_of(with_values((LINK, link)), tmp_path)
    assert found.removeprefix(f"{LINK}.allowedPrincipalArns").lstrip(".: ").startswith(fault)


@pytest.mark.parametrize("zone", ["voice.internal", "internal", "a-1.example.com", "9.io"])
@pytest.mark.parametrize("record", ["sonic", "tts.eu", "a" * 63])
def test_private_names(tmp_path: Path, zone: str, record: str) -> None:
    dns = {"zoneName": zone, "recordName": record, "hostedZoneId": "Z0123456789ABCDEFGHIJ"}
    found = load(with_values((DNS, dns)), tmp_path).edge.private_dns
    assert found is not None
    assert (found.zone_name, found.record_name) == (zone, record)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("zoneName", "Voice.internal"),
        ("zoneName", "voice.internal."),
        ("zoneName", ".internal"),
        ("zoneName", "voice_internal"),
        ("zoneName", "-voice.internal"),
        ("zoneName", "a" * 64),
        ("recordName", "*"),
        ("recordName", "a..b"),
        ("recordName", "a" * 64),
        ("hostedZoneId", "/hostedzone/Z0123456789ABCDEFGHIJ"),
        ("hostedZoneId", "z0123456789"),
    ],
)
def test_private_names_refused(tmp_path: Path, field: str, value: str) -> None:
    dns = {"zoneName": "voice.internal", "recordName": "sonic", field: value}
    assert fault_of(with_values((DNS, dns)), tmp_path).startswith(f"{DNS}.{field}: got ")


def test_a_record_is_named_below_its_zone(tmp_path: Path) -> None:
    dns = {"zoneName": "voice.internal", "recordName": "sonic.voice.internal"}
    assert fault_of(with_values((DNS, dns)), tmp_path) == (
        f"{DNS}.recordName: got 'sonic.voice.internal'; allowed: a name below zoneName"
        " (voice.internal), without it; nearest: sonic"
    )
    # The end of a label is not the zone's name.
    dns["recordName"], dns["zoneName"] = "sonicvoice", "voice"
    assert load(with_values((DNS, dns)), tmp_path).edge.private_dns is not None


@pytest.mark.parametrize(
    ("ranges", "fault"),
    [
        (
            ["0.0.0.0/0"],
            "cluster.apiClientCidrs.0: got '0.0.0.0/0'; allowed: ranges of /8 or smaller",
        ),
        (["10.0.0.0/7"], "cluster.apiClientCidrs.0: got '10.0.0.0/7'; allowed: ranges of /8 or"),
        (
            ["10.0.0.1/8"],
            "cluster.apiClientCidrs.0: got '10.0.0.1/8'; allowed: an IPv4 range",
        ),
        (["10.0.0.0/8", "10.0.0.0/8"], "cluster.apiClientCidrs.1: got '10.0.0.0/8'; allowed: each"),
        (["fd00::/8"], "cluster.apiClientCidrs.0: got 'fd00::/8'; allowed: an IPv4 range"),
    ],
)
def test_clients_of_the_kubernetes_api_refused(
    tmp_path: Path, ranges: list[str], fault: str
) -> None:
    document = with_values(("cluster.apiClientCidrs", ranges))
    assert fault_of(document, tmp_path).startswith(fault)
