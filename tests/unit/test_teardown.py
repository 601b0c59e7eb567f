"""A teardown in an account where stacks take their time, nodes drain, and things fail."""

from __future__ import annotations

import pytest

from sonic_eks.teardown.aws import TeardownError
from sonic_eks.teardown.run import Outcome, Teardown
from tests.unit.teardown_world import NEVER, FakeInstance, FakeStack, World

OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "owned"}
# Grace of 780 s, and a NodePool that says 2,400 s.
DRAIN_SECONDS = 2400
# The drain, ten minutes for an instance to end, twenty for steps that wait for no pod.
LIMIT_SECONDS = 4200


def node(name: str = "i-1", ends_at: float = NEVER, tags: dict[str, str] = OWN) -> FakeInstance:
    """Return an instance of the deployment."""
    return FakeInstance(name, tags, ends_at)


def workload(*outcomes: tuple[float, str], status: str = "CREATE_COMPLETE") -> FakeStack:
    """Return the Workload stack of the deployment."""
    return FakeStack(
        "voice-workload",
        status=status,
        outcomes=list(outcomes) or [(60, "DELETE_COMPLETE")],
        resources=[
            {"ResourceType": "Custom::NodeGuard", "ResourceStatus": "CREATE_COMPLETE"},
            {"ResourceType": "Custom::X", "ResourceStatus": "DELETE_COMPLETE"},
        ],
    )


def teardown(world: World) -> Teardown:
    """Return a teardown of the deployment `voice`."""
    return Teardown(
        "voice",
        drain_seconds=DRAIN_SECONDS,
        clients=world.clients,
        reporter=world,
        clock=world.clock,
    )


def test_the_stack_goes_and_the_nodes_end_by_themselves() -> None:
    world = World(workload((300, "DELETE_COMPLETE")), instances=(node(ends_at=200),))
    outcome = teardown(world).run()
    assert outcome == Outcome(removed=["stack voice-workload"])
    assert len(world.asked("DeleteStack")) == 1
    assert world.asked("TerminateInstances") == []
    assert 300 <= world.now < 330
    assert (
        world.said[0]
        == "voice-workload: 1 of 2 left, 1 of Karpenter's instances left; at most 70 min"
    )


def test_nothing_to_do_is_done_at_once() -> None:
    world = World()
    assert not teardown(world).has_work()
    assert teardown(world).run() == Outcome()
    assert world.now == 0


def test_nodes_that_outlive_their_stack_are_waited_for() -> None:
    world = World(workload((30, "DELETE_COMPLETE")), instances=(node(ends_at=1000),))
    outcome = teardown(world).run()
    assert world.now >= 1000
    assert outcome.terminated == []


def test_nodes_without_a_stack_are_work() -> None:
    world = World(instances=(node(ends_at=100),))
    assert teardown(world).has_work()
    assert teardown(world).run() == Outcome()
    assert world.now >= 100


def test_a_deletion_that_failed_is_tried_again_when_the_nodes_are_gone() -> None:
    stack = workload((900, "DELETE_FAILED"), (60, "DELETE_COMPLETE"))
    world = World(stack, instances=(node(ends_at=2000),))
    times: list[float] = []
    world.on_delete = lambda world: times.append(world.now)
    assert teardown(world).run().removed == ["stack voice-workload"]
    assert times[0] == 0
    assert 2000 <= times[1] < 2030
    assert len(times) == 2


def test_a_deletion_that_is_going_on_is_joined() -> None:
    stack = workload(status="DELETE_IN_PROGRESS")
    stack.deletions, stack.ends_at = 1, 120
    world = World(stack)
    assert teardown(world).run().removed == ["stack voice-workload"]
    assert world.asked("DeleteStack") == []


def test_a_deletion_that_failed_before_is_begun_anew() -> None:
    world = World(workload(status="DELETE_FAILED"))
    assert teardown(world).run().removed == ["stack voice-workload"]
    assert len(world.asked("DeleteStack")) == 1


def test_a_stack_that_never_goes_ends_with_the_reason_that_cloudformation_gives() -> None:
    world = World(workload((60, "DELETE_FAILED")))
    with pytest.raises(TeardownError) as caught:
        teardown(world).run()
    assert str(caught.value) == (
        "voice-workload cannot be deleted: NodeGuard: instances of Karpenter are left: i-1"
    )
    assert caught.value.exit_status == 1
    assert len(world.asked("DeleteStack")) == 3


def test_a_node_that_does_not_end_in_time_is_terminated_and_no_other() -> None:
    strangers = (
        node("i-2", tags=OWN | {"kubernetes.io/cluster/voice": "shared"}),
        node("i-3", tags={"kubernetes.io/cluster/voice": "owned", "eks:nodegroup-name": "gpu"}),
        node(
            "i-4",
            tags={**OWN, "kubernetes.io/cluster/voice": "", "kubernetes.io/cluster/b": "owned"},
        ),
    )
    stack = workload((900, "DELETE_FAILED"), (60, "DELETE_COMPLETE"))
    world = World(stack, instances=(node("i-1"), *strangers))
    outcome = teardown(world).run()
    assert outcome.terminated == ["i-1"]
    assert outcome.removed == ["stack voice-workload"]
    assert {i for call in world.asked("TerminateInstances") for i in call["InstanceIds"]} == {"i-1"}
    assert LIMIT_SECONDS <= world.now < LIMIT_SECONDS + 300


def test_no_node_is_terminated_before_its_time() -> None:
    world = World(workload((60, "DELETE_COMPLETE")), instances=(node(ends_at=LIMIT_SECONDS - 60),))
    assert teardown(world).run().terminated == []


def test_a_node_that_comes_back_is_reported_after_all_that_ended() -> None:
    world = World(instances=(node("i-1"),))
    counter = iter(range(2, 10_000))
    terminate = world._ec2_TerminateInstances

    def relaunch(params: dict[str, list[str]]) -> object:
        world.instances.append(node(f"i-{next(counter)}"))
        return terminate(params)

    world._ec2_TerminateInstances = relaunch  # type: ignore[method-assign]
    with pytest.raises(TeardownError, match="if Karpenter starts new ones, delete its NodePools"):
        teardown(world).run()
    # Ten minutes of trying, not more.
    assert world.now < LIMIT_SECONDS + 600 + 30


def test_a_stack_that_hangs_is_given_cloudformations_hour() -> None:
    world = World(workload((NEVER, "DELETE_COMPLETE")))
    with pytest.raises(TeardownError, match="voice-workload is DELETE_IN_PROGRESS after an hour"):
        teardown(world).run()
    assert LIMIT_SECONDS + 3600 <= world.now < LIMIT_SECONDS + 3600 + 60


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "CREATE_IN_PROGRESS"])
def test_a_stack_at_work_is_left_alone(status: str) -> None:
    world = World(workload(status=status))
    with pytest.raises(TeardownError, match=f"voice-workload is {status}; try again"):
        teardown(world).run()
    assert world.asked("DeleteStack") == []


def test_a_protected_stack_is_left_alone() -> None:
    stack = workload()
    stack.is_protected = True
    world = World(stack)
    with pytest.raises(TeardownError, match=r"deployment\.terminationProtection: false"):
        teardown(world).run()
    assert world.asked("DeleteStack") == []


def test_tasks_of_the_file_system_are_cancelled() -> None:
    weights = FakeStack(
        "voice-weights",
        resources=[
            {
                "ResourceType": "AWS::FSx::FileSystem",
                "ResourceStatus": "CREATE_COMPLETE",
                "PhysicalResourceId": "fs-0123456789abcdef0",
            }
        ],
    )
    world = World(weights)
    world.tasks = {
        "task-0123456789abcdef0": "EXECUTING",
        "task-0123456789abcdef1": "PENDING",
        "task-0123456789abcdef2": "SUCCEEDED",
    }
    assert teardown(world).run().removed == [
        "data repository task task-0123456789abcdef0",
        "data repository task task-0123456789abcdef1",
    ]
    world.errors["CancelDataRepositoryTask"] = ("DataRepositoryTaskEnded", "over")
    teardown(world).run()


def destroyed() -> World:
    """An account after the stacks of `voice` were destroyed."""
    world = World(
        FakeStack(
            "voice-network",
            status="DELETE_COMPLETE",
            resources=[
                {
                    "ResourceType": "AWS::Lambda::Function",
                    "ResourceStatus": "DELETE_COMPLETE",
                    "PhysicalResourceId": "voice-network-Custom-x1",
                }
            ],
        ),
        FakeStack(
            "voice-data",
            status="DELETE_COMPLETE",
            resources=[
                {
                    "ResourceType": "AWS::S3::Bucket",
                    "ResourceStatus": "DELETE_SKIPPED",
                    "PhysicalResourceId": "voice-data-weights-x2",
                },
                {"ResourceType": "AWS::KMS::Alias", "ResourceStatus": "DELETE_COMPLETE"},
            ],
        ),
    )
    world.has_cluster = False
    world.log_groups = [
        "/aws/eks/voice/cluster",
        "/aws/eks/voice-eu/cluster",
        "/aws/lambda/voice-network-Custom-x1",
        "/aws/lambda/voice-network-Custom-x1-of-another",
    ]
    return world


def test_log_groups_that_came_back_are_deleted_and_what_is_kept_is_named() -> None:
    world = destroyed()
    outcome = teardown(world).run()
    assert outcome.removed == [
        "log group /aws/eks/voice/cluster",
        "log group /aws/lambda/voice-network-Custom-x1",
    ]
    assert world.log_groups == [
        "/aws/eks/voice-eu/cluster",
        "/aws/lambda/voice-network-Custom-x1-of-another",
    ]
    assert outcome.kept == ["AWS::S3::Bucket voice-data-weights-x2"]


def test_the_log_group_of_a_cluster_that_exists_is_left_alone() -> None:
    world = destroyed()
    world.has_cluster = True
    assert teardown(world).run().removed == ["log group /aws/lambda/voice-network-Custom-x1"]


def test_log_groups_of_a_stack_that_exists_are_left_alone() -> None:
    world = destroyed()
    world.stacks["voice-network"].status = "CREATE_COMPLETE"
    world.stacks["voice-cluster"] = FakeStack("voice-cluster")
    assert teardown(world).run().removed == []


@pytest.mark.parametrize("operation", ["DescribeStacks", "DescribeInstances", "DeleteStack"])
def test_a_refusal_of_aws_is_one_line_with_status_1(operation: str) -> None:
    world = World(workload())
    world.errors[operation] = ("AccessDenied", "not\nallowed")
    with pytest.raises(TeardownError) as caught:
        teardown(world).run()
    assert "AccessDenied" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 1
