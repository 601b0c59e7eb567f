"""Handler of a custom resource whose deletion waits until Karpenter's instances are gone.

It runs inline in Lambda (at most 4,096 characters), with the standard library and boto3, and
changes nothing.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import boto3

ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]
POLL_SECONDS = 15
# Kept for the answer to CloudFormation.
RESERVE_MILLISECONDS = 60_000


def handler(event: dict[str, Any], context: Any) -> None:
    """Answer at once, or for a deletion when no instance is left or time is up."""
    properties = event["ResourceProperties"]
    status, reason = "SUCCESS", "done"
    if event["RequestType"] == "Delete":
        try:
            left = wait(boto3.client("ec2"), properties["ClusterName"], context)
        except Exception as error:
            status, reason = "FAILED", f"instances of Karpenter cannot be listed: {error}"
        else:
            if left:
                status, reason = "FAILED", complaint(left, properties["Advice"])
    answer = {
        "Status": status,
        "Reason": reason,
        "PhysicalResourceId": f"nodes-of-{properties['ClusterName']}",
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    print(json.dumps(answer))  # noqa: T201 - the function's log
    # An empty content type: CloudFormation signs the address for one.
    request = urllib.request.Request(
        event["ResponseURL"],
        data=json.dumps(answer).encode(),
        headers={"content-type": ""},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=30):
        pass


def wait(ec2: Any, cluster: str, context: Any) -> list[str]:
    """Return the instances that are left when none is, or when the function's time is up."""
    while True:
        left = instances(ec2, cluster)
        spare = context.get_remaining_time_in_millis() - RESERVE_MILLISECONDS
        if not left or spare < POLL_SECONDS * 1000:
            return left
        time.sleep(POLL_SECONDS)


def instances(ec2: Any, cluster: str) -> list[str]:
    """Return the ids of instances that carry the tags of Karpenter and of the cluster."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]},
            {"Name": f"tag:kubernetes.io/cluster/{cluster}", "Values": ["owned"]},
            {"Name": "instance-state-name", "Values": ALIVE},
        ]
    )
    return [
        instance["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]


def complaint(left: list[str], advice: str) -> str:
    """Return why the deletion failed; CloudFormation shows the first few hundred characters."""
    more = "" if len(left) <= 5 else f" and {len(left) - 5} more"
    return f"instances of Karpenter are left: {', '.join(left[:5])}{more}; {advice}"
