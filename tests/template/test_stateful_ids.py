"""What must not be replaced keeps its logical id, whatever else the configuration says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.configuration import with_values
from tests.synth import ROOT, stacks_of

EXPECTED: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (ROOT / "tests/expected/stateful_ids.yaml").read_text()
)
TYPES = {kind for kinds in EXPECTED.values() for kind in kinds}
# Copies of what their upstreams keep: a new one needs no care.
FREE = {"AWS::ECR::Repository"}

Ids = dict[str, dict[str, set[str]]]


def ids_of(templates: dict[str, Template]) -> Ids:
    """Return the logical ids of stateful types by stack and type."""
    found: Ids = {}
    for stack, template in templates.items():
        for name, resource in template.to_json()["Resources"].items():
            if resource["Type"] in TYPES:
                found.setdefault(stack, {}).setdefault(resource["Type"], set()).add(name)
    return found


def lost(found: Ids) -> list[str]:
    """Return the expected resources that are not there."""
    return [
        f"{stack}: {kind} {name}"
        for stack, kinds in EXPECTED.items()
        for kind, names in kinds.items()
        for name in names
        if name not in found.get(stack, {}).get(kind, set())
    ]


def test_no_stateful_resource_is_renamed(templates: dict[str, Template]) -> None:
    assert lost(ids_of(templates)) == []


def test_every_stateful_resource_is_pinned(templates: dict[str, Template]) -> None:
    new = [
        f"{stack}: {kind} {name}: pin it in tests/expected/stateful_ids.yaml"
        for stack, kinds in ids_of(templates).items()
        for kind, names in kinds.items()
        for name in names - set(EXPECTED.get(stack, {}).get(kind, ()))
        if kind not in FREE
    ]
    assert new == []


@pytest.mark.synth
@pytest.mark.parametrize(
    "changes",
    [
        [
            ("deployment.name", "n" * 100),
            ("deployment.region", "us-gov-west-1"),
            ("deployment.account", "123456789012"),
            ("network.zones", ["us-gov-west-1b", "us-gov-west-1a", "us-gov-west-1c"]),
            ("network.inferenceZone", "us-gov-west-1c"),
            ("edge.listenerPort", 8443),
        ],
        [
            ("nodes.gpu.instanceType", "p5.48xlarge"),
            ("nodes.gpu.baseSize", 3),
            ("nodes.system.instanceType", "m6i.xlarge"),
            ("nodes.upgrade", "replaceGroup"),
            ("nodes.generations", [1, 2]),
            ("weights.capacityGib", 4800),
            ("drain.maxStreamSeconds", 1800),
            (
                "edge.certificateArn",
                "arn:aws:acm:us-east-1:111122223333:certificate/00000000-0000-4000-8000-00000000000a",
            ),
        ],
    ],
    ids=["another-place", "other-values"],
)
def test_ids_do_not_follow_values(changes: list[tuple[str, Any]]) -> None:
    stacks = stacks_of(Configuration.model_validate(with_values(*changes)))
    found = ids_of({name: Template.from_stack(stack) for name, stack in stacks.by_name.items()})
    assert lost(found) == []


def test_a_renamed_resource_is_noticed() -> None:
    found = {
        stack: {kind: set(names) for kind, names in k.items()} for stack, k in EXPECTED.items()
    }
    found["edge"]["AWS::ElasticLoadBalancingV2::LoadBalancer"] = {"EdgeBalancer00000000"}
    (line,) = lost(found)
    assert "LoadBalancer" in line
