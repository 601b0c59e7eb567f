"""The mirror in an AWS account: its registry's host, and the way to tokens and secrets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sonic_eks.errors import SonicEksError, shown
from sonic_eks.mirror.auth import Anonymous, Credentials, EcrToken, SecretCredentials, aws_call
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.reference import check_host, is_loopback
from sonic_eks.mirror.retry import RetryPolicy

_ECR_HOST = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?"
)


def connect(
    host: str, *, parallel: int = 4, heard: Callable[[str], None] | None = None
) -> Connections:
    """Return connections to a private registry and, by its account, to upstream secrets.

    Parameters
    ----------
    host : str
        ``<account>.dkr.ecr.<region>.<suffix>``, or a registry on this machine to try things out.
    parallel : int
        Most transfers at a time.
    heard : callable, optional
        Told in one line of what failed and is tried again.

    Raises
    ------
    SonicEksError
        When the host is neither (exit status 2).
    """
    match = _ECR_HOST.fullmatch(check_host(host))
    if match is None and not is_loopback(host):
        raise SonicEksError(
            f"registry {shown(host)}: not Amazon ECR; allowed:"
            " <account>.dkr.ecr.<region>.amazonaws.com, or a registry on this machine"
        )
    credentials: Credentials = Anonymous()
    if match is not None:
        credentials = EcrToken(_client("ecr", match["region"]), match["account"])
    return Connections(
        host,
        credentials=credentials,
        secrets=_secret_credentials,
        parallel=parallel,
        retry=None if heard is None else RetryPolicy(heard=heard),
    )


def account_id() -> str:
    """Return the account of the credentials in use.

    Raises
    ------
    MirrorError
        When there are none.
    """
    client = _client("sts", None)
    return str(aws_call("account of the credentials", client.get_caller_identity)["Account"])


def _secret_credentials(arn: str) -> Credentials:
    region = (arn.split(":") + [""] * 4)[3]
    return SecretCredentials(_client("secretsmanager", region or None), arn)


def _client(service: str, region: str | None) -> Any:
    # Imported late: the command line need not wait for it before it prints its help.
    import boto3  # noqa: PLC0415

    return aws_call(service, lambda: boto3.client(service, region_name=region))
