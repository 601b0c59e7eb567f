"""What others hold on to, and a destroy would fail on half-way: found before anything goes."""

from __future__ import annotations

from functools import partial
from typing import Any

from sonic_eks.names import Names
from sonic_eks.teardown import stacks
from sonic_eks.teardown.aws import Clients, call, pages

# EC2 API reference, CapacityReservation, state: those that hold no capacity any more. An active one
# keeps its placement group (EC2 user guide, "Use Capacity Reservations with placement groups").
_ENDED = ("cancelled", "expired", "failed", "payment-failed", "unsupported")

# EC2 API reference, DeleteVpcEndpointServiceConfigurations: what keeps an endpoint service;
# "pending" is on its way from the second to the first.
_CONNECTED = ["available", "pending", "pendingAcceptance"]

# EC2 API reference, TransitGatewayVpcAttachment, state: those that leave a VPC alone.
_DETACHED = ("deleted", "deleting", "failed", "failing", "rejected", "rejecting")

# Route 53 API reference, DeleteHostedZone: the records that every zone has, and goes with.
_OF_THE_ZONE = ("NS", "SOA")


def blockers(clients: Clients, names: Names) -> list[str]:
    """Return what keeps the deployment's stacks from being deleted, and what to do about each.

    Parameters
    ----------
    clients : Clients
        AWS clients of the deployment's region.
    names : Names
        Names of the deployment.
    """
    found = []
    for vpc in _physical(clients, names.stacks["network"], "AWS::EC2::VPC"):
        found += _gateways(clients.ec2, vpc)
    for group in _physical(clients, names.stacks["cluster"], "AWS::EC2::PlacementGroup"):
        found += _reservations(clients.ec2, group)
    for service in _physical(clients, names.stacks["edge"], "AWS::EC2::VPCEndpointService"):
        found += _connections(clients.ec2, service)
    own = _physical(clients, names.stacks["edge"], "AWS::Route53::RecordSet")
    for zone in _physical(clients, names.stacks["edge"], "AWS::Route53::HostedZone"):
        found += _records(clients.route53, zone, own)
    return found


def _physical(clients: Clients, stack_name: str, kind: str) -> list[str]:
    """Return the physical ids of a type in a stack that may not exist."""
    stack = stacks.state_of(clients.cloudformation, stack_name)
    if stack is None:
        return []
    return [
        resource["PhysicalResourceId"]
        for resource in stacks.resources_of(clients.cloudformation, stack.id)
        if resource["ResourceType"] == kind
        and resource.get("PhysicalResourceId")
        and resource["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def _reservations(ec2: Any, group: str) -> list[str]:
    answer = call(
        f"placement group {group}",
        partial(ec2.describe_placement_groups, GroupNames=[group]),
        missing=("InvalidPlacementGroup.Unknown",),
    )
    arns = [item["GroupArn"] for item in answer["PlacementGroups"]] if answer else []
    if not arns:
        return []
    filters = [{"Name": "placement-group-arn", "Values": arns}]
    return [
        f"Capacity Reservation {item['CapacityReservationId']} ({item['State']}) is in placement"
        f" group {group}: cancel it (aws ec2 cancel-capacity-reservation)"
        for item in pages(
            ec2, "describe_capacity_reservations", "CapacityReservations", Filters=filters
        )
        if item["State"] not in _ENDED
    ]


def _connections(ec2: Any, service: str) -> list[str]:
    filters = [
        {"Name": "service-id", "Values": [service]},
        {"Name": "vpc-endpoint-state", "Values": _CONNECTED},
    ]
    return [
        f"endpoint {item['VpcEndpointId']} of account {item['VpcEndpointOwner']}"
        f" ({item['VpcEndpointState']}) is connected to {service}: its owner deletes it, or you"
        " reject it (aws ec2 reject-vpc-endpoint-connections)"
        for item in pages(
            ec2, "describe_vpc_endpoint_connections", "VpcEndpointConnections", Filters=filters
        )
    ]


def _gateways(ec2: Any, vpc: str) -> list[str]:
    """Return the ways to callers outside that somebody attached to the deployment's VPC."""
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    attachments = pages(
        ec2,
        "describe_transit_gateway_vpc_attachments",
        "TransitGatewayVpcAttachments",
        Filters=filters,
    )
    found = [
        f"transit gateway attachment {item['TransitGatewayAttachmentId']} ({item['State']}) is in"
        f" {vpc}: delete it (aws ec2 delete-transit-gateway-vpc-attachment)"
        for item in attachments
        if item["State"] not in _DETACHED
    ]
    attached = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    answer = call("describe vpn gateways", partial(ec2.describe_vpn_gateways, Filters=attached))
    return found + [
        f"virtual private gateway {item['VpnGatewayId']} is attached to {vpc}: detach it (aws ec2"
        " detach-vpn-gateway)"
        for item in answer["VpnGateways"]
        if any(
            one["VpcId"] == vpc and one["State"] in ("attached", "attaching")
            for one in item.get("VpcAttachments", ())
        )
    ]


def _records(route53: Any, zone: str, own: list[str]) -> list[str]:
    """Return the records in the deployment's private zone that are not its own."""
    names = {name.rstrip(".").lower() for name in own}
    sets = pages(route53, "list_resource_record_sets", "ResourceRecordSets", HostedZoneId=zone)
    return [
        f"record {item['Name']} ({item['Type']}) is in hosted zone {zone}: delete it (aws route53"
        " change-resource-record-sets)"
        for item in sets
        if item["Type"] not in _OF_THE_ZONE and item["Name"].rstrip(".").lower() not in names
    ]
