"""A small evaluator of IAM policies, for tests that ask concrete requests.

It follows the IAM user guide ("Policy evaluation logic", "IAM JSON policy elements: Condition
operators", "Set operators for multivalued context keys") for identity policies of one account.
What it does not know raises, so that a policy cannot pass by being misread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EvaluatorGapError(Exception):
    """Part of a policy that this evaluator does not know; a guess would be no proof."""


class Decision(StrEnum):
    """The answer to a request."""

    ALLOW = "allow"
    EXPLICIT_DENY = "explicit deny"
    IMPLICIT_DENY = "implicit deny"


@dataclass(frozen=True)
class Request:
    """One call of one action on one resource; a context value may be a list."""

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)


def evaluate(policies: Iterable[Mapping[str, Any]], request: Request) -> Decision:
    """Decide on `request` under all of `policies`."""
    decision = Decision.IMPLICIT_DENY
    for policy in policies:
        for statement in _listed(policy["Statement"]):
            if not _applies(statement, request):
                continue
            if statement["Effect"] == "Deny":
                return Decision.EXPLICIT_DENY
            decision = Decision.ALLOW
    return decision


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    unknown = set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition"}
    if unknown:
        raise EvaluatorGapError(f"statement elements {sorted(unknown)}")
    return (
        any(_like(a.lower(), request.action.lower()) for a in _listed(statement["Action"]))
        and any(_like(r, request.resource) for r in _listed(statement["Resource"]))
        and all(
            _holds(operator, key, _listed(expected), request.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, expected in keys.items()
        )
    )


def _holds(
    operator: str, key: str, expected: list[str], context: Mapping[str, str | list[str]]
) -> bool:
    # Names of context keys are not case-sensitive; their values are.
    actual = {name.lower(): value for name, value in context.items()}.get(key.lower())
    quantifier, _, plain = operator.rpartition(":")
    base = plain.removesuffix("IfExists")
    values = [] if actual is None else _listed(actual)
    if base == "Null":
        return (actual is None) == (expected == ["true"])
    if quantifier == "ForAllValues":
        return all(_matches(base, value, expected) for value in values)
    if quantifier == "ForAnyValue":
        return any(_matches(base, value, expected) for value in values)
    if quantifier:
        raise EvaluatorGapError(operator)
    if actual is None:
        return plain.endswith("IfExists") or base.startswith(("StringNot", "ArnNot"))
    if len(values) != 1:
        raise EvaluatorGapError(f"{operator} on the multivalued key {key}")
    return _matches(base, values[0], expected)


def _matches(operator: str, value: str, expected: list[str]) -> bool:
    if operator in ("StringEquals", "Bool"):
        return value in expected
    if operator == "StringNotEquals":
        return value not in expected
    if operator in ("StringLike", "ArnLike", "ArnEquals"):
        return any(_like(pattern, value) for pattern in expected)
    if operator in ("StringNotLike", "ArnNotLike", "ArnNotEquals"):
        return not any(_like(pattern, value) for pattern in expected)
    raise EvaluatorGapError(operator)


def _like(pattern: str, text: str) -> bool:
    if "${" in pattern:
        raise EvaluatorGapError(f"policy variable in {pattern}")
    parts = ({"*": ".*", "?": "."}.get(character) or re.escape(character) for character in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
