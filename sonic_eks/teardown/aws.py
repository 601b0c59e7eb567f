"""The AWS clients of a teardown, and their errors as one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError

# EC2 describes and terminates up to 1,000 instances in a call; fewer fail together.
BATCH = 100


class TeardownError(SonicEksError):
    """A teardown that cannot go on: exit status 1."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_status=PROBLEM_FOUND)


@dataclass(frozen=True)
class Clients:
    """boto3 clients of the deployment's region; tests put their own in place.

    Attributes
    ----------
    cloudformation, ec2, eks, fsx, logs, route53, sts : Any
        A client each.
    """

    cloudformation: Any
    ec2: Any
    eks: Any
    fsx: Any
    logs: Any
    route53: Any
    sts: Any


def connect(region: str) -> Clients:
    """Return clients for a region, with the credentials that the AWS CLI would use."""
    # Imported late: the command line need not wait for it before it prints its help.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    retries = Config(retries={"mode": "standard", "max_attempts": 5})
    names = ("cloudformation", "ec2", "eks", "fsx", "logs", "route53", "sts")

    def clients() -> dict[str, Any]:
        session = boto3.Session(region_name=region)
        return {name: session.client(name, config=retries) for name in names}

    return Clients(**call("AWS clients", clients))


def call(what: str, request: Callable[[], Any], *, missing: tuple[str, ...] = ()) -> Any:
    """Make a request; turn its exceptions into one line that says what was wanted.

    Parameters
    ----------
    what : str
        What is wanted, for the error.
    request : callable
        The request.
    missing : tuple of str
        Error codes that mean that there is no such thing; None is returned for these.

    Raises
    ------
    TeardownError
        When AWS refuses, cannot be reached, or there are no credentials.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        return request()
    except ClientError as error:
        details = error.response.get("Error", {})
        code, message = details.get("Code", "error"), details.get("Message", "")
        if code in missing:
            return None
        hint = "; sign in again" if "Expired" in code else ""
        raise TeardownError(f"{what}: AWS answered {code}: {message}{hint}") from None
    except BotoCoreError as error:
        raise TeardownError(f"{what}: {error}; sign in to AWS, or set AWS_PROFILE") from None


def pages(client: Any, operation: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return the items of every page of an operation."""

    def read() -> list[dict[str, Any]]:
        paginator = client.get_paginator(operation)
        return [item for page in paginator.paginate(**arguments) for item in page[key]]

    found: list[dict[str, Any]] = call(operation.replace("_", " "), read)
    return found


def batches(items: list[str]) -> Iterator[list[str]]:
    """Cut a list into batches."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
