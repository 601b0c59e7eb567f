"""Functions and state machines: what they may do is there before they are called."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.cloudformation import Resources

CALLERS = ("AWS::Lambda::Function", "AWS::StepFunctions::StateMachine")
# What the framework of the CDK calls for a resource that takes longer than one call.
FILLED = "Custom::RegistryMirror"


@pytest.fixture(scope="module")
def stacks_with_functions(templates: dict[str, Template]) -> dict[str, Resources]:
    every = {name: Resources(template) for name, template in templates.items()}
    return {name: r for name, r in every.items() if any(r.ids(kind) for kind in CALLERS)}


def role_of(properties: dict[str, Any]) -> str:
    """Return the logical id of a function's or a state machine's role."""
    role = properties.get("Role") or properties["RoleArn"]
    return str(role).removeprefix("att-").removesuffix("-Arn")


def test_policies_come_before_what_acts_under_them(
    stacks_with_functions: dict[str, Resources],
) -> None:
    waiting = 0
    for resources in stacks_with_functions.values():
        policies = {
            name: {role.removeprefix("ref-") for role in resources.properties(name)["Roles"]}
            for name in resources.ids("AWS::IAM::Policy")
        }
        for kind in CALLERS:
            for name in resources.ids(kind):
                role = role_of(resources.properties(name))
                own = {policy for policy, roles in policies.items() if role in roles}
                assert own <= resources.needs(name), name
                waiting += len(own)
    assert waiting >= 3, "the frameworks of kubectl, of the mirror and its state machine"


def allowed(resources: Resources, role: str) -> set[tuple[str, str]]:
    """Return the actions and resources that a role's own policies allow."""
    documents = [p["PolicyDocument"] for p in resources.properties(role).get("Policies", [])]
    documents += [
        policy["PolicyDocument"]
        for policy in resources.of("AWS::IAM::Policy")
        if f"ref-{role}" in policy["Roles"]
    ]

    def as_list(value: Any) -> list[str]:
        return [value] if isinstance(value, str) else value

    return {
        (action, resource)
        for document in documents
        for statement in document["Statement"]
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }


def frameworks(resources: Resources) -> dict[str, str]:
    """Return the functions of the CDK's provider framework and the handler that each calls."""
    return {
        name: variables["USER_ON_EVENT_FUNCTION_ARN"]
        for name in resources.ids("AWS::Lambda::Function")
        for variables in [resources.properties(name).get("Environment", {}).get("Variables", {})]
        if "USER_ON_EVENT_FUNCTION_ARN" in variables and name.find("onEvent") > 0
    }


@pytest.mark.parametrize("stack", ["cluster", "mirror"])
def test_a_framework_may_call_its_handler(
    stacks_with_functions: dict[str, Resources], stack: str
) -> None:
    resources = stacks_with_functions[stack]
    ((name, handler),) = frameworks(resources).items()
    may = allowed(resources, role_of(resources.properties(name)))
    assert ("lambda:InvokeFunction", handler) in may


def test_the_registry_is_filled_by_the_deployment(
    stacks_with_functions: dict[str, Resources],
) -> None:
    resources = stacks_with_functions["mirror"]
    (filled,) = resources.of(FILLED)
    framework = filled["ServiceToken"].removeprefix("att-").removesuffix("-Arn")
    assert framework in frameworks(resources)
    (machine,) = resources.ids("AWS::StepFunctions::StateMachine")
    role = role_of(resources.properties(framework))
    assert ("states:StartExecution", f"ref-{machine}") in allowed(resources, role)


def test_the_wait_for_the_registry_may_ask(stacks_with_functions: dict[str, Resources]) -> None:
    resources = stacks_with_functions["mirror"]
    (machine,) = resources.of("AWS::StepFunctions::StateMachine")
    may = allowed(resources, role_of(machine))
    asked = {
        f"att-{name}-Arn"
        for name in resources.ids("AWS::Lambda::Function")
        if f"att-{name}-Arn" in machine["DefinitionString"]
    }
    assert len(asked) == 2, "whether it is complete, and what to say when it takes too long"
    for function in asked:
        assert ("lambda:InvokeFunction", function) in may
