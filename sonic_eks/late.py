"""Values that exist only after a deployment, and their place in rendered manifests.

A manifest is rendered once, with a marker for each such value. The Workload stack replaces the
markers by CloudFormation references, `sonic-eks render --outputs` by the values of
`cdk deploy --outputs-file`; what lies in ``DIR/k8s`` keeps the markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from sonic_eks.errors import SonicEksError, shown


class Late(StrEnum):
    """A value that a stack gives out under this name as an output."""

    ACCOUNT = "AccountId"
    VPC = "VpcId"
    CLUSTER_SECURITY_GROUP = "ClusterSecurityGroupId"
    GPU_SUBNET = "GpuSubnetId"
    SERVING_SUBNET = "ServingSubnetId"
    PLACEMENT_GROUP = "PlacementGroupId"
    FILE_SYSTEM = "FileSystemId"
    FILE_SYSTEM_DNS_NAME = "FileSystemDnsName"
    FILE_SYSTEM_MOUNT_NAME = "FileSystemMountName"
    TARGET_GROUP = "TargetGroupArn"

    @property
    def marker(self) -> str:
        """The text that stands for the value in a rendered manifest."""
        return f"<<known-after-deploy:{self.value}>>"


_PATTERNS = {
    Late.ACCOUNT: r"\d{12}",
    Late.VPC: r"vpc-[0-9a-z]+",
    Late.CLUSTER_SECURITY_GROUP: r"sg-[0-9a-z]+",
    Late.GPU_SUBNET: r"subnet-[0-9a-z]+",
    Late.SERVING_SUBNET: r"subnet-[0-9a-z]+",
    Late.PLACEMENT_GROUP: r"pg-[0-9a-z]+",
    Late.FILE_SYSTEM: r"fs-[0-9a-z]+",
    Late.FILE_SYSTEM_DNS_NAME: r"fs-[0-9a-z]+\.fsx\.[a-z0-9.-]+",
    Late.FILE_SYSTEM_MOUNT_NAME: r"[0-9A-Za-z]+",
    Late.TARGET_GROUP: r"arn:[a-z-]+:elasticloadbalancing:[a-z0-9-]+:\d{12}:targetgroup/[\w/-]+",
}


def is_value_of(value: Late, text: str) -> bool:
    """Tell whether `text` has the shape that AWS gives such a value."""
    return re.fullmatch(_PATTERNS[value], text, re.ASCII) is not None


_MARKER = re.compile(r"<<known-after-deploy:(\w+)>>")


def resolve(document: Any, value_of: Callable[[Late], str]) -> Any:
    """Return a copy of `document` with every marker replaced.

    Parameters
    ----------
    document : object
        Nested mappings, lists and scalars, as a manifest is.
    value_of : callable
        Gives the value, or a CloudFormation token, for a `Late`.

    Raises
    ------
    SonicEksError
        For a marker of a name that is no `Late`.
    """
    if isinstance(document, dict):
        return {key: resolve(value, value_of) for key, value in document.items()}
    if isinstance(document, list):
        return [resolve(value, value_of) for value in document]
    if isinstance(document, str):
        return _MARKER.sub(lambda match: value_of(_late(match.group(1))), document)
    return document


def _late(name: str) -> Late:
    try:
        return Late(name)
    except ValueError:
        known = ", ".join(Late)
        raise SonicEksError(
            f"a manifest waits for {shown(name)}, which no stack gives out; known: {known}"
        ) from None


def markers_in(document: Any) -> set[Late]:
    """Return the late values that `document` waits for."""
    found: set[Late] = set()

    def note(value: Late) -> str:
        found.add(value)
        return ""

    resolve(document, note)
    return found
