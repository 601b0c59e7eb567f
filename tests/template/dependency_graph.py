"""What is created after what, and deleted before it, across the stacks of a deployment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aws_cdk import cx_api
from aws_cdk.assertions import Template

from sonic_eks.names import STACKS
from sonic_eks.stacks.deployment import Stacks
from tests.cloudformation import Resources

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
CHART = "Custom::AWSCDK-EKS-HelmChart"


@dataclass(frozen=True)
class Node:
    """A resource of a stack."""

    stack: str
    id: str


class DependencyGraph:
    """The resources of all stacks, and two relations: within a stack, and between stacks.

    Parameters
    ----------
    templates : dict
        Template by stack.
    order : dict
        Names of the stacks that each stack is deployed after.
    """

    def __init__(self, templates: dict[str, Template], order: dict[str, set[str]]) -> None:
        self.stacks = {name: Resources(template) for name, template in templates.items()}
        self.order = {name: set(earlier) for name, earlier in order.items()}
        # Resolving properties is most of the time of a rule, and rules ask for few types.
        self._properties: dict[str, list[tuple[Node, dict[str, Any]]]] = {}
        self.direct: dict[Node, set[str]] = {
            Node(stack, name): resources._direct(name)
            for stack, resources in self.stacks.items()
            for name in resources.template["Resources"]
        }

    @classmethod
    def of(cls, stacks: Stacks) -> DependencyGraph:
        """Return the graph of synthesized stacks; their order is that of the cloud assembly."""
        assembly: cx_api.CloudAssembly = stacks.network.node.root.synth()  # type: ignore[attr-defined]
        ids = {stack.stack_name: name for name, stack in stacks.by_name.items()}
        order = {
            ids[name]: {
                ids[d.id] for d in assembly.get_stack_by_name(name).dependencies if d.id in ids
            }
            for name in ids
        }
        templates = {name: Template.from_stack(stack) for name, stack in stacks.by_name.items()}
        return cls(templates, order)

    def of_type(self, kind: str, **properties: Any) -> list[Node]:
        """Return resources of a type whose properties have the values given."""
        if kind not in self._properties:
            self._properties[kind] = [
                (Node(stack, name), resources.properties(name))
                for stack, resources in self.stacks.items()
                for name in resources.ids(kind)
            ]
        return [node for node, own in self._properties[kind] if properties.items() <= own.items()]

    def one(self, kind: str, **properties: Any) -> Node:
        """Return the only resource of a type with the values given."""
        (found,) = self.of_type(kind, **properties)
        return found

    def objects(self, *kinds: str) -> list[tuple[Node, dict[str, Any]]]:
        """Return Kubernetes objects of the kinds with the resource that applies each."""
        return [
            (node, manifest)
            for node in self.of_type(MANIFEST)
            for manifest in json.loads(self.stacks[node.stack].properties(node.id)["Manifest"])
            if not kinds or manifest["kind"] in kinds
        ]

    def applies(self, kind: str, name: str, namespace: str | None = None) -> Node:
        """Return the resource that applies one Kubernetes object."""
        (found,) = [
            node
            for node, manifest in self.objects(kind)
            if manifest["metadata"]["name"] == name
            and manifest["metadata"].get("namespace") == namespace
        ]
        return found

    def is_after(self, later: Node, earlier: Node) -> bool:
        """Return whether a resource is created after another, and deleted before it."""
        if later.stack == earlier.stack:
            return earlier.id in self._reached(later)
        return earlier.stack in _closure(later.stack, self.order.__getitem__)

    def cut(self, later: Node, earlier: Node) -> None:
        """Remove what makes one resource wait for another's stack or, within one, for any."""
        if later.stack == earlier.stack:
            self.direct[later] = set()
        else:
            self.order[later.stack] = set()

    def cycles(self) -> list[str]:
        """Return stacks and resources that wait for themselves."""
        found = [name for name in STACKS if name in _closure(name, self.order.__getitem__)]
        return found + [node.id for node in self.direct if node.id in self._reached(node)]

    def _reached(self, node: Node) -> set[str]:
        return _closure(node.id, lambda name: self.direct[Node(node.stack, name)])


def _closure(start: str, edges: Callable[[str], set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in edges(waiting.pop()) - found:
            found.add(name)
            waiting.append(name)
    return found
