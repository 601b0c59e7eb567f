"""The AWS services that a deployment reaches through endpoints in its VPC."""

from __future__ import annotations

import difflib

from sonic_eks.config.base import Refusal

INTERFACE_SERVICES = (
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "eks",
    "eks-auth",
    "elasticloadbalancing",
    "lambda",
    "secretsmanager",
    "sqs",
    "ssm",
    "sts",
)
"""Services with an interface endpoint; docs/networking.md says who calls each."""

GATEWAY_SERVICE = "s3"
"""The service with a gateway endpoint: a route, not an interface."""

ENDPOINT_SERVICES = (*INTERFACE_SERVICES, GATEWAY_SERVICE)
"""Every service that the deployment needs an endpoint of."""


def endpoint_service(value: str, known: tuple[str, ...], *, field: str) -> str:
    """Return `value` when it is one of `known`; refuse it otherwise and name the nearest."""
    if value in known:
        return value
    # Whoever copies a whole service name (com.amazonaws.REGION.ecr.api) means its end.
    ends = [name for name in known if value.endswith(f".{name}")]
    near = ends or difflib.get_close_matches(value, known, n=1)
    raise Refusal(
        value,
        f"services of endpoints: {', '.join(known)}",
        nearest=max(near, key=len) if near else None,
        field=field,
    )
