"""Texts: instance types, regions, zones, ranges, names; accepted and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.configuration import (
    VALID_TEXT,
    fault_of,
    faults_of,
    load,
    value_at,
    with_values,
)
from tests.expected.config_values import (
    CPU_TYPES,
    CPU_TYPES_REFUSED,
    GPU_TYPES,
    GPU_TYPES_REFUSED,
    REGIONS,
    ZONE_IDS,
)


@pytest.mark.parametrize("name", GPU_TYPES)
def test_gpu_types_accepted(tmp_path: Path, name: str) -> None:
    config = load(with_values(("nodes.gpu.instanceType", name)), tmp_path)
    assert config.gpu_type.name == name
    assert config.nodes.gpu.workers_per_node >= 1


@pytest.mark.parametrize(("name", "family"), GPU_TYPES_REFUSED.items())
def test_gpu_types_refused(tmp_path: Path, name: str, family: str | None) -> None:
    fault = fault_of(with_values(("nodes.gpu.instanceType", name)), tmp_path)
    assert fault.startswith(f"nodes.gpu.instanceType: got '{name}'; allowed: an x86_64 type with")
    _, _, nearest = fault.partition("; nearest: ")
    if family is None:
        assert nearest == ""
    else:
        assert nearest.split(", ")[0].startswith(family)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("g4dn.xlarge", "(this one has T4, Turing, on x86_64)"),
        ("g5g.xlarge", "(this one has T4g, Turing, on arm64)"),
        ("g6f.xlarge", "(this one has a part of one L4, Ada Lovelace, on x86_64)"),
        ("m7i.xlarge", "(this one has no GPU)"),
    ],
)
def test_a_refused_gpu_type_says_what_it_has(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in fault_of(with_values(("nodes.gpu.instanceType", name)), tmp_path)


@pytest.mark.parametrize(
    ("pool", "name"),
    [
        *(("serving", name) for name in CPU_TYPES),
        # One system node must be able to hold every controller.
        *(("system", name) for name in CPU_TYPES if not name.endswith(".large")),
    ],
)
def test_cpu_types_accepted(tmp_path: Path, pool: str, name: str) -> None:
    path = f"nodes.{pool}.instanceType"
    assert value_at(load(with_values((path, name)), tmp_path), path) == name


@pytest.mark.parametrize("name", CPU_TYPES_REFUSED)
def test_cpu_types_refused(tmp_path: Path, name: str) -> None:
    fault = fault_of(with_values(("nodes.serving.instanceType", name)), tmp_path)
    assert fault.startswith(f"nodes.serving.instanceType: got '{name}'; allowed: an x86_64 type,")
    _, _, nearest = fault.partition("; nearest: ")
    assert not any(word.startswith("g") for word in nearest.split(", ")), (
        "a GPU type is no CPU type"
    )


@pytest.mark.parametrize("region", REGIONS)
def test_regions_accepted(tmp_path: Path, region: str) -> None:
    zones = [f"{region}a", f"{region}c"]
    config = load(with_values(("deployment.region", region), ("network.zones", zones)), tmp_path)
    assert config.partition == REGIONS[region][0]


@pytest.mark.parametrize(
    ("region", "nearest"),
    [
        ("us-east-1a", "us-east-1"),
        ("US-EAST-1", "us-east-1"),
        ("us-east", None),
        ("us-east-1 ", None),
        ("us-east-1\n", None),
        ("useast1", None),
        ("us-east-\u0661", None),
        ("us-iso-east-1", None),
        ("us-isob-east-1", None),
        ("eu-isoe-west-1", None),
        ("eusc-de-east-1", None),
    ],
)
def test_regions_refused(tmp_path: Path, region: str, nearest: str | None) -> None:
    fault = fault_of(with_values(("deployment.region", region)), tmp_path)
    assert fault.startswith(f"deployment.region: got {region!r}; allowed: a region")
    assert fault.partition("; nearest: ")[2] == (nearest or "")


@pytest.mark.parametrize("zone", ZONE_IDS)
@pytest.mark.parametrize("field", ["network.zones.1", "network.inferenceZone"])
def test_a_zone_id_is_no_zone_name(tmp_path: Path, field: str, zone: str) -> None:
    value = ["us-east-1a", zone] if field.endswith(".1") else zone
    fault = fault_of(with_values((field.removesuffix(".1"), value)), tmp_path)
    assert fault.startswith(
        f"{field}: got '{zone}'; allowed: a zone name such as us-east-1a, not a"
    )


@pytest.mark.parametrize(
    ("zones", "fault"),
    [
        ([], "network.zones: got a list of 0; allowed: a list of 2 to 3 entries"),
        (["us-east-1a"], "network.zones: got a list of 1; allowed: a list of 2 to 3 entries"),
        (
            [f"us-east-1{letter}" for letter in "abcd"],
            "network.zones: got a list of 4; allowed: a list of 2 to 3 entries",
        ),
        (
            ["us-east-1a", "us-east-1a"],
            "network.zones.1: got 'us-east-1a'; allowed: each zone once",
        ),
        (["us-east-1a", "us-east-1"], "network.zones.1: got 'us-east-1'; allowed: a zone name"),
        (["us-east-1-bos-1a", "us-east-1a"], "network.zones.0: got 'us-east-1-bos-1a'; allowed: a"),
        (["us-east-1a", 3], "network.zones.1: got 3; allowed: text in quotes"),
        ("us-east-1a", "network.zones: got 'us-east-1a'; allowed: a list of 2 to 3 entries"),
        (None, "network.zones: got nothing; allowed: a list of 2 to 3 entries"),
    ],
)
def test_zones_refused(tmp_path: Path, zones: object, fault: str) -> None:
    assert fault_of(with_values(("network.zones", zones)), tmp_path).startswith(fault)


# Text fields: accepted values at the edges of their form, then refused ones.
TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "deployment.name": (
        ["a", "a1", "voice-eu-2", "a" * 100, "internals"],
        [
            "",
            "A",
            "1a",
            "a_b",
            "a--b",
            "a-",
            "-a",
            "a.b",
            "a" * 101,
            "a\n",
            "internal",
            "internal-x",
        ],
    ),
    "deployment.account": (
        ["123456789012", "012345678901"],
        ["12345678901", "1234567890123", "12345678901a", "\u0661" * 12, "1234-5678-9012", ""],
    ),
    "deployment.bootstrapQualifier": (["a", "hnb659fds", "0123456789"], ["", "A", "a-b", "a" * 11]),
    "cluster.amiAlias": (
        ["al2023@v20260127"],
        [
            "al2023@latest",
            "al2@v20260101",
            "al2023",
            "bottlerocket@v1.2.3",
            "al2023@v2026010\u0661",
        ],
    ),
    "weights.mountPath": (["/w", "/mnt/weights"], ["", "/", "w", "//", "/a b", "/" + "a" * 300]),
    "registry.sonicRelease": (
        ["sonic-20260503", "1", "_", "a" * 128],
        ["latest", "LATEST", "a:b", "a/b", ".a", "-a", "a" * 129, "a b", ""],
    ),
    "registry.vendorRegistry": (
        [
            "registry.example.com",
            "localhost:5000",
            "registry.example.com:65535/cartesia/sonic",
            f"{'a' * 63}.example.com",
        ],
        [
            "https://registry.example.com",
            "oci://a/b",
            "a/",
            "/a",
            "a//b",
            "A.example.com",
            "a:b",
            "",
            "a",
            "a..example.com",
            "a-.example.com",
            "registry.example.com:0",
            "registry.example.com:65536",
            f"{'a' * 64}.example.com",
            "registry.example.com/Sonic",
        ],
    ),
    "api.image": (["a", "a/b-c_d.e"], ["", "A", "a:tag", "a@sha256", "/a", "a/", "a" * 101]),
    "license.dataPath": (["/data"], ["data", "", "/"]),
    "api.natsUrlEnv": (["NATS_URL", "_", "a" * 128], ["", "1A", "A-B", "A B", "A=B", "a" * 129]),
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, (good, _) in TEXTS.items() for value in good]
)
def test_texts_accepted(tmp_path: Path, path: str, value: str) -> None:
    assert value_at(load(with_values((path, value)), tmp_path), path) == value


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, (_, bad) in TEXTS.items() for value in bad]
)
def test_texts_refused(tmp_path: Path, path: str, value: str) -> None:
    fault = fault_of(with_values((path, value)), tmp_path)
    start = repr(value)[:70]
    assert fault.startswith(f"{path}: got {start}")
    assert "; allowed: " in fault


@pytest.mark.parametrize(
    ("path", "written", "shown"),
    [
        ("deployment.account", "123456789012", "123456789012"),
        ("registry.sonicRelease", "20260503", "20260503"),
        ("registry.sonicRelease", "1.10", "1.1"),
        ("registry.sonicRelease", "on", "true"),
    ],
)
def test_text_that_yaml_reads_as_something_else(
    tmp_path: Path, path: str, written: str, shown: str
) -> None:
    section, key = path.split(".")
    text = VALID_TEXT.replace(f"{section}:\n", f"{section}:\n  {key}: {written}\n")
    if text == VALID_TEXT:
        text += f"{section}:\n  {key}: {written}\n"
    (fault,) = faults_of(text, tmp_path)
    assert fault.startswith(f"{path}: got {shown}; allowed: text in quotes (YAML reads this as")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("10.0.0.0/16", None),
        ("10.0.0.0/22", None),
        ("172.31.0.0/16", None),
        ("192.168.0.0/16", None),
        ("100.64.0.0/16", None),
        ("10.0.0.0/15", "a prefix length from /16 to /22"),
        ("10.0.0.0/23", "a prefix length from /16 to /22"),
        ("11.0.0.0/16", "a range inside 10.0.0.0/8"),
        ("172.32.0.0/16", "a range inside 10.0.0.0/8"),
        ("10.0.0.1/16", "without host bits; nearest: 10.0.0.0/16"),
        ("10.0.0.0/255.255.0.0", "without host bits; nearest: 10.0.0.0/16"),
        ("10.0.0.0", "without host bits; nearest: 10.0.0.0/32"),
        ("10.0.0.0/016", "without host bits; nearest: 10.0.0.0/16"),
        ("010.0.0.0/16", "without host bits"),
        ("10.0.0.0/33", "without host bits"),
        ("fd00::/16", "without host bits"),
        ("ten", "without host bits"),
        ("\u0661\u0660.0.0.0/16", "without host bits"),
    ],
)
def test_vpc_range(tmp_path: Path, value: str, fault: str | None) -> None:
    document = with_values(("network.vpcCidr", value))
    if fault is None:
        assert load(document, tmp_path).network.vpc_cidr == value
    else:
        told = fault_of(document, tmp_path)
        assert told.startswith(f"network.vpcCidr: got {value!r}; allowed: ")
        assert fault in told


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ("172.16.0.0/12", True),
        ("10.100.0.0/24", True),
        ("10.0.0.0/11", False),
        ("10.100.0.0/25", False),
        ("100.64.0.0/16", False),
        ("8.8.0.0/16", False),
    ],
)
def test_service_range(tmp_path: Path, value: str, accepted: bool) -> None:
    # EKS user guide, "Create an Amazon EKS cluster": a private range, /24 to /12.
    document = with_values(("cluster.serviceCidr", value))
    if accepted:
        assert load(document, tmp_path).cluster.service_cidr == value
    else:
        fault = fault_of(document, tmp_path)
        assert fault.startswith(
            f"cluster.serviceCidr: got '{value}'; allowed: a range of /12 to /24"
        )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (
            ["0.0.0.0/0"],
            "edge.clientCidrs.0: got '0.0.0.0/0'; allowed: a range of callers, not every",
        ),
        (
            ["10.0.0.0/8", "10.1.0.0/16"],
            "edge.clientCidrs.1: got '10.1.0.0/16'; allowed: a range that does not overlap 10.0",
        ),
        (
            ["10.0.0.0/8", "10.0.0.0/8"],
            "edge.clientCidrs.1: got '10.0.0.0/8'; allowed: a range that does not overlap 10.0",
        ),
        (
            ["10.0.0.1/8"],
            "edge.clientCidrs.0: got '10.0.0.1/8'; allowed: an IPv4 range in CIDR form",
        ),
        (["::/0"], "edge.clientCidrs.0: got '::/0'; allowed: an IPv4 range in CIDR form"),
        (
            "10.0.0.0/8",
            "edge.clientCidrs: got '10.0.0.0/8'; allowed: a list of 0 to 50 entries, each text",
        ),
    ],
)
def test_client_ranges_refused(tmp_path: Path, value: object, fault: str) -> None:
    assert fault_of(with_values(("edge.clientCidrs", value)), tmp_path).startswith(fault)
