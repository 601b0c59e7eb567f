"""The edge section: the load balancer, and who finds and reaches it.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from sonic_eks.config.base import Bool, Int, Refusal, Section, Str
from sonic_eks.config.values import CERTIFICATE, PRINCIPAL, arn_of, ipv4_range

# RFC 1123, section 2.1: labels of 63 characters at most; 255 in all are left for both names.
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = rf"^{_LABEL}(\.{_LABEL})*$"
DnsName = Annotated[Str, Field(pattern=_DNS_NAME, max_length=120)]


class PrivateLink(Section):
    """An endpoint service, for callers in other VPCs and accounts; unset: none."""

    allowed_principal_arns: Annotated[tuple[Str, ...], Field(min_length=1, max_length=50)]
    """ARNs of the accounts (arn:PARTITION:iam::ACCOUNT:root), roles or users that may connect."""
    acceptance_required: Bool = True
    """Whether each connection waits until the owner of the service accepts it."""

    @field_validator("allowed_principal_arns")
    @classmethod
    def _principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`allowedPrincipalArns` are accounts, roles or users, each once; never everybody."""
        for index, arn in enumerate(value):
            if arn == "*":
                raise Refusal(arn, "ARNs of callers; * makes the service public", field=str(index))
            arn_of(arn, PRINCIPAL, field=str(index))
            if arn in value[:index]:
                raise Refusal(arn, "each principal once", field=str(index))
        return value


class PrivateDns(Section):
    """A name of the load balancer in a private hosted zone; unset: its own DNS name alone."""

    zone_name: DnsName
    """Name of the private hosted zone, lower-case, such as voice.internal."""
    record_name: DnsName
    """Name of the load balancer below `zoneName`, such as sonic."""
    hosted_zone_id: Annotated[Str, Field(pattern=r"^Z[A-Z0-9]{1,31}$")] | None = None
    """Id of a hosted zone that is there and serves the VPC; unset: one is made for it."""

    @model_validator(mode="after")
    def _relative(self) -> Self:
        """`recordName` does not repeat `zoneName`."""
        if f".{self.record_name}".endswith(f".{self.zone_name}"):
            short = self.record_name.removesuffix(self.zone_name).rstrip(".")
            raise Refusal(
                self.record_name,
                f"a name below zoneName ({self.zone_name}), without it",
                nearest=short or None,
                field="recordName",
            )
        return self


class Edge(Section):
    """The internal network load balancer."""

    client_cidrs: Annotated[tuple[Str, ...], Field(max_length=50)] = ()
    """IPv4 ranges of callers (VPC, Direct Connect, VPN); unset: the VPC alone."""
    certificate_arn: Str | None = None
    """ARN of the ACM certificate of a TLS listener; unset: a TCP listener."""
    listener_port: Annotated[Int, Field(ge=1, le=65_535)] | None = None
    """Port that callers use; unset: 443 with a certificate, else 80."""
    tcp_idle_timeout_seconds: Annotated[Int, Field(ge=60, le=6000)] = 350
    """Idle timeout of a TCP listener in seconds; a TLS listener has 350, fixed."""
    private_link: PrivateLink | None = None
    """An endpoint service; unset: none."""
    private_dns: PrivateDns | None = None
    """A name in a private hosted zone; unset: none."""

    @field_validator("client_cidrs")
    @classmethod
    def _cidrs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`clientCidrs` have no host bits, do not overlap, and none is every address."""
        networks = [ipv4_range(text, field=str(i)) for i, text in enumerate(value)]
        for index, network in enumerate(networks):
            if network.prefixlen == 0:
                raise Refusal(
                    str(network), "a range of callers, not every address", field=str(index)
                )
            for other in networks[:index]:
                if network.overlaps(other):
                    raise Refusal(
                        str(network), f"a range that does not overlap {other}", field=str(index)
                    )
        return value

    @field_validator("certificate_arn")
    @classmethod
    def _certificate(cls, value: str | None) -> str | None:
        """`certificateArn` is the ARN of an ACM certificate."""
        return arn_of(value, CERTIFICATE)

    @model_validator(mode="after")
    def _idle_timeout(self) -> Self:
        """With a certificate, `tcpIdleTimeoutSeconds` is 350, which a TLS listener has."""
        if self.certificate_arn is not None and self.tcp_idle_timeout_seconds != 350:
            raise Refusal(
                self.tcp_idle_timeout_seconds,
                "350, which a TLS listener has and keeps",
                field="tcpIdleTimeoutSeconds",
            )
        return self

    @property
    def port(self) -> int:
        """The listener's port."""
        return self.listener_port or (443 if self.certificate_arn else 80)
