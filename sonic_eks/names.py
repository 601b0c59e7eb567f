"""Physical names: every one starts with the deployment's name and fits its service's limit."""

from __future__ import annotations

import hashlib

# Limits of the services' API references, in characters.
LOAD_BALANCER_LIMIT = 32
IAM_ROLE_LIMIT = 64
INSTANCE_PROFILE_LIMIT = 128
SQS_QUEUE_LIMIT = 80
S3_BUCKET_LIMIT = 63

_HASH_CHARACTERS = 8

STACKS = (
    "network",
    "registry",
    "mirror",
    "data",
    "weights",
    "cluster",
    "edge",
    "workload",
    "observability",
)
"""The stacks of a deployment, in the order in which they deploy."""


def physical_name(*parts: str, limit: int = 128) -> str:
    """Join `parts` with hyphens; a name over `limit` is cut and ends in a hash of the whole.

    The hash keeps two deployments apart whose long names share a beginning.

    Parameters
    ----------
    *parts : str
        The deployment's name first, then what the resource is.
    limit : int
        The service's limit in characters.

    Examples
    --------
    >>> physical_name("voice", "gpu")
    'voice-gpu'
    >>> len(physical_name("v" * 100, "load-balancer", limit=32))
    32
    """
    name = "-".join(parts)
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: limit - _HASH_CHARACTERS - 1].rstrip('-')}-{digest}"


class Names:
    """The physical names that more than one part of a deployment spells out.

    Everything else is named by CloudFormation. These are literal, so that manifests and IAM
    conditions can hold them before anything is deployed.

    Parameters
    ----------
    deployment : str
        Name of the deployment.
    """

    def __init__(self, deployment: str) -> None:
        self.stacks = {stack: f"{deployment}-{stack}" for stack in STACKS}
        self.cluster = physical_name(deployment, limit=100)
        self.karpenter_queue = physical_name(deployment, "karpenter", limit=SQS_QUEUE_LIMIT)
        self.load_balancer = physical_name(deployment, "edge", limit=LOAD_BALANCER_LIMIT)


def karpenter_instance_profile(deployment: str, region: str) -> str:
    """Return the name of the instance profile of Karpenter's nodes.

    It holds the region: IAM's names are those of an account in all its regions, and the same
    deployment may stand in two.
    """
    return physical_name(deployment, "karpenter-node", region, limit=INSTANCE_PROFILE_LIMIT)
