"""What others hold on to stops a teardown before anything is deleted."""

from __future__ import annotations

import pytest

from sonic_eks.errors import PROBLEM_FOUND
from sonic_eks.teardown.aws import TeardownError
from sonic_eks.teardown.run import Teardown
from tests.synth import ROOT
from tests.unit.teardown_world import FakeInstance, FakeStack, World

OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "owned"}
VPC, ZONE = "vpc-0a1b2c3d4e5f60718", "Z0123456789ABCDEFGHIJ"
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
            resources=[
                resource("AWS::EC2::VPCEndpointService", SERVICE),
                resource("AWS::Route53::HostedZone", ZONE),
                resource("AWS::Route53::RecordSet", "sonic.voice.internal"),
            ],
        ),
        FakeStack("voice-network", status=status, resources=[resource("AWS::EC2::VPC", VPC)]),
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


def attachment(state: str, vpc: str = VPC) -> dict[str, str]:
    return {"TransitGatewayAttachmentId": "tgw-attach-0a1b", "VpcId": vpc, "State": state}


def vpn_gateway(state: str, vpc: str = VPC) -> dict[str, object]:
    return {"VpnGatewayId": "vgw-0a1b", "VpcAttachments": [{"VpcId": vpc, "State": state}]}


def record(kind: str, name: str) -> dict[str, str]:
    return {"Name": name, "Type": kind}


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


@pytest.mark.parametrize("state", ["available", "pending", "pendingAcceptance", "modifying"])
def test_a_transit_gateways_attachment_to_the_vpc_stops_it(state: str) -> None:
    world = account()
    world.attachments = [attachment(state)]
    assert f"transit gateway attachment tgw-attach-0a1b ({state}) is in {VPC}" in refusal(world)
    assert "aws ec2 delete-transit-gateway-vpc-attachment" in refusal(world)


@pytest.mark.parametrize("state", ["attached", "attaching"])
def test_a_virtual_private_gateway_on_the_vpc_stops_it(state: str) -> None:
    world = account()
    world.vpn_gateways = [vpn_gateway(state)]
    assert f"virtual private gateway vgw-0a1b is attached to {VPC}" in refusal(world)
    assert "aws ec2 detach-vpn-gateway" in refusal(world)


def test_a_record_of_somebody_else_in_the_private_zone_stops_it() -> None:
    world = account()
    world.records = [
        record("NS", "voice.internal."),
        record("SOA", "voice.internal."),
        record("A", "sonic.voice.internal."),
        record("CNAME", "other.voice.internal."),
    ]
    said = refusal(world)
    assert f"record other.voice.internal. (CNAME) is in hosted zone {ZONE}" in said
    assert "sonic.voice.internal. " not in said


def test_what_no_longer_holds_the_vpc_or_the_zone_stops_nothing() -> None:
    world = account()
    world.attachments = [attachment("deleted"), attachment("available", "vpc-0000000000000000a")]
    world.vpn_gateways = [
        vpn_gateway("detached"),
        vpn_gateway("attached", "vpc-0000000000000000a"),
    ]
    world.records = [record("NS", "voice.internal."), record("A", "Sonic.voice.internal.")]
    assert teardown(world).run().removed == ["stack voice-workload"]


def test_the_page_names_every_permission_that_it_takes() -> None:
    world = account()
    world.reservations = [reservation("cancelled")]
    world.log_groups = ["/aws/eks/voice/cluster"]
    teardown(world).run()
    page = (ROOT / "docs" / "lifecycle.md").read_text()
    (words,) = [part for part in page.split("\n\n") if part.startswith("It needs `cloudform")]
    asked = {name for name, _ in world.calls}
    assert len(asked) > 10
    # Everybody may ask who they are (AWS STS API reference, GetCallerIdentity).
    missing = {name for name in asked - {"GetCallerIdentity"} if name not in words}
    assert missing == set()


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
