"""The teardown: the Workload stack, then the instances of Karpenter, then what is left behind.

The Kubernetes API has no public endpoint, so nothing here talks to it. The Workload stack's
deletion does, through CDK's handler in the VPC: it takes scalers, pods and NodePools away in
order, and Karpenter drains and terminates its nodes. From outside one can see the stack and the
instances, and, when their time is over, terminate the instances.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sonic_eks.lifecycle.budget import (
    CUSTOM_RESOURCE_SECONDS,
    INSTANCE_STOP_SECONDS,
    teardown_seconds,
)
from sonic_eks.names import Names
from sonic_eks.progress import LineReporter
from sonic_eks.teardown import karpenter, leftovers, stacks
from sonic_eks.teardown.aws import Clients, TeardownError
from sonic_eks.teardown.blockers import blockers
from sonic_eks.teardown.karpenter import Instance
from sonic_eks.teardown.stacks import StackState

POLL_SECONDS = 15
# One deletion, one after the nodes are gone, one after they were terminated from here.
_MOST_DELETIONS = 3


@dataclass
class Clock:
    """Time that passes; tests put their own in place.

    Attributes
    ----------
    now : callable
        Seconds that only grow.
    sleep : callable
        Waits for seconds.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass
class Outcome:
    """What a teardown did.

    Attributes
    ----------
    removed : list of str
        What was deleted or cancelled.
    terminated : list of str
        Instances that did not end by themselves in time.
    kept : list of str
        What deleted stacks kept, for a person to decide about.
    """

    removed: list[str] = field(default_factory=list)
    terminated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


class Teardown:
    """Removes a deployment's workload and nodes; may be stopped and run again.

    Parameters
    ----------
    deployment : str
        Name of the deployment.
    drain_seconds : int
        How long the drain of a node may take.
    clients : Clients
        AWS clients of the deployment's region.
    reporter : LineReporter
        Hears how far it is.
    keeps_stacks : bool
        Whether the other stacks stay, so that nothing need be asked of what keeps them.
    clock : Clock
        The time.
    """

    def __init__(
        self,
        deployment: str,
        *,
        drain_seconds: int,
        clients: Clients,
        reporter: LineReporter,
        keeps_stacks: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._names = Names(deployment)
        self._stack_name = self._names.stacks["workload"]
        self._limit_seconds = teardown_seconds(drain_seconds)
        self._clients = clients
        self._reporter = reporter
        self._keeps_stacks = keeps_stacks
        self._clock = clock or Clock()
        self._outcome = Outcome()
        self._deletions = 0

    def has_work(self) -> bool:
        """Return whether there is a workload or a node to remove.

        Raises
        ------
        TeardownError
            When the Workload stack cannot be deleted now, or another one could not be, later.
        """
        self._refuse_blockers()
        stack = self._state()
        if stack is None:
            return bool(self._instances())
        if stack.is_protected:
            raise TeardownError(
                f"{self._stack_name} has termination protection; deploy with"
                " deployment.terminationProtection: false, then try again"
            )
        if stack.is_busy and not stack.is_deleting:
            raise TeardownError(f"{self._stack_name} is {stack.status}; try again when it is done")
        return True

    def run(self) -> Outcome:
        """Remove everything; return when nothing of Karpenter is left.

        Raises
        ------
        TeardownError
            When something cannot be removed; what Karpenter started is terminated before.
        """
        if self.has_work():
            self._remove_workload()
        clients, names, done = self._clients, self._names, self._outcome.removed
        done += karpenter.delete_launch_templates(clients.ec2, names.cluster)
        done += leftovers.cancel_tasks(clients, names)
        done += leftovers.delete_interfaces(clients.ec2, names.cluster)
        remains = leftovers.remains(clients, names)
        done += leftovers.delete_log_groups(clients.logs, names, remains)
        self._outcome.kept = leftovers.kept(clients.ec2, names, remains)
        return self._outcome

    def _refuse_blockers(self) -> None:
        found = [] if self._keeps_stacks else blockers(self._clients, self._names)
        if found:
            raise TeardownError(
                f"a destroy would fail, so nothing was deleted: {'; '.join(found)}; to remove the"
                " workload alone, give --keep-stacks"
            )

    def _remove_workload(self) -> None:
        existed = self._state() is not None
        if not self._wait_for_karpenter():
            self._terminate()
            self._wait_for_stack()
        if existed:
            self._outcome.removed.append(f"stack {self._stack_name}")

    def _wait_for_karpenter(self) -> bool:
        """Delete the stack and wait; return whether stack and nodes are gone in time."""
        deadline = self._clock.now() + self._limit_seconds
        while True:
            stack, left = self._state(), self._instances()
            if stack is None and not left:
                return True
            if self._clock.now() >= deadline:
                return False
            # A deletion that failed while nodes drain is tried again when they are gone.
            if stack is not None and not stack.is_deleting and not (left and self._deletions):
                self._delete(stack)
            self._show(stack, left)
            self._clock.sleep(POLL_SECONDS)

    def _terminate(self) -> None:
        """Terminate what Karpenter did not, until nothing is left."""
        deadline = self._clock.now() + INSTANCE_STOP_SECONDS
        while left := self._instances():
            if self._clock.now() >= deadline:
                names = ", ".join(str(instance) for instance in left[:5])
                raise TeardownError(
                    f"{len(left)} instances are still there after they were terminated: {names};"
                    " if Karpenter starts new ones, delete its NodePools, then try again"
                )
            asked = karpenter.terminate(self._clients.ec2, left)
            self._outcome.terminated += [
                instance.id for instance in asked if instance.id not in self._outcome.terminated
            ]
            self._show(self._state(), left)
            self._clock.sleep(POLL_SECONDS)

    def _wait_for_stack(self) -> None:
        """Wait for the stack alone: its handlers answer within CloudFormation's limit."""
        deadline = self._clock.now() + CUSTOM_RESOURCE_SECONDS
        while (stack := self._state()) is not None:
            if self._clock.now() >= deadline:
                raise TeardownError(
                    f"{self._stack_name} is {stack.status} after an hour; no instance of Karpenter"
                    " is left; look at its events, then try again"
                )
            if not stack.is_deleting:
                self._delete(stack)
            self._show(stack, [])
            self._clock.sleep(POLL_SECONDS)

    def _delete(self, stack: StackState) -> None:
        if self._deletions >= _MOST_DELETIONS:
            reasons = stacks.failures(self._clients.cloudformation, stack)
            why = reasons[0] if reasons else "no reason given"
            raise TeardownError(f"{self._stack_name} cannot be deleted: {why}")
        self._deletions += 1
        stacks.delete(self._clients.cloudformation, stack)

    def _state(self) -> StackState | None:
        return stacks.state_of(self._clients.cloudformation, self._stack_name)

    def _instances(self) -> list[Instance]:
        return karpenter.instances(self._clients.ec2, self._names.cluster)

    def _show(self, stack: StackState | None, left: list[Instance]) -> None:
        parts = [f"{len(left)} of Karpenter's instances left"]
        if stack is not None:
            open_resources, all_resources = stacks.remaining(self._clients.cloudformation, stack)
            parts.insert(0, f"{self._stack_name}: {open_resources} of {all_resources} left")
        self._reporter.show(f"{', '.join(parts)}; at most {self._limit_seconds // 60} min")
