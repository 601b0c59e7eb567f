"""Keys and mappings: what is missing, unknown, or not what a section is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.configuration import (
    VALID_TEXT,
    fault_of,
    faults_of,
    load,
    load_text,
    with_values,
)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (
            "tags",
            {"aws:x": "1"},
            "tags: got 'aws:x'; allowed: keys that do not start with aws: or",
        ),
        (
            "tags",
            {"AWS:x": "1"},
            "tags: got 'AWS:x'; allowed: keys that do not start with aws: or",
        ),
        ("tags", {"sonic-eks:deployment": "x"}, "tags: got 'sonic-eks:deployment'; allowed: keys"),
        ("tags", {"a": "x" * 257}, "tags.a: got 'xxx"),
        ("tags", {"a": "\u00e9"}, "tags.a: got '\u00e9'; allowed: text that matches"),
        ("tags", {"a" * 129: "x"}, "tags.'aaa"),
        ("tags", {"a": True}, "tags.a: got true; allowed: text in quotes"),
        ("tags", {"a": None}, "tags.a: got nothing; allowed: text that matches"),
        ("tags", [], "tags: got a list of 0; allowed: a mapping of names to text, 40 entries"),
        (
            "tags",
            {f"k{n}": "v" for n in range(41)},
            "tags: got a mapping of 41; allowed: a mapping",
        ),
        ("api.env", {"A-B": "x"}, "api.env.A-B: got 'A-B'; allowed: text that matches"),
        ("api.env", {"": "x"}, "api.env.'': got ''; allowed: 1 to 2048 characters"),
        ("api.env", {"A": 1}, "api.env.A: got 1; allowed: text in quotes"),
        ("api.env", ["A=1"], "api.env: got a list of 1; allowed: a mapping of names to text"),
        (
            "registry.versions",
            {"nats": "latest"},
            "registry.versions.nats: got 'latest'; allowed: a",
        ),
        (
            "registry.versions",
            {"nats": 2.10},
            "registry.versions.nats: got 2.1; allowed: text in q",
        ),
    ],
)
def test_mappings_refused(tmp_path: Path, path: str, value: object, fault: str) -> None:
    assert fault_of(with_values((path, value)), tmp_path).startswith(fault)


def test_tags_accepted(tmp_path: Path) -> None:
    tags = {f"team {n}/a+b=c.d:e@f_g-h"[:128]: "v" * 256 for n in range(40)}
    assert load(with_values(("tags", tags)), tmp_path).tags == tags


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (
            "wieghts",
            {},
            "wieghts: unknown key; allowed: deployment, network, topology, cluster, nodes, ",
        ),
        ("weights.capacityGb", 1200, "weights.capacityGb: unknown key; allowed: capacityGib, "),
        (
            "nodes.gpu.instancetype",
            "g6.xlarge",
            "nodes.gpu.instancetype: unknown key; allowed: inst",
        ),
        ("models", [{"nmae": "x"}], "models.0.nmae: unknown key; allowed: name, image, "),
        ("a.b", 1, "a: unknown key; allowed: deployment, "),
        ("x" * 500, 1, "'xxxxx"),
    ],
)
def test_unknown_keys(tmp_path: Path, path: str, value: object, fault: str) -> None:
    assert fault_of(with_values((path, value)), tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("wieghts", "weights"),
        ("Network", "network"),
        ("weights.capacityGB", "capacityGib"),
        ("weights.capacity_gib", "capacityGib"),
        ("nodes.gpu.maxnodes", "maxNodes"),
        ("slo.ttfb", "ttfbMs"),
    ],
)
def test_unknown_keys_name_the_nearest(tmp_path: Path, path: str, nearest: str) -> None:
    assert fault_of(with_values((path, 1)), tmp_path).endswith(f"; nearest: {nearest}")


@pytest.mark.parametrize(
    "section",
    [
        "deployment",
        "network",
        "cluster",
        "nodes",
        "nodes.gpu",
        "api",
        "weights",
        "slo",
        "drain",
        "scaling",
        "edge",
        "registry",
        "license",
        "observability",
    ],
)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "nothing"), ("", "''"), ([], "a list of 0"), (3, "3"), (True, "true")],
)
def test_a_section_is_a_mapping(tmp_path: Path, section: str, value: object, shown: str) -> None:
    fault = fault_of(with_values((section, value)), tmp_path)
    assert fault == f"{section}: got {shown}; allowed: a mapping of keys"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "models: got nothing; allowed: a list of 1 to 20 entries"),
        ({}, "models: got a mapping of 0; allowed: a list of 1 to 20 entries"),
        ([], "models: got a list of 0; allowed: a list of 1 to 20 entries"),
        ([None], "models.0: got nothing; allowed: a mapping of keys"),
        (["sonic-3"], "models.0: got 'sonic-3'; allowed: a mapping of keys"),
        (
            [{"name": f"m{n}"} for n in range(21)],
            "models: got a list of 21; allowed: a list of 1 to",
        ),
    ],
)
def test_models_are_a_list(tmp_path: Path, value: object, fault: str) -> None:
    assert fault_of(with_values(("models", value)), tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (
            "network: {zones: [us-east-1a, us-east-1b]}\n",
            ["deployment: missing; give what the deployment is called and where it lives"],
        ),
        (
            VALID_TEXT.replace("  name: sonic\n", ""),
            ["deployment.name: missing; give name of the deployment, lower-case letters, digits"],
        ),
        (
            VALID_TEXT.replace("  region: us-east-1\n", ""),
            ["deployment.region: missing; give AWS region, such as us-east-1"],
        ),
        (
            "tags: {}\n",
            ["deployment: missing; give what", "network: missing; give the VPC and its"],
        ),
        (
            "deployment: {}\nnetwork: {}\n",
            ["deployment.name: ", "deployment.region: ", "network.zones:"],
        ),
    ],
)
def test_required_keys(tmp_path: Path, text: str, faults: list[str]) -> None:
    told = faults_of(text, tmp_path)
    assert len(told) == len(faults)
    for fault, start in zip(told, faults, strict=True):
        assert fault.startswith(start)


def test_the_three_required_keys_are_enough(tmp_path: Path) -> None:
    config = load_text(VALID_TEXT, tmp_path)
    # The defaults that the README promises.
    assert config.nodes.gpu.instance_type == "g6e.2xlarge"
    assert [(config.min_replicas(m), config.max_replicas(m)) for m in config.models] == [(2, 8)]
    assert (config.slo.ttfb_ms, config.slo.percentile, config.slo.path_budget_ms) == (100, 95, 20)
    assert config.weights.capacity_gib == 1200
