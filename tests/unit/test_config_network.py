"""An existing VPC, and endpoints by zone: what is accepted, and each contradiction refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

ZONES = ["us-east-1a", "us-east-1b"]


def subnet(number: int, zone: str, third: int, table: int) -> dict[str, Any]:
    return {
        "id": f"subnet-{number:08x}",
        "zone": zone,
        "cidr": f"10.20.{third}.0/24",
        "routeTableId": f"rtb-{table:08x}",
    }


EXISTING: dict[str, Any] = {
    "vpcId": "vpc-0a1b2c3d",
    "vpcCidr": "10.20.0.0/16",
    "subnets": {
        "system": [subnet(1, "us-east-1a", 1, 1), subnet(2, "us-east-1b", 2, 1)],
        "serving": subnet(3, "us-east-1a", 3, 1),
        "gpu": subnet(4, "us-east-1a", 4, 4),
    },
}


def existing(*changes: tuple[str, Any]) -> dict[str, Any]:
    """Return `EXISTING` with the values at dotted paths replaced."""
    found = copy.deepcopy(EXISTING)
    for path, value in changes:
        *parents, last = path.split(".")
        section: Any = found
        for part in parents:
            section = section[int(part)] if isinstance(section, list) else section[part]
        section[last] = value
    return found


def document(*changes: tuple[str, Any], **network: Any) -> dict[str, Any]:
    fields = [(f"network.{key}", value) for key, value in network.items()]
    return with_values(("network.existing", existing(*changes)), *fields)


def test_an_existing_vpc(tmp_path: Path) -> None:
    config = load(document(("endpoints", ["s3", "ecr.api"])), tmp_path)
    found = config.network.existing
    assert found is not None
    assert config.network.cidr == "10.20.0.0/16"
    assert config.client_cidrs == ("10.20.0.0/16",)
    assert [s.zone for s in found.subnets.system] == ZONES
    assert found.endpoints == ("s3", "ecr.api")
    assert not found.flow_logs
    assert load(config.model_dump(by_alias=True, mode="json"), tmp_path) == config


@pytest.mark.parametrize(
    "changes",
    [
        [("subnets.system", list(reversed(EXISTING["subnets"]["system"])))],
        [("subnets.system.0.cidr", "10.20.255.240/28")],
        [("vpcCidr", "10.20.0.0/21")],
        [("vpcId", "vpc-0a1b2c3d4e5f60718")],
        [("flowLogs", True)],
    ],
)
def test_accepted(tmp_path: Path, changes: list[tuple[str, Any]]) -> None:
    assert load(document(*changes), tmp_path).network.existing is not None


def test_without_egress_subnets_may_share_a_route_table(tmp_path: Path) -> None:
    changes = document(("subnets.gpu.routeTableId", "rtb-00000001"), egress="none")
    changes["license"] = {"mode": "airGapped", "dataPath": "/data"}
    assert load(changes, tmp_path).network.egress == "none"


@pytest.mark.parametrize(
    ("changes", "network", "fault"),
    [
        (
            [("subnets.system.1.zone", "us-east-1c")],
            {},
            (
                "network.existing.subnets.system.1.zone: got 'us-east-1c'; allowed: one of zones"
                " (us-east-1a, us-east-1b)"
            ),
        ),
        (
            [("subnets.system.1.zone", "us-east-1a")],
            {},
            (
                "network.existing.subnets.system.1.zone: got 'us-east-1a'; allowed: one system"
                " subnet in each zone"
            ),
        ),
        (
            [],
            {"zones": [*ZONES, "us-east-1c"]},
            (
                "network.existing.subnets.system: got a list of 2; allowed: a"
                " subnet in each of zones; none is in us-east-1c"
            ),
        ),
        (
            [("subnets.gpu.zone", "us-east-1b")],
            {},
            (
                "network.existing.subnets.gpu.zone: got 'us-east-1b'; allowed: inferenceZone"
                " (us-east-1a)"
            ),
        ),
        (
            [],
            {"inferenceZone": "us-east-1b"},
            (
                "network.existing.subnets.serving.zone: got 'us-east-1a'; allowed: inferenceZone"
                " (us-east-1b)"
            ),
        ),
        (
            [("subnets.gpu.id", "subnet-00000001")],
            {},
            (
                "network.existing.subnets.gpu.id: got 'subnet-00000001'; allowed: each subnet once"
                " (this is system.0)"
            ),
        ),
        (
            [("subnets.gpu.cidr", "10.20.3.128/25")],
            {},
            (
                "network.existing.subnets.gpu.cidr: got '10.20.3.128/25'; allowed: a range that"
                " does not overlap serving.cidr (10.20.3.0/24)"
            ),
        ),
        (
            [("subnets.serving.cidr", "10.21.0.0/24")],
            {},
            (
                "network.existing.subnets.serving.cidr: got '10.21.0.0/24'; allowed: a range"
                " inside vpcCidr (10.20.0.0/16)"
            ),
        ),
        (
            [("subnets.gpu.routeTableId", "rtb-00000001")],
            {},
            (
                "network.existing.subnets.gpu.routeTableId: got 'rtb-00000001'; allowed: another"
                " table than system.0 has, which leads to the internet with egress: system"
            ),
        ),
        (
            [],
            {"vpcCidr": "10.42.0.0/16"},
            ("network.vpcCidr: got '10.42.0.0/16'; allowed: nothing, as existing.vpcCidr is given"),
        ),
        (
            [("endpoints", ["s3", "ecr.dkrr"])],
            {},
            (
                "network.existing.endpoints.1: got 'ecr.dkrr'; allowed: services of endpoints:"
                " ec2, ecr.api, ecr.dkr, eks, eks-auth, elasticloadbalancing, lambda,"
                " secretsmanager, sqs, ssm, sts, s3; nearest: ecr.dkr"
            ),
        ),
        (
            [("endpoints", ["sts", "sts"])],
            {},
            "network.existing.endpoints.1: got 'sts'; allowed: each service once",
        ),
        (
            [("vpcCidr", "10.0.0.0/15")],
            {},
            "network.existing.vpcCidr: got '10.0.0.0/15'; allowed: a prefix length from /16 to /28",
        ),
        (
            [("subnets.gpu.cidr", "10.20.4.0/29")],
            {},
            (
                "network.existing.subnets.gpu.cidr: got '10.20.4.0/29'; allowed: a prefix length"
                " from /16 to /28"
            ),
        ),
        (
            [("subnets.gpu.zone", "use1-az4")],
            {},
            (
                "network.existing.subnets.gpu.zone: got 'use1-az4'; allowed: a zone name such as"
                " us-east-1a, not a zone id (aws ec2 describe-availability-zones shows both)"
            ),
        ),
    ],
)
def test_contradictions_refused(
    tmp_path: Path, changes: list[tuple[str, Any]], network: dict[str, Any], fault: str
) -> None:
    assert fault_of(document(*changes, **network), tmp_path) == fault


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("vpcId", "vpc-0A1B2C3D"),
        ("vpcId", "vpc-0a1b2c3d4e"),
        ("vpcId", "vpc-0a1b2c3d\n"),
        ("subnets.gpu.id", "rtb-00000004"),
        ("subnets.gpu.routeTableId", "subnet-00000004"),
        ("subnets.gpu.cidr", "10.20.4.1/24"),
        ("subnets.system", EXISTING["subnets"]["system"][:1]),
    ],
)
def test_values_refused(tmp_path: Path, path: str, value: object) -> None:
    assert fault_of(document((path, value)), tmp_path).startswith(f"network.existing.{path}: got ")


@pytest.mark.parametrize("field", ["vpcId", "vpcCidr", "subnets"])
def test_what_an_existing_vpc_needs(tmp_path: Path, field: str) -> None:
    changes = document()
    del changes["network"]["existing"][field]
    assert fault_of(changes, tmp_path).startswith(f"network.existing.{field}: missing; give ")


def test_a_whole_service_name_means_its_end(tmp_path: Path) -> None:
    name = "com.amazonaws.us-east-1.ecr.api"
    fault = fault_of(document(("endpoints", [name])), tmp_path)
    assert fault.endswith("; nearest: ecr.api")


def test_service_range_is_apart_from_an_existing_vpc(tmp_path: Path) -> None:
    changes = document()
    changes["cluster"] = {"serviceCidr": "10.20.128.0/20"}
    assert fault_of(changes, tmp_path) == (
        "cluster.serviceCidr: got '10.20.128.0/20'; allowed: a range that does not overlap"
        " network.existing.vpcCidr (10.20.0.0/16)"
    )


def test_endpoints_by_zone(tmp_path: Path) -> None:
    zones = {"eks-auth": ["us-east-1b"], "ssm": ["us-east-1b", "us-east-1a"]}
    config = load(with_values(("network.endpointZones", zones)), tmp_path)
    assert config.network.endpoint_zones == {name: tuple(z) for name, z in zones.items()}


@pytest.mark.parametrize(
    ("zones", "fault"),
    [
        (
            {"secretmanager": ["us-east-1a"]},
            (
                "network.endpointZones.secretmanager: got 'secretmanager'; allowed: services of"
                " endpoints: ec2, ecr.api, ecr.dkr, eks, eks-auth, elasticloadbalancing,"
                " lambda, secretsmanager, sqs, ssm, sts; nearest: secretsmanager"
            ),
        ),
        (
            {"sts": []},
            (
                "network.endpointZones.sts: got a list of 0; allowed: one or more of zones"
                " (us-east-1a, us-east-1b)"
            ),
        ),
        (
            {"sts": ["us-east-1c"]},
            (
                "network.endpointZones.sts.0: got 'us-east-1c'; allowed: one of zones"
                " (us-east-1a, us-east-1b), once"
            ),
        ),
        (
            {"sts": ["us-east-1a", "us-east-1a"]},
            (
                "network.endpointZones.sts.1: got 'us-east-1a'; allowed: one of zones"
                " (us-east-1a, us-east-1b), once"
            ),
        ),
    ],
)
def test_endpoints_by_zone_refused(tmp_path: Path, zones: object, fault: str) -> None:
    assert fault_of(with_values(("network.endpointZones", zones)), tmp_path) == fault


def test_the_gateway_endpoint_has_no_zone(tmp_path: Path) -> None:
    zones = ("network.endpointZones", {"s3": ["us-east-1a"]})
    fault = fault_of(with_values(zones), tmp_path)
    assert fault.startswith("network.endpointZones.s3: got 's3'; allowed: services of endpoints: ")


def test_an_endpoint_that_is_there_has_no_zones_to_choose(tmp_path: Path) -> None:
    changes = document(("endpoints", ["sts"]), endpointZones={"sts": ["us-east-1a"]})
    assert fault_of(changes, tmp_path) == (
        "network.endpointZones: got 'sts'; allowed: services that existing.endpoints does not hold"
    )
