"""The build that fills the registry outlives a deployment that fails, or waits no longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.cloudformation import Resources
from tests.synth import changed, stacks_of

PROJECT = "AWS::CodeBuild::Project"
WAIT = "Custom::RegistryMirror"


def taken_from(value: Any) -> Iterator[str]:
    """Yield the stacks that a template's value takes outputs from."""
    if isinstance(value, dict):
        if set(value) == {"Fn::GetStackOutput"}:
            yield value["Fn::GetStackOutput"]["StackName"].removeprefix("sonic-")
        for item in value.values():
            yield from taken_from(item)
    elif isinstance(value, list):
        for item in value:
            yield from taken_from(item)


@pytest.fixture(scope="module")
def stacks_with(templates: dict[str, Template]) -> dict[str, Resources]:
    return {name: Resources(template) for name, template in templates.items()}


def test_nothing_that_a_running_build_needs_goes_with_the_stack_that_waits(
    stacks_with: dict[str, Resources],
) -> None:
    builds = [(name, id_) for name, r in stacks_with.items() for id_ in r.ids(PROJECT)]
    waiting = {name for name, r in stacks_with.items() if r.ids(WAIT)}
    assert builds
    assert waiting
    for stack, build in builds:
        resources = stacks_with[stack]
        needed = {build, *resources.needs(build)}
        kinds = {resources.template["Resources"][name]["Type"] for name in needed}
        assert kinds == {PROJECT, "AWS::IAM::Role", "AWS::Logs::LogGroup"}
        stacks = {stack}
        for name in needed:
            stacks |= set(taken_from(resources.template["Resources"][name]))
        assert not stacks & waiting


def test_source_of_the_build_is_in_no_stack_of_the_deployment(
    stacks_with: dict[str, Resources],
) -> None:
    (project,) = stacks_with["registry"].of(PROJECT)
    location = project["Source"]["Location"]
    assert "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1" in location
    assert "ref-" not in location


def test_wait_starts_that_build_and_reads_its_log(
    templates: dict[str, Template], stacks_with: dict[str, Resources]
) -> None:
    ids = stacks_with["registry"]
    ((project,), (log,)) = (ids.ids(kind) for kind in (PROJECT, "AWS::Logs::LogGroup"))
    outputs = templates["registry"].to_json()["Outputs"]

    def followed(value: Any) -> Any:
        if isinstance(value, dict) and "Fn::GetStackOutput" in value:
            assert value["Fn::GetStackOutput"]["StackName"] == "sonic-registry"
            return outputs[value["Fn::GetStackOutput"]["OutputName"]]["Value"]
        return value

    (filled,) = templates["mirror"].find_resources(WAIT).values()
    assert followed(filled["Properties"]["ProjectName"]) == {"Ref": project}
    statements = [
        statement
        for role in templates["mirror"].find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", ())
        if policy["PolicyName"] == "Builds"
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    resources = {str(s["Action"]): followed(s["Resource"]) for s in statements}
    assert resources["logs:GetLogEvents"] == {"Fn::GetAtt": [log, "Arn"]}
    (builds,) = [r for action, r in resources.items() if "codebuild:StartBuild" in action]
    assert builds == {"Fn::GetAtt": [project, "Arn"]}


@pytest.mark.synth
def test_there_is_no_build_where_none_is_asked_for(default_config: Configuration) -> None:
    stacks = stacks_of(changed(default_config, registry={"mirrorOnDeploy": False}))
    assert "mirror" not in stacks.by_name
    for stack in stacks.by_name.values():
        template = Template.from_stack(stack)
        assert not template.find_resources(PROJECT), stack.stack_name
