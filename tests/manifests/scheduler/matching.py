"""Label selectors, node selector terms and tolerations, as the Kubernetes API defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Labels = Mapping[str, str]


class SchedulerGapError(Exception):
    """Part of a pod that this scheduler does not know; a guess would be no proof."""


def matches(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Return whether a label selector selects labels; none selects nothing, `{}` everything."""
    if selector is None:
        return False
    equal = selector.get("matchLabels") or {}
    return all(labels.get(k) == v for k, v in equal.items()) and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def matches_term(term: Mapping[str, Any], labels: Labels) -> bool:
    """Return whether a node selector term selects a node by its labels; an empty one does not."""
    expressions = term.get("matchExpressions") or []
    if term.get("matchFields"):
        raise SchedulerGapError("matchFields")
    return bool(expressions) and all(_holds(expression, labels) for expression in expressions)


def _holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        # A node or pod without the key passes.
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt"):
        if not labels.get(key, "").isdecimal():
            return False
        have, bound = int(labels[key]), int(values[0])
        return have > bound if operator == "Gt" else have < bound
    raise SchedulerGapError(operator)


def tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether any of the tolerations tolerates a taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    effect = toleration.get("effect")
    if effect and effect != taint["effect"]:
        return False
    key = toleration.get("key")
    if toleration.get("operator", "Equal") == "Exists":
        return not key or key == taint["key"]
    return key == taint["key"] and toleration.get("value", "") == taint.get("value", "")
