"""docs/lifecycle.md: every type of resource, and the longest steps against the limits."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from sonic_eks.cli.docs import _PAGES
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.k8s.render import RenderedChart
from sonic_eks.lifecycle.budget import budgets, drain_seconds, grace_seconds, teardown_seconds
from sonic_eks.lifecycle.resources import RESOURCE_TYPES, ResourceType
from tests.synth import ROOT, changed, charts_of, stacks_of

CONFIGURATIONS = sorted((ROOT / "config").glob("*.yaml"))
BY_NAME = {entry.name: entry for entry in RESOURCE_TYPES}


# The smallest chart there is to ask for times that depend on none.
CHARTS = [
    RenderedChart("c", ({"kind": "Deployment", "spec": {"template": {"spec": {}}}},), ()),
]


def paths(properties: Any, prefix: str = "") -> Iterator[str]:
    """Give the paths of properties that are set, as resource provider schemas write them."""
    if isinstance(properties, dict) and not any(k == "Ref" or k[:4] == "Fn::" for k in properties):
        for key, value in properties.items():
            yield prefix + key
            yield from paths(value, f"{prefix}{key}/")


@pytest.fixture(scope="module")
def resources() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The resources of every shipped configuration by type, each with its stack.

    One more asks for what the shipped ones do without.
    """
    found: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    shipped = [load_configuration(path) for path in CONFIGURATIONS]
    for config in [*shipped, changed(shipped[0], registry={"replicateTo": ["us-west-2"]})]:
        for name, stack in stacks_of(config).by_name.items():
            for resource in Template.from_stack(stack).to_json()["Resources"].values():
                found[resource["Type"]].append((name, resource))
    return dict(found)


def faults(
    entries: dict[str, ResourceType], resources: dict[str, list[tuple[str, dict[str, Any]]]]
) -> list[str]:
    """Return what the table and the templates disagree about."""
    found = [f"{kind}: no entry" for kind in resources.keys() - entries.keys()]
    found += [f"{kind}: in no template" for kind in entries.keys() - resources.keys()]
    for kind in resources.keys() & entries.keys():
        entry = entries[kind]
        set_paths = {p for _, r in resources[kind] for p in paths(r.get("Properties", {}))}
        if (wanted := _create_only(kind) & set_paths) != set(entry.replaced):
            found.append(f"{kind}: replaced on {sorted(wanted)}, not {entry.replaced}")
        kept = {stack for stack, r in resources[kind] if r.get("DeletionPolicy") == "Retain"}
        if kept != set(entry.kept_in):
            found.append(f"{kind}: kept in {sorted(kept)}, not {entry.kept_in}")
    return sorted(found)


def _create_only(kind: str) -> set[str]:
    """Return the properties that replace a type, by CloudFormation's provider schemas."""
    if kind.startswith("Custom::"):
        return set()
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    listed = schema.get("createOnlyProperties", []) + schema.get(
        "conditionalCreateOnlyProperties", []
    )
    return {path.removeprefix("/properties/") for path in listed}


@pytest.mark.slow
def test_the_table_is_that_of_the_templates(
    resources: dict[str, list[tuple[str, dict[str, Any]]]],
) -> None:
    assert faults(BY_NAME, resources) == []


@pytest.mark.slow
def test_a_gap_in_the_table_is_noticed(
    resources: dict[str, list[tuple[str, dict[str, Any]]]],
) -> None:
    without = {name: e for name, e in BY_NAME.items() if name != "AWS::SQS::Queue"}
    assert faults(without, resources) == ["AWS::SQS::Queue: no entry"]
    wrong = BY_NAME | {"AWS::S3::Bucket": ResourceType("AWS::S3::Bucket")}
    assert faults(wrong, resources) == ["AWS::S3::Bucket: kept in ['data'], not ()"]
    wrong = BY_NAME | {"AWS::EC2::NatGateway": ResourceType("AWS::EC2::NatGateway")}
    assert len(faults(wrong, resources)) == 1


@pytest.mark.slow
def test_a_named_type_has_its_name_in_every_template(
    resources: dict[str, list[tuple[str, dict[str, Any]]]],
) -> None:
    named = {entry.name: entry.named_by for entry in RESOURCE_TYPES if entry.named_by}
    assert {"AWS::EKS::Cluster", "AWS::ECR::Repository"} <= named.keys()
    for kind, key in named.items():
        assert any(isinstance(r["Properties"].get(key), str) for _, r in resources[kind]), kind


def test_repositories_are_emptied(templates: dict[str, Template]) -> None:
    for repository in templates["registry"].find_resources("AWS::ECR::Repository").values():
        assert repository["Properties"]["EmptyOnDelete"] is True


def test_no_type_is_listed_twice() -> None:
    assert len(BY_NAME) == len(RESOURCE_TYPES)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_no_step_is_longer_than_its_limit(path: Path) -> None:
    found = budgets(charts_of(load_configuration(path)))
    assert {budget.operation for budget in found} == {"create", "update", "delete"}
    for budget in found:
        assert 0 < budget.seconds <= budget.limit_seconds, budget


def test_times_follow_the_configuration(default_config: Configuration) -> None:
    # propagation 120 + stream 600 + margin 60, the defaults; then with a stream of 300.
    assert grace_seconds(charts_of(default_config)) == 780
    shorter = changed(default_config, drain={"maxStreamSeconds": 300})
    assert grace_seconds(charts_of(shorter)) == 480


def test_times_are_those_of_the_templates(templates: dict[str, Template]) -> None:
    charts = templates["cluster"].find_resources("Custom::AWSCDK-EKS-HelmChart").values()
    assert {chart["Properties"]["Timeout"] for chart in charts} == {"600s"}
    functions = templates["cluster"].find_resources("AWS::Lambda::Function").values()
    assert {function["Properties"]["Timeout"] for function in functions} == {900}
    (waiter,) = templates["mirror"].find_resources("AWS::StepFunctions::StateMachine").values()
    text = json.dumps(waiter["Properties"]["DefinitionString"])
    (attempts,) = re.findall(r'MaxAttempts\\*": ?(\d+)', text)
    (interval,) = re.findall(r'IntervalSeconds\\*": ?(\d+)', text)
    times = {budget.step: budget.seconds for budget in budgets(CHARTS)}
    assert int(attempts) * int(interval) == times["the registry is filled"] == 3540
    assert times["a chart's pods become ready"] == 600
    assert times["the node guard waits"] == 900


def test_a_node_may_drain_as_long_as_its_pool_says() -> None:
    def pool(name: str, seconds: int) -> dict[str, Any]:
        spec = {"template": {"spec": {"terminationGracePeriod": f"{seconds}s"}}}
        return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": spec,
                "metadata": {"name": name}}  # fmt: skip

    def pods(seconds: int) -> dict[str, Any]:
        spec = {"template": {"spec": {"terminationGracePeriodSeconds": seconds}}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec,
                "metadata": {"name": "d"}}  # fmt: skip

    def charts(*manifests: dict[str, Any]) -> list[RenderedChart]:
        return [RenderedChart("c", manifests, ())]

    assert drain_seconds(charts(pool("a", 1800), pool("b", 2400), pods(780))) == 2400
    assert drain_seconds(charts(pods(780))) == 780
    # the drain, ten minutes for an instance to end, twenty for steps that wait for no pod
    assert teardown_seconds(2400) == 2400 + 600 + 1200


def test_the_page_is_up_to_date_and_complete() -> None:
    page = _PAGES["lifecycle.md"]()
    assert (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8") == page
    rows = re.findall(r"^\| ((?:AWS|Custom)::[\w:-]+) \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(BY_NAME)
    assert "{" not in page
