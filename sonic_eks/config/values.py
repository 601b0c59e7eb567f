"""Checks of single values that several sections share."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sonic_eks.config.aws import Arn
from sonic_eks.config.base import Refusal, Str, WholeChoice

LogRetentionDays = Annotated[
    Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096], WholeChoice
]


def _of_the_calendar(value: str) -> str:
    try:
        date.fromisoformat(value)
    except ValueError:
        raise Refusal(value, "a day as YYYY-MM-DD") from None
    return value


Day = Annotated[
    Str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_of_the_calendar)
]
"""A day of the calendar, as text."""

_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"


@dataclass(frozen=True)
class ArnKind:
    """A kind of ARN: what it is called, its service, its resource part, whether it is regional."""

    what: str
    service: str
    resource: str
    regional: bool = True


IAM_POLICY = ArnKind("an IAM policy", "iam", r"policy/[\w+=,.@/-]+", regional=False)
IAM_ROLE = ArnKind("an IAM role", "iam", r"role/[\w+=,.@/-]+", regional=False)
CERTIFICATE = ArnKind("an ACM certificate", "acm", r"certificate/[0-9a-fA-F-]+")
SECRET = ArnKind("a Secrets Manager secret", "secretsmanager", r"secret:[\w/+=.@-]{1,520}")
# What a policy can name exactly: Secrets Manager ends an ARN in six characters of its own choice.
COMPLETE_SECRET = ArnKind(
    "a Secrets Manager secret, complete with -XXXXXX at its end",
    "secretsmanager",
    r"secret:[\w/+=.@-]{1,512}-[A-Za-z0-9]{6}",
)
KMS_KEY = ArnKind("a KMS key, by its id", "kms", r"key/(mrk-)?[0-9a-f-]{32,36}")
# ModifyVpcEndpointServicePermissions, Amazon EC2 API: accounts, users and roles, without a path.
PRINCIPAL = ArnKind(
    "an account, an IAM role or an IAM user without a path",
    "iam",
    r"root|(role|user)/[\w+=,.@-]+",
    regional=False,
)
TOPIC = ArnKind("an SNS topic", "sns", r"[\w-]{1,256}(\.fifo)?")


def arn_of(value: str | None, kind: ArnKind, *, field: str | None = None) -> str | None:
    """Return `value` when it is unset or an ARN of `kind`; refuse it otherwise."""
    if value is None:
        return None
    arn = Arn.parse(value)
    if (
        arn is None
        or arn.service != kind.service
        or not arn.account
        or bool(arn.region) != kind.regional
        or not re.fullmatch(kind.resource, arn.resource, re.ASCII)
    ):
        region = "REGION" if kind.regional else ""
        shape = f"arn:PARTITION:{kind.service}:{region}:ACCOUNT:"
        raise Refusal(value, f"the ARN of {kind.what} ({shape}...)", field=field)
    return value


def ipv4_range(text: str, *, field: str | None = None) -> ipaddress.IPv4Network:
    """Parse an IPv4 range in CIDR form; refuse host bits and name the range meant."""
    allowed = "an IPv4 range in CIDR form such as 10.0.0.0/16, without host bits"
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise Refusal(text, allowed, field=field) from None
    # CloudFormation wants the form that Python prints: no netmask, no address alone.
    if str(network) != text:
        raise Refusal(text, allowed, nearest=str(network), field=field)
    return network


def image_tag(value: str, *, field: str | None = None) -> str:
    """Return a fixed image tag; refuse `latest` and what no registry accepts."""
    if value.lower() == "latest":
        raise Refusal(value, "a fixed tag; latest means another image tomorrow", field=field)
    if not re.fullmatch(_TAG, value):
        what = "an image tag: letters, digits, '_', '.', '-', 128 at most"
        raise Refusal(value, what, field=field)
    return value


_OWN_FOLDER = "/opt/sonic/"
SECRETS_FOLDER = "/mnt/secrets"
"""Where the containers see their secrets as files."""

_MARKER_START = "<<known-after-deploy:"
_HIDING_FOLDERS = frozenset({"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys"})
_SHARED_FOLDERS = frozenset({"home", "opt", "root", "run", "srv", "tmp", "usr", "var"})


def environment_value(value: str) -> str:
    """Return a value of an environment variable; refuse what no manifest can carry."""
    if any((c < " " and c not in "\t\n") or c == "\x7f" for c in value):
        raise Refusal(value, "text without control characters")
    if _MARKER_START in value:
        raise Refusal(
            value, f"text without {_MARKER_START}, which marks what only a deployment knows"
        )
    return value


def mount_folder(value: str) -> str:
    """Return the path of a mount; refuse one that would hide what an image needs."""
    parts = value.strip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise Refusal(value, "a path without empty, '.' or '..' parts, such as /mnt/weights")
    if parts[0] in _HIDING_FOLDERS or (len(parts) == 1 and parts[0] in _SHARED_FOLDERS):
        raise Refusal(value, "a folder of its own, such as /mnt/weights, not one of the system's")
    path = "/" + "/".join(parts)
    if f"{path}/".startswith(f"{SECRETS_FOLDER}/") or f"{SECRETS_FOLDER}/".startswith(f"{path}/"):
        raise Refusal(value, f"a folder apart from {SECRETS_FOLDER}, where secrets are mounted")
    if f"{path}/".startswith(_OWN_FOLDER):
        raise Refusal(value, f"a folder of its own, not below {_OWN_FOLDER}, where our code is")
    return value
