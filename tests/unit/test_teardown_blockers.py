"""What others hold on to stops a teardown before anything is deleted."""

from __future__ import annotations

import pytest

from sonic_eks.errors import PROBLEM_FOUND
from sonic_eks.teardown.aws import TeardownError
from sonic_eks.teardown.run import Teardown
from tests.unit.teardown_world import FakeInstance, FakeStack, World

OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "owned"}
GROUP, SERVICE = "voice-cluster-GpuPlacement-x1", "vpce-svc-0a1b2c3d4e5f60718"
WRITES = ("DeleteStack", "TerminateInstances", "CancelDataRepositoryTask", "DeleteLogGroup")


def resource(kind: str, physical: str, status: str = "CREATE_COMPLETE") -> dict[str, str]:
    return {"ResourceType": kind, "PhysicalResourceId": physical, "ResourceStatus": status}


def account(*, status: str = "CREATE_COMPLETE") -> World:
    """Return an account with a whole deployment of the name `voice`."""
    return World(
        FakeStack("voice-workload"),
        FakeStack(
            "voice-cluster",
            status=status,
            resources=[resource("AWS::EC2::PlacementGroup", GROUP)],
        ),
        FakeStack(
            "voice-edge",
            status=status,
            resources=[resource("AWS::EC2::VPCEndpointService", SERVICE)],
        ),
        instances=(FakeInstance("i-1", OWN, ends_at=50),),
    )


def reservation(state: str, group: str = GROUP) -> dict[str, str]:
    return {"Id": "cr-0a1b2c3d4e5f60718", "State": state, "PlacementGroup": group}


def connection(state: str, service: str = SERVICE) -> dict[str, str]:
    return {
        "ServiceId": service,
        "VpcEndpointId": "vpce-0f0e1d2c3b4a59687",
        "VpcEndpointOwner": "444455556666",
        "VpcEndpointState": state,
    }


def teardown(world: World, *, keeps_stacks: bool = False) -> Teardown:
    return Teardown(
        "voice",
        drain_seconds=60,
        clients=world.clients,
        reporter=world,
        keeps_stacks=keeps_stacks,
        clock=world.clock,
    )


def refusal(world: World) -> str:
    with pytest.raises(TeardownError) as caught:
        teardown(world).run()
    assert caught.value.exit_status == PROBLEM_FOUND == 1
    assert str(caught.value).isprintable()
    assert [name for name, _ in world.calls if name in WRITES] == []
    return str(caught.value)


@pytest.mark.parametrize("state", ["active", "pending", "scheduled", "assessing", "delayed"])
def test_a_reservation_in_the_placement_group_stops_it(state: str) -> None:
    world = account()
    world.reservations = [reservation(state)]
    assert f"Capacity Reservation cr-0a1b2c3d4e5f60718 ({state})" in refusal(world)
    assert "aws ec2 cancel-capacity-reservation" in refusal(world)


@pytest.mark.parametrize("state", ["available", "pendingAcceptance", "pending"])
def test_a_connection_to_the_endpoint_service_stops_it(state: str) -> None:
    world = account()
    world.connections = [connection(state)]
    assert f"endpoint vpce-0f0e1d2c3b4a59687 of account 444455556666 ({state})" in refusal(world)
    assert "aws ec2 reject-vpc-endpoint-connections" in refusal(world)


def test_all_of_them_are_listed_at_once() -> None:
    world = account()
    world.reservations = [reservation("active")]
    world.connections = [connection("available")]
    said = refusal(world)
    assert "cr-0a1b2c3d4e5f60718" in said
    assert "vpce-0f0e1d2c3b4a59687" in said


def test_it_stops_before_a_person_is_asked() -> None:
    world = account()
    world.reservations = [reservation("active")]
    with pytest.raises(TeardownError):
        teardown(world).has_work()


def test_it_stops_without_a_workload_too_as_a_destroy_would_follow() -> None:
    world = account()
    del world.stacks["voice-workload"]
    world.instances.clear()
    world.connections = [connection("available")]
    refusal(world)


@pytest.mark.parametrize("state", ["cancelled", "expired", "failed"])
def test_a_reservation_that_has_ended_stops_nothing(state: str) -> None:
    world = account()
    world.reservations = [reservation(state)]
    assert teardown(world).run().removed == ["stack voice-workload"]


@pytest.mark.parametrize("state", ["rejected", "deleted", "failed"])
def test_a_connection_that_has_ended_stops_nothing(state: str) -> None:
    world = account()
    world.connections = [connection(state)]
    assert teardown(world).run().removed == ["stack voice-workload"]


def test_those_of_another_deployment_stop_nothing() -> None:
    world = account()
    world.reservations = [reservation("active", "voice-two-cluster-GpuPlacement-y1")]
    world.connections = [connection("available", "vpce-svc-0000000000000000a")]
    assert teardown(world).run().removed == ["stack voice-workload"]


def test_a_destroyed_deployment_has_nothing_to_hold_on_to() -> None:
    world = account(status="DELETE_COMPLETE")
    world.reservations = [reservation("active")]
    world.connections = [connection("available")]
    assert teardown(world).run().removed == ["stack voice-workload"]


def test_they_may_stay_where_the_stacks_do() -> None:
    world = account()
    world.reservations = [reservation("active")]
    world.connections = [connection("available")]
    outcome = teardown(world, keeps_stacks=True).run()
    assert outcome.removed == ["stack voice-workload"]
    assert world.asked("DescribeCapacityReservations") == []
