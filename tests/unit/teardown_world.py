"""An account in which a stack is being deleted and nodes drain, on a clock of its own.

The clients are boto3's own, with parameter validation, paginators and errors; only what would go
over the network is answered here. They take long to make, so one set serves a process: what they
ask is answered by the world that was made last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import boto3

from sonic_eks.teardown.aws import Clients
from sonic_eks.teardown.run import Clock

ACCOUNT = "111122223333"
SERVICES = ("cloudformation", "ec2", "eks", "fsx", "logs", "route53", "sts")
NEVER = float("inf")


@dataclass
class FakeInstance:
    """An instance that ends some seconds after it is told to."""

    id: str
    tags: dict[str, str]
    ends_at: float = NEVER

    def state(self, now: float) -> str:
        """Return its state."""
        return "terminated" if now >= self.ends_at else "running"


@dataclass
class FakeStack:
    """A stack; `outcomes` says for each deletion how long it takes and how it ends."""

    name: str
    status: str = "CREATE_COMPLETE"
    is_protected: bool = False
    outcomes: list[tuple[float, str]] = field(default_factory=lambda: [(60, "DELETE_COMPLETE")])
    resources: list[dict[str, str]] = field(default_factory=list)
    reason: str = "instances of Karpenter are left: i-1"
    deletions: int = 0
    ends_at: float = NEVER

    @property
    def arn(self) -> str:
        """Its ARN."""
        return f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/{self.name}/1"


class World:
    """The account, and what was asked of it.

    Parameters
    ----------
    stacks : sequence of FakeStack
        Stacks that exist, or that existed (status ``DELETE_COMPLETE``).
    instances : sequence of FakeInstance
        Instances.
    """

    last: ClassVar[World]

    def __init__(
        self, *stacks: FakeStack, instances: tuple[FakeInstance, ...] = (), on_delete: Any = None
    ) -> None:
        self.now = 0.0
        self.stacks = {stack.name: stack for stack in stacks}
        self.instances = list(instances)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.said: list[str] = []
        self.has_cluster = True
        self.log_groups: list[str] = []
        self.tasks: dict[str, str] = {}
        self.reservations: list[dict[str, str]] = []
        self.connections: list[dict[str, str]] = []
        self.attachments: list[dict[str, str]] = []
        self.vpn_gateways: list[dict[str, Any]] = []
        self.records: list[dict[str, str]] = []
        self.errors: dict[str, tuple[str, str]] = {}
        self.on_delete: Callable[[World], None] | None = on_delete
        self.clock = Clock(now=lambda: self.now, sleep=self._sleep)
        self.clients = clients()
        World.last = self

    def asked(self, operation: str) -> list[dict[str, Any]]:
        """Return the parameters of every call of an operation."""
        return [parameters for name, parameters in self.calls if name == operation]

    def show(self, text: str) -> None:
        """Hear of progress."""
        self.said.append(text)

    def _sleep(self, seconds: float) -> None:
        assert self.now < 24 * 3600, "it waits for ever"
        self.now += seconds

    def remember(self, operation: str, params: dict[str, Any]) -> None:
        """Note a call with its parameters, before they are validated."""
        self._last = params
        self.calls.append((operation, params))

    def answer(self, service: str, operation: str) -> tuple[Any, dict[str, Any]]:
        """Return what a service says to the call noted last."""
        if operation in self.errors:
            return _error(*self.errors[operation])
        method = getattr(self, f"_{service}_{operation}")
        body = method(self._last)
        if isinstance(body, tuple):
            return _error(*body)
        return SimpleNamespace(status_code=200), body | {"ResponseMetadata": {}}

    def _stack(self, name_or_arn: str) -> FakeStack | None:
        for stack in self.stacks.values():
            if name_or_arn in (stack.name, stack.arn):
                if stack.status == "DELETE_IN_PROGRESS" and self.now >= stack.ends_at:
                    stack.status = stack.outcomes[min(stack.deletions, len(stack.outcomes)) - 1][1]
                return stack
        return None

    def _cloudformation_DescribeStacks(self, params: dict[str, Any]) -> Any:  # noqa: N802
        stack = self._stack(params["StackName"])
        gone = stack is not None and stack.status == "DELETE_COMPLETE"
        if stack is None or (gone and params["StackName"] == stack.name):
            return "ValidationError", f"Stack with id {params['StackName']} does not exist"
        return {
            "Stacks": [
                {
                    "StackName": stack.name,
                    "StackId": stack.arn,
                    "StackStatus": stack.status,
                    "EnableTerminationProtection": stack.is_protected,
                }
            ]
        }

    def _cloudformation_DeleteStack(self, params: dict[str, Any]) -> Any:  # noqa: N802
        stack = self._stack(params["StackName"])
        assert stack is not None
        seconds, _ = stack.outcomes[min(stack.deletions, len(stack.outcomes) - 1)]
        stack.deletions += 1
        stack.status, stack.ends_at = "DELETE_IN_PROGRESS", self.now + seconds
        if self.on_delete is not None:
            self.on_delete(self)
        return {}

    def _cloudformation_DescribeStackEvents(self, params: dict[str, Any]) -> Any:  # noqa: N802
        stack = self._stack(params["StackName"])
        assert stack is not None

        def event(logical: str, physical: str, status: str, reason: str = "") -> dict[str, str]:
            return {
                "StackId": stack.arn,
                "LogicalResourceId": logical,
                "PhysicalResourceId": physical,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
            }

        return {
            "StackEvents": [
                event(stack.name, stack.arn, "DELETE_FAILED", "The following failed: NodeGuard"),
                event("NodeGuard", "nodes-of-voice", "DELETE_FAILED", stack.reason),
                event(stack.name, stack.arn, "DELETE_IN_PROGRESS"),
                event("Old", "old", "DELETE_FAILED", "of an earlier deletion"),
            ]
        }

    def _cloudformation_ListStackResources(self, params: dict[str, Any]) -> Any:  # noqa: N802
        stack = self._stack(params["StackName"])
        assert stack is not None
        return {"StackResourceSummaries": stack.resources}

    def _cloudformation_ListStacks(self, params: dict[str, Any]) -> Any:  # noqa: N802
        assert params["StackStatusFilter"] == ["DELETE_COMPLETE"]
        return {
            "StackSummaries": [
                {
                    "StackName": stack.name,
                    "StackId": stack.arn,
                    "StackStatus": stack.status,
                    "DeletionTime": datetime(2026, 1, 1, tzinfo=UTC),
                }
                for stack in self.stacks.values()
                if stack.status == "DELETE_COMPLETE"
            ]
        }

    def _ec2_DescribeInstances(self, params: dict[str, Any]) -> Any:  # noqa: N802
        found = [i for i in self.instances if i.state(self.now) != "terminated"]
        return {
            "Reservations": [
                {
                    "Instances": [
                        {
                            "InstanceId": i.id,
                            "State": {"Name": i.state(self.now)},
                            "Tags": [{"Key": k, "Value": v} for k, v in i.tags.items()],
                        }
                    ]
                }
                for i in found
            ]
        }

    def _ec2_TerminateInstances(self, params: dict[str, Any]) -> Any:  # noqa: N802
        for instance in self.instances:
            if instance.id in params["InstanceIds"]:
                instance.ends_at = min(instance.ends_at, self.now + 45)
        return {"TerminatingInstances": []}

    def _ec2_DescribeLaunchTemplates(self, params: dict[str, Any]) -> Any:  # noqa: N802
        return {"LaunchTemplates": []}

    def _ec2_DescribeNetworkInterfaces(self, params: dict[str, Any]) -> Any:  # noqa: N802
        return {"NetworkInterfaces": []}

    def _ec2_DescribeVolumes(self, params: dict[str, Any]) -> Any:  # noqa: N802
        return {"Volumes": []}

    def _ec2_DescribePlacementGroups(self, params: dict[str, Any]) -> Any:  # noqa: N802
        (name,) = params["GroupNames"]
        if name not in {r["PlacementGroup"] for r in self.reservations}:
            return "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
        return {"PlacementGroups": [{"GroupName": name, "GroupArn": group_arn(name)}]}

    def _ec2_DescribeCapacityReservations(self, params: dict[str, Any]) -> Any:  # noqa: N802
        (arns,) = [f["Values"] for f in params["Filters"] if f["Name"] == "placement-group-arn"]
        found = [r for r in self.reservations if group_arn(r["PlacementGroup"]) in arns]
        return {
            "CapacityReservations": [
                {"CapacityReservationId": r["Id"], "State": r["State"]} for r in found
            ]
        }

    def _ec2_DescribeVpcEndpointConnections(self, params: dict[str, Any]) -> Any:  # noqa: N802
        filters = {f["Name"]: f["Values"] for f in params["Filters"]}
        return {
            "VpcEndpointConnections": [
                connection
                for connection in self.connections
                if connection["ServiceId"] in filters["service-id"]
                and connection["VpcEndpointState"] in filters["vpc-endpoint-state"]
            ]
        }

    def _ec2_DescribeTransitGatewayVpcAttachments(self, params: dict[str, Any]) -> Any:  # noqa: N802
        (vpcs,) = [f["Values"] for f in params["Filters"] if f["Name"] == "vpc-id"]
        found = [a for a in self.attachments if a["VpcId"] in vpcs]
        return {"TransitGatewayVpcAttachments": found}

    def _ec2_DescribeVpnGateways(self, params: dict[str, Any]) -> Any:  # noqa: N802
        (vpcs,) = [f["Values"] for f in params["Filters"] if f["Name"] == "attachment.vpc-id"]
        return {
            "VpnGateways": [
                gateway
                for gateway in self.vpn_gateways
                if any(one["VpcId"] in vpcs for one in gateway["VpcAttachments"])
            ]
        }

    def _route53_ListResourceRecordSets(self, params: dict[str, Any]) -> Any:  # noqa: N802
        assert params["HostedZoneId"]
        return {"ResourceRecordSets": self.records, "IsTruncated": False, "MaxItems": "300"}

    def _eks_DescribeCluster(self, params: dict[str, Any]) -> Any:  # noqa: N802
        if not self.has_cluster:
            return "ResourceNotFoundException", "No cluster found"
        return {"cluster": {"name": params["name"]}}

    def _logs_DescribeLogGroups(self, params: dict[str, Any]) -> Any:  # noqa: N802
        prefix = params["logGroupNamePrefix"]
        found = [name for name in self.log_groups if name.startswith(prefix)]
        return {"logGroups": [{"logGroupName": name} for name in found]}

    def _logs_DeleteLogGroup(self, params: dict[str, Any]) -> Any:  # noqa: N802
        self.log_groups.remove(params["logGroupName"])
        return {}

    def _fsx_DescribeDataRepositoryTasks(self, params: dict[str, Any]) -> Any:  # noqa: N802
        filters = {f["Name"]: f["Values"] for f in params["Filters"]}
        found = sorted(k for k, v in self.tasks.items() if v in filters["task-lifecycle"])
        start = int(params.get("NextToken", 0))
        page: dict[str, Any] = {"DataRepositoryTasks": [{"TaskId": t} for t in found[start:][:1]]}
        return page | ({"NextToken": str(start + 1)} if len(found) > start + 1 else {})

    def _fsx_CancelDataRepositoryTask(self, params: dict[str, Any]) -> Any:  # noqa: N802
        return {"TaskId": params["TaskId"], "Lifecycle": "CANCELING"}

    def _sts_GetCallerIdentity(self, params: dict[str, Any]) -> Any:  # noqa: N802
        return {"Account": ACCOUNT}


def group_arn(name: str) -> str:
    """Return the ARN of a placement group."""
    return f"arn:aws:ec2:us-east-1:{ACCOUNT}:placement-group/{name}"


def _error(code: str, message: str) -> tuple[Any, dict[str, Any]]:
    body = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
    return SimpleNamespace(status_code=400), body


@cache
def clients() -> Clients:
    """Return a client of each service."""
    return Clients(**{name: _client(name) for name in SERVICES})


def _client(service: str) -> Any:
    client = boto3.client(
        service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )

    def answer(model: Any, params: Any, **_: Any) -> tuple[Any, dict[str, Any]]:
        return World.last.answer(service, model.name)

    def remember(params: dict[str, Any], model: Any, **_: Any) -> None:
        World.last.remember(model.name, params)

    client.meta.events.register(f"provide-client-params.{service}.*", remember)
    client.meta.events.register(f"before-call.{service}.*", answer)
    return client
