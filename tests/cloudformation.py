"""Reading synthesized templates: intrinsic functions resolved, and what depends on what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aws_cdk.assertions import Template

ACCOUNT = "111122223333"


class Resources:
    """The resources of one template.

    Parameters
    ----------
    template : Template or dict
        A template.
    partition, region : str
        What the pseudo parameters stand for.
    """

    def __init__(
        self,
        template: Template | dict[str, Any],
        *,
        partition: str = "aws",
        region: str = "us-east-1",
    ) -> None:
        self.template = template.to_json() if isinstance(template, Template) else template
        self._all: dict[str, dict[str, Any]] = self.template["Resources"]
        self._pseudo = {
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": partition,
            "AWS::Region": region,
            "AWS::URLSuffix": "amazonaws.com",
        }

    def ids(self, kind: str) -> list[str]:
        """Return the logical ids of a type."""
        return [name for name, resource in self._all.items() if resource["Type"] == kind]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the resolved properties of every resource of a type."""
        return [self.properties(name) for name in self.ids(kind)]

    def by(self, kind: str, key: str) -> dict[str, dict[str, Any]]:
        """Return the resolved properties of a type by the value of one property."""
        return {properties[key]: properties for properties in self.of(kind)}

    def id_by(self, kind: str, key: str) -> dict[str, str]:
        """Return the logical ids of a type by the value of one property."""
        return {self.properties(name)[key]: name for name in self.ids(kind)}

    def properties(self, name: str) -> dict[str, Any]:
        """Return the resolved properties of a resource."""
        resolved: dict[str, Any] = self.resolve(self._all[name].get("Properties", {}))
        return resolved

    def resolve(self, value: Any) -> Any:
        """Replace intrinsic functions: references by readable, distinct text."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref":
                return self._pseudo.get(argument, f"ref-{argument}")
            if function == "Fn::GetAtt":
                return f"att-{argument[0]}-{argument[1]}"
            if function == "Fn::Join":
                return str(argument[0]).join(str(part) for part in self.resolve(argument[1]))
            if function == "Fn::Base64":
                return self.resolve(argument)
            if function == "Fn::GetStackOutput":
                return f"out-{argument['StackName']}-{argument['OutputName']}"
        return {key: self.resolve(item) for key, item in value.items()}

    def needs(self, name: str) -> set[str]:
        """Return all that is created before a resource, and deleted after it."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for needed in self._direct(waiting.pop()):
                if needed not in found:
                    found.add(needed)
                    waiting.append(needed)
        return found

    def _direct(self, name: str) -> set[str]:
        resource = self._all[name]
        named = resource.get("DependsOn", [])
        named = [named] if isinstance(named, str) else named
        return {*named, *_references(resource.get("Properties", {}))} & self._all.keys()


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        if set(value) == {"Ref"}:
            yield value["Ref"]
        elif set(value) == {"Fn::GetAtt"}:
            yield value["Fn::GetAtt"][0]
        else:
            for item in value.values():
                yield from _references(item)


def iam_size(document: Any) -> int:
    """Return a policy's size as IAM counts it: characters without white space."""
    return len("".join(json.dumps(document, separators=(",", ":")).split()))
