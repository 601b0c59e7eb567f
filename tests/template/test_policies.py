"""Every policy of a deployment, read by a linter that knows the actions and resources of AWS."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration, load_configuration
from tests.policies import Policy, policies_of
from tests.synth import ROOT, changed, stacks_of

pytestmark = pytest.mark.slow

ROLE = "arn:aws:iam::111122223333:role/x"
SHARED = {"pullAccountIds": ["444455556666"], "replicateTo": ["us-west-2"]}


def configurations() -> dict[str, Configuration]:
    """Return the configurations of the project, and one that shares its registry."""
    found = {path.stem: load_configuration(path) for path in (ROOT / "config").glob("*.yaml")}
    return {**found, "shared": changed(found["default"], registry=SHARED)}


@pytest.fixture(scope="module")
def policies() -> dict[str, list[Policy]]:
    return {
        name: list(
            policies_of(
                {
                    stack: Template.from_stack(found).to_json()
                    for stack, found in stacks_of(config).by_name.items()
                }
            )
        )
        for name, config in configurations().items()
    }


@cache
def _findings(text: str) -> list[tuple[str, int]]:
    """Return the issues that parliament finds and the lines that they are about."""
    import parliament  # late: it takes long, and only slow tests read policies

    found = parliament.analyze_policy_string(text).findings
    return [(finding.issue, finding.location.get("line") or 0) for finding in found]


def findings(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the issues in a policy, each with the Sid or the first action of its statement."""
    statements = document["Statement"]
    # One statement a line, which is all that a finding says of its place.
    lines = ",\n".join(json.dumps(statement) for statement in statements)
    version = json.dumps(document.get("Version", "2012-10-17"))
    text = f'{{"Version": {version}, "Statement": [\n{lines}\n]}}'
    return [
        (issue, _name(statements[line - 2]) if line >= 2 else "") for issue, line in _findings(text)
    ]


def _name(statement: dict[str, Any]) -> str:
    action = statement.get("Action", "")
    return str(statement.get("Sid") or (action if isinstance(action, str) else action[0]))


EXPECTED = yaml.safe_load((ROOT / "tests" / "expected" / "parliament.yaml").read_text())
ACCEPTED = {(entry["issue"], entry["resource"], entry["statement"]) for entry in EXPECTED}


@pytest.mark.parametrize("name", configurations())
def test_parliament_finds_nothing_that_is_not_explained(
    policies: dict[str, list[Policy]], name: str
) -> None:
    assert len(policies[name]) > 30
    found = {
        (issue, policy.kind, statement)
        for policy in policies[name]
        for issue, statement in findings(policy.document)
    }
    assert found - ACCEPTED == set()


def test_every_explanation_is_still_needed(policies: dict[str, list[Policy]]) -> None:
    found = {
        (issue, policy.kind, statement)
        for every in policies.values()
        for policy in every
        for issue, statement in findings(policy.document)
    }
    assert found >= ACCEPTED
    assert all(len(entry["reason"]) > 40 for entry in EXPECTED)


def test_policies_of_every_kind_are_read(policies: dict[str, list[Policy]]) -> None:
    kinds = {policy.kind for policy in policies["production"] + policies["shared"]}
    assert kinds >= {
        "AWS::EC2::VPCEndpoint",
        "AWS::ECR::Repository",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::KMS::Key",
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
    }


def test_every_arn_is_one_that_aws_would_give(policies: dict[str, list[Policy]]) -> None:
    for policy in [policy for every in policies.values() for policy in every]:
        text = json.dumps(policy.document)
        for left in ("Fn::", '"Ref"', "${"):
            assert left not in text.replace("${aws:", ""), policy.name


@pytest.mark.parametrize(
    ("statement", "issue"),
    [
        ({"Action": "ec2:DescribeInstancez", "Resource": "*"}, "UNKNOWN_ACTION"),
        ({"Action": "ec3:DescribeInstances", "Resource": "*"}, "UNKNOWN_PREFIX"),
        ({"Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket"}, "RESOURCE_MISMATCH"),
        ({"Action": "s3:GetObject", "Resource": "bucket"}, "INVALID_ARN"),
        ({"Action": "iam:PassRole", "Resource": "*"}, "RESOURCE_STAR"),
        (
            {
                "Action": "iam:PassRole",
                "Resource": ROLE,
                "Condition": {"StringEquals": {"aws:NoSuchKey": "x"}},
            },
            "UNKNOWN_CONDITION_FOR_ACTION",
        ),
        (
            {
                "Action": "iam:PassRole",
                "Resource": ROLE,
                "Condition": {"ArnEquals": {"aws:SourceArn": "role-x"}},
            },
            "MISMATCHED_TYPE",
        ),
    ],
)
def test_a_bad_policy_is_found(statement: dict[str, Any], issue: str) -> None:
    good = {"Effect": "Allow", "Action": "iam:PassRole", "Resource": ROLE}
    bad = {"Sid": "Bad", "Effect": "Allow", **statement}
    assert findings({"Statement": [good]}) == []
    assert (issue, "Bad") in findings({"Statement": [good, bad]})
