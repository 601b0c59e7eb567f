"""Endpoint policies, by concrete requests that they must let through or refuse."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration, load_configuration
from tests.cloudformation import Resources
from tests.expected import networking as expected
from tests.iam_evaluator import Decision, Request, evaluate
from tests.policies import policies_of as policies_in
from tests.synth import ROOT, changed
from tests.template.foundation import ACCOUNT, network_of

FOREIGN = "999900001111"
REGIONS = list(expected.S3_ENDPOINT_OBJECTS)
PARTITIONS = {"us-east-1": "aws", "us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn"}
# Regions, and the configurations of the project whose template names no account or one.
NETWORKS = [*REGIONS, "default", "isolated", "production"]
IN_US_EAST_1 = ["us-east-1", "default", "isolated", "production"]

Policies = dict[str, dict[str, Any]]


def policies_of(config: Configuration) -> Policies:
    """Return the policy of every endpoint by the end of its service's name."""
    region = config.deployment.region
    resources = Resources(
        Template.from_stack(network_of(config)),
        partition=PARTITIONS[region],
        region=region,
    )
    found = {}
    for endpoint in resources.of("AWS::EC2::VPCEndpoint"):
        service = endpoint["ServiceName"].split(f"{region}.")[1]
        if "PolicyDocument" in endpoint:
            found[service] = endpoint["PolicyDocument"]
    return found


@pytest.fixture(scope="module")
def policies(default_config: Configuration) -> dict[str, Policies]:
    configs = {
        region: changed(
            default_config,
            deployment={"region": region, "account": ACCOUNT},
            network={"zones": [f"{region}a", f"{region}b"]},
        )
        for region in REGIONS
    }
    for name in ("default", "isolated", "production"):
        configs[name] = load_configuration(ROOT / "config" / f"{name}.yaml")
    return {name: policies_of(config) for name, config in configs.items()}


def decide(policy: dict[str, Any], action: str, resource: str, **context: str) -> Decision:
    """Evaluate an endpoint's policy: every statement names every principal."""
    statements = []
    for statement in policy["Statement"]:
        rest = dict(statement)
        assert rest.pop("Principal") == {"AWS": "*"}
        statements.append(rest)
    return evaluate([{"Statement": statements}], Request(action, resource, context))


@pytest.mark.parametrize(
    ("region", "action", "pattern"),
    [(r, *pair) for r, pairs in expected.S3_ENDPOINT_OBJECTS.items() for pair in sorted(pairs)],
)
def test_s3_endpoint_lets_what_is_needed_through(
    policies: dict[str, Policies], region: str, action: str, pattern: str
) -> None:
    # A signed address carries the principal of whoever signed it, such as ECR's.
    key = pattern.replace("/*", "/some/key")
    for context in ({}, {"aws:PrincipalAccount": ACCOUNT}, {"aws:PrincipalAccount": FOREIGN}):
        assert decide(policies[region]["s3"], action, key, **context) is Decision.ALLOW


@pytest.mark.parametrize("name", IN_US_EAST_1)
@pytest.mark.parametrize(("action", "resource"), expected.S3_ENDPOINT_REFUSED)
def test_s3_endpoint_refuses_all_else(
    policies: dict[str, Policies], name: str, action: str, resource: str
) -> None:
    for account in (ACCOUNT, FOREIGN):
        context = {"aws:PrincipalAccount": account}
        assert decide(policies[name]["s3"], action, resource, **context) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize("region", REGIONS)
def test_s3_endpoint_admits_no_more_than_what_is_typed(
    policies: dict[str, Policies], region: str
) -> None:
    admitted = {
        (statement["Action"], statement["Resource"])
        for statement in policies[region]["s3"]["Statement"]
    }
    assert admitted == expected.S3_ENDPOINT_OBJECTS[region]


def test_another_bootstrap_has_another_asset_bucket(default_config: Configuration) -> None:
    config = changed(default_config, deployment={"bootstrapQualifier": "team1"})
    policy = policies_of(config)["s3"]
    own = f"arn:aws:s3:::cdk-team1-assets-{ACCOUNT}-us-east-1/asset.zip"
    assert decide(policy, "s3:GetObject", own) is Decision.ALLOW
    other = own.replace("team1", "hnb659fds")
    assert decide(policy, "s3:GetObject", other) is Decision.IMPLICIT_DENY


def call(service: str, name: str) -> tuple[str, str]:
    """Return the typed call of a service, in the region of a network."""
    action, resource = expected.INTERFACE_CALLS[service]
    if name in REGIONS:
        resource = resource.replace("us-east-1", name).replace(
            "arn:aws:", f"arn:{PARTITIONS[name]}:"
        )
    return action, resource


@pytest.mark.parametrize("service", expected.INTERFACE_CALLS)
@pytest.mark.parametrize("name", NETWORKS)
def test_interface_endpoint_serves_principals_of_the_account_only(
    policies: dict[str, Policies], name: str, service: str
) -> None:
    policy = policies[name][service]
    action, resource = call(service, name)
    own = {"aws:PrincipalAccount": ACCOUNT}
    assert decide(policy, action, resource, **own) is Decision.ALLOW
    foreign = {"aws:PrincipalAccount": FOREIGN}
    assert decide(policy, action, resource, **foreign) is Decision.IMPLICIT_DENY
    # Anonymous calls have no account.
    assert decide(policy, action, resource) is Decision.IMPLICIT_DENY


REFUSED = [
    (service, action) for service, every in expected.INTERFACE_REFUSED.items() for action in every
]


@pytest.mark.parametrize(("service", "action"), REFUSED)
@pytest.mark.parametrize("name", NETWORKS)
def test_interface_endpoint_refuses_what_nothing_calls(
    policies: dict[str, Policies], name: str, service: str, action: str
) -> None:
    own = {"aws:PrincipalAccount": ACCOUNT}
    policy = policies[name][service]
    assert decide(policy, action, "*", **own) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize("name", NETWORKS)
def test_interface_endpoint_admits_no_more_than_what_is_typed(
    policies: dict[str, Policies], name: str
) -> None:
    admitted = {
        service: {
            action for statement in policy["Statement"] for action in listed(statement["Action"])
        }
        for service, policy in policies[name].items()
        if service != "s3"
    }
    assert admitted == expected.INTERFACE_ACTIONS


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.parametrize("service", expected.INTERFACE_ACTIONS)
def test_a_shared_vpc_may_call_all_of_a_service_and_no_other(service: str) -> None:
    config = load_configuration(ROOT / "config" / "existing-vpc.yaml")
    existing = config.model_dump(by_alias=True, mode="json")["network"]["existing"]
    policy = policies_of(changed(config, network={"existing": {**existing, "endpoints": []}}))[
        service
    ]
    prefix = service.partition(".")[0]
    own, foreign = {"aws:PrincipalAccount": ACCOUNT}, {"aws:PrincipalAccount": FOREIGN}
    assert decide(policy, f"{prefix}:AnyCall", "*", **own) is Decision.ALLOW
    assert decide(policy, f"{prefix}:AnyCall", "*", **foreign) is Decision.IMPLICIT_DENY
    assert decide(policy, "s3:PutObject", "*", **own) is Decision.IMPLICIT_DENY


def test_whatever_a_role_of_the_cluster_may_call_passes_its_endpoint(
    policies: dict[str, Policies], templates: dict[str, Template]
) -> None:
    """A role that gets another permission without the endpoint's would fail in the VPC alone."""
    allowed = {
        action
        for stack in ("cluster", "workload")
        for policy in policies_in({stack: templates[stack].to_json()})
        if policy.kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::Role")
        for statement in policy.document["Statement"]
        if "Principal" not in statement
        for action in listed(statement["Action"])
    }
    own = {"aws:PrincipalAccount": ACCOUNT}
    checked = set()
    for service, policy in policies["default"].items():
        for action in allowed:
            if service != "s3" and action.partition(":")[0] == service.partition(".")[0]:
                _, resource = call(service, "default")
                assert decide(policy, action, resource, **own) is Decision.ALLOW, action
                checked.add(action.partition(":")[0])
    assert checked >= {"ec2", "ecr", "eks", "elasticloadbalancing", "lambda", "sqs", "ssm"}


@pytest.mark.parametrize("name", IN_US_EAST_1)
def test_no_data_goes_to_a_function_of_another_account(
    policies: dict[str, Policies], name: str
) -> None:
    function = f"arn:aws:lambda:us-east-1:{FOREIGN}:function:handler"
    own = {"aws:PrincipalAccount": ACCOUNT}
    policy = policies[name]["lambda"]
    assert decide(policy, "lambda:InvokeFunction", function, **own) is Decision.IMPLICIT_DENY


def test_documentation_lists_what_is_admitted() -> None:
    text = (ROOT / "docs" / "networking.md").read_text()
    table = text.split("## Endpoint policies")[1].split("The S3 endpoint")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    named = {
        service: set(re.findall(r"`([A-Za-z*]+)`", row[2]))
        for row in rows
        for service in re.findall(r"`([a-z0-9.-]+)`", row[1])
    }
    assert named == {
        service: {action.partition(":")[2] for action in actions}
        for service, actions in expected.INTERFACE_ACTIONS.items()
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_every_endpoint_but_eks_auth_has_a_policy(policies: dict[str, Policies], name: str) -> None:
    assert set(policies[name]) == {*expected.INTERFACE_CALLS, "s3"}
    assert {*expected.INTERFACE_ENDPOINTS} - set(policies[name]) == {"eks-auth"}
