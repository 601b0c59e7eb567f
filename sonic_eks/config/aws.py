"""AWS regions, zones and ARNs as configuration values, checked without a call to AWS."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+){1,3}-[0-9]{1,2}")
_ZONE_NAME = re.compile(r"[a-z]{2}(?:-[a-z]+){1,3}-[0-9]{1,2}[a-z]")
_ZONE_ID = re.compile(r"[a-z]{2,6}[0-9]{1,2}-az[0-9]{1,2}")
_ARN = re.compile(r"arn:([a-z0-9-]+):([a-z0-9-]+):([a-z0-9-]*):([0-9]{12}|aws)?:(\S+)")

ACCOUNT = r"^[0-9]{12}$"


# Partitions with other service names and host names than the three that are supported.
_ISOLATED = re.compile(r"(us|eu)-iso[a-z]*-.*")


def is_region(text: str) -> bool:
    """Tell whether `text` has the shape of a region name such as ``us-east-1``.

    Regions of the isolated (``iso``) partitions and of the European Sovereign Cloud are none.
    """
    return _REGION.fullmatch(text) is not None and _ISOLATED.fullmatch(text) is None


def is_zone_name(text: str) -> bool:
    """Tell whether `text` has the shape of a zone name such as ``us-east-1a``."""
    return _ZONE_NAME.fullmatch(text) is not None


def is_zone_id(text: str) -> bool:
    """Tell whether `text` has the shape of a zone id such as ``use1-az4``."""
    return _ZONE_ID.fullmatch(text) is not None


def partition_of(region: str) -> str:
    """Return the partition of a region: ``aws``, ``aws-cn`` or ``aws-us-gov``."""
    if region.startswith("cn-"):
        return "aws-cn"
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    return "aws"


def dns_suffix_of(region: str) -> str:
    """Return the DNS suffix of service host names in a region's partition."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


@dataclass(frozen=True)
class Arn:
    """The parts of an Amazon Resource Name."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> Arn | None:
        """Split an ARN; None when `text` is none."""
        match = _ARN.fullmatch(text)
        if match is None:
            return None
        partition, service, region, account, resource = match.groups()
        return cls(partition, service, region, account or "", resource)
