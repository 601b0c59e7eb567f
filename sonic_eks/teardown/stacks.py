"""The stacks of a deployment as a teardown sees them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sonic_eks.teardown.aws import call, pages

# CloudFormation answers a ValidationError for a stack that does not exist.
_MISSING = ("ValidationError",)


@dataclass(frozen=True)
class StackState:
    """A stack that exists.

    Attributes
    ----------
    id : str
        Its ARN, which stays valid after its deletion.
    status : str
        Its status, such as ``DELETE_FAILED``.
    is_protected : bool
        Whether CloudFormation refuses to delete it.
    """

    id: str
    status: str
    is_protected: bool

    @property
    def is_busy(self) -> bool:
        """Whether an operation is going on."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def is_deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.status == "DELETE_IN_PROGRESS"


def state_of(cloudformation: Any, name: str) -> StackState | None:
    """Return the state of a stack by name or ARN, None when there is no such stack."""
    answer = call(
        f"stack {name}",
        lambda: cloudformation.describe_stacks(StackName=name),
        missing=_MISSING,
    )
    if answer is None:
        return None
    stack = answer["Stacks"][0]
    if stack["StackStatus"] == "DELETE_COMPLETE":
        return None
    return StackState(
        stack["StackId"], stack["StackStatus"], bool(stack.get("EnableTerminationProtection"))
    )


def delete(cloudformation: Any, stack: StackState) -> None:
    """Start to delete a stack."""
    call(f"deleting {stack.id}", lambda: cloudformation.delete_stack(StackName=stack.id))


def failures(cloudformation: Any, stack: StackState) -> list[str]:
    """Return why the last deletion of a stack failed: resource and reason, in order of time."""
    found = []
    for event in pages(
        cloudformation, "describe_stack_events", "StackEvents", StackName=stack.id
    ):  # newest first
        is_stack = event.get("PhysicalResourceId") == event["StackId"]
        if is_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
            break
        if event["ResourceStatus"] == "DELETE_FAILED" and not is_stack:
            reason = event.get("ResourceStatusReason", "no reason given")
            found.append(f"{event['LogicalResourceId']}: {reason}")
    return found[::-1]


def remaining(cloudformation: Any, stack: StackState) -> tuple[int, int]:
    """Return how many resources of a stack are left, and how many there were."""
    resources = pages(
        cloudformation,
        "list_stack_resources",
        "StackResourceSummaries",
        StackName=stack.id,
    )
    left = [item for item in resources if item["ResourceStatus"] != "DELETE_COMPLETE"]
    return len(left), len(resources)


def last_deleted(cloudformation: Any, names: Collection[str]) -> list[str]:
    """Return the ARN of the last deleted stack of each name; CloudFormation lists 90 days."""
    found = pages(
        cloudformation,
        "list_stacks",
        "StackSummaries",
        StackStatusFilter=["DELETE_COMPLETE"],
    )
    newest: dict[str, dict[str, Any]] = {}
    for item in sorted(found, key=lambda item: item["DeletionTime"]):
        newest[item["StackName"]] = item
    return [str(newest[name]["StackId"]) for name in names if name in newest]


def resources_of(cloudformation: Any, stack_id: str) -> list[dict[str, Any]]:
    """Return the resources of a stack, which may be deleted."""
    return pages(
        cloudformation,
        "list_stack_resources",
        "StackResourceSummaries",
        StackName=stack_id,
    )
