"""The IAM evaluator on worked examples of the IAM user guide (pages named at each)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.iam_evaluator import Decision, EvaluatorGapError, Request, evaluate


def allow(**elements: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", **elements}
    return {"Version": "2012-10-17", "Statement": [statement]}


def deny(**elements: Any) -> dict[str, Any]:
    policy = allow(**elements)
    policy["Statement"][0]["Effect"] = "Deny"
    return policy


def decide(policy: dict[str, Any], **context: str | list[str]) -> Decision:
    keys = {key.replace("__", ":"): value for key, value in context.items()}
    return evaluate([policy], Request("s3:GetObject", "arn:aws:s3:::b/k", keys))


def test_default_is_deny_and_an_explicit_deny_wins() -> None:
    """Policy evaluation logic."""
    get = Request("s3:GetObject", "arn:aws:s3:::carlossalazar-logs/a")
    assert evaluate([], get) is Decision.IMPLICIT_DENY
    assert evaluate([allow(Action="s3:*")], get) is Decision.ALLOW
    assert evaluate([allow(Action="s3:*"), deny(Action="s3:Get*")], get) is Decision.EXPLICIT_DENY
    assert evaluate([deny(Action="s3:Get*"), allow(Action="s3:*")], get) is Decision.EXPLICIT_DENY
    assert evaluate([allow(Action="ec2:*")], get) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize(
    ("pattern", "action", "matches"),
    [
        # IAM JSON policy elements: Action: names ignore case; * and ? are wildcards.
        ("iam:*AccessKey*", "iam:CreateAccessKey", True),
        ("iam:*AccessKey*", "iam:CreateUser", False),
        ("IAM:listaccesskeys", "iam:ListAccessKeys", True),
        ("s3:GetObject?", "s3:GetObject", False),
        ("s3:Get", "s3:GetObject", False),
    ],
)
def test_actions(pattern: str, action: str, matches: bool) -> None:
    decision = evaluate([allow(Action=pattern)], Request(action, "x"))
    assert (decision is Decision.ALLOW) is matches


@pytest.mark.parametrize(
    ("pattern", "resource", "matches"),
    [
        # IAM JSON policy elements: Resource.
        ("arn:aws:s3:::bucket/*/test/*", "arn:aws:s3:::bucket/1/2/test/object.jpg", True),
        ("arn:aws:s3:::bucket/*/test/*", "arn:aws:s3:::bucket/1/object.jpg", False),
        ("arn:aws:iam::123456789012:user/?ob", "arn:aws:iam::123456789012:user/Bob", True),
        ("arn:aws:iam::123456789012:user/bob", "arn:aws:iam::123456789012:user/Bob", False),
        ("arn:aws:s3:::a.b", "arn:aws:s3:::aXb", False),
    ],
)
def test_resources(pattern: str, resource: str, matches: bool) -> None:
    decision = evaluate([allow(Resource=pattern)], Request("s3:GetObject", resource))
    assert (decision is Decision.ALLOW) is matches


def test_string_operators() -> None:
    """Condition operators: the key must be there; values keep their case, keys do not."""
    equals = allow(Condition={"StringEquals": {"aws:PrincipalTag/job-category": "iamuser-admin"}})
    assert decide(equals, **{"aws:principaltag/Job-Category": "iamuser-admin"}) is Decision.ALLOW
    assert decide(equals, **{"aws:PrincipalTag/job-category": "iamUser-Admin"}) is (
        Decision.IMPLICIT_DENY
    )
    assert decide(equals) is Decision.IMPLICIT_DENY
    like = allow(Condition={"StringLike": {"aws:PrincipalTag/job-category": "iamuser-*"}})
    assert decide(like, **{"aws:PrincipalTag/job-category": "iamuser-dev"}) is Decision.ALLOW
    assert decide(like, **{"aws:PrincipalTag/job-category": "user-dev"}) is Decision.IMPLICIT_DENY
    unlike = deny(Condition={"StringNotEquals": {"aws:PrincipalTag/team": "a"}})
    assert decide(unlike) is Decision.EXPLICIT_DENY, "negated operators match a missing key"


def test_all_conditions_and_any_value() -> None:
    """Conditions with multiple context keys or values: AND over keys, OR over values."""
    policy = allow(
        Condition={
            "StringEquals": {
                "aws:PrincipalTag/department": ["finance", "hr", "legal"],
                "aws:PrincipalTag/role": ["audit", "security"],
            },
            "Bool": {"aws:SecureTransport": "true"},
        }
    )
    full = {
        "aws:PrincipalTag/department": "hr",
        "aws:PrincipalTag/role": "audit",
        "aws:SecureTransport": "true",
    }
    assert decide(policy, **full) is Decision.ALLOW
    for key in full:
        assert decide(policy, **{**full, key: "other"}) is Decision.IMPLICIT_DENY
        assert decide(policy, **{k: v for k, v in full.items() if k != key}) is (
            Decision.IMPLICIT_DENY
        )


def test_if_exists() -> None:
    """Condition operators, ...IfExists: no key, no matter; a key must match."""
    policy = allow(Condition={"StringLikeIfExists": {"ec2:InstanceType": ["t1.*", "m3.*"]}})
    assert decide(policy) is Decision.ALLOW
    assert decide(policy, **{"ec2:InstanceType": "t1.micro"}) is Decision.ALLOW
    assert decide(policy, **{"ec2:InstanceType": "p5.48xlarge"}) is Decision.IMPLICIT_DENY


def test_set_operators() -> None:
    """Set operators for multivalued context keys, with the example of tag keys."""
    keys = {"aws:TagKeys": ["environment", "cost-center"]}
    every = allow(Condition={"ForAllValues:StringEquals": keys})
    some = allow(Condition={"ForAnyValue:StringEquals": keys})
    for tags, all_match, any_matches in (
        (["environment"], True, True),
        (["environment", "cost-center"], True, True),
        (["environment", "owner"], False, True),
        (["owner"], False, False),
        ([], True, False),
    ):
        assert (decide(every, **{"aws:TagKeys": tags}) is Decision.ALLOW) is all_match
        assert (decide(some, **{"aws:TagKeys": tags}) is Decision.ALLOW) is any_matches
    assert decide(every) is Decision.ALLOW, "true without the key"
    assert decide(some) is Decision.IMPLICIT_DENY


def test_null() -> None:
    """Condition operator to check existence of condition keys."""
    absent = allow(Condition={"Null": {"aws:TokenIssueTime": "true"}})
    assert decide(absent) is Decision.ALLOW
    assert decide(absent, **{"aws:TokenIssueTime": "2026-01-01"}) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize(
    "statement",
    [
        {"NotAction": "iam:*"},
        {"Condition": {"NumericLessThan": {"s3:max-keys": "10"}}},
        {"Condition": {"StringEquals": {"aws:TagKeys": ["a"]}}},
        {"Resource": "arn:aws:s3:::b/${aws:username}"},
    ],
)
def test_what_it_does_not_know_raises(statement: dict[str, Any]) -> None:
    request = Request("s3:GetObject", "x", {"s3:max-keys": "1", "aws:TagKeys": ["a", "b"]})
    with pytest.raises(EvaluatorGapError):
        evaluate([allow(**statement)], request)
