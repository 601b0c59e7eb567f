"""Network: what the deployment makes at the edge of its VPC, and for what."""

from __future__ import annotations

from sonic_eks.config import Configuration
from sonic_eks.config.endpoint_services import GATEWAY_SERVICE, INTERFACE_SERVICES
from sonic_eks.plan.cost import endpoint_count, has_nat_gateway
from sonic_eks.plan.sections import Context, Section, section


@section("network", place=80)
def network(context: Context) -> Section:
    """List ways in and out."""
    config = context.config
    existing = config.network.existing
    there = existing.endpoints if existing else ()
    made = [service for service in INTERFACE_SERVICES if service not in there]
    rows = [
        (
            "load balancer",
            "1, internal",
            f"port {config.edge.port} in {config.network.gpu_zone} alone, where its targets are",
        ),
        (
            "interface endpoints",
            str(endpoint_count(config)),
            f"{len(made)} services in up to {len(config.network.zones)} zones"
            + (f"; {len(there)} services have theirs already" if there else ""),
        ),
        (
            "gateway endpoint",
            "0" if GATEWAY_SERVICE in there else "1",
            "S3, without a charge",
        ),
        ("way to the internet", *_way_out(config)),
    ]
    return Section(
        title="Network",
        rows=tuple(rows),
        data={
            "loadBalancers": 1,
            "interfaceEndpoints": endpoint_count(config),
            "natGateways": int(has_nat_gateway(config)),
        },
    )


def _way_out(config: Configuration) -> tuple[str, str]:
    if config.network.egress == "none":
        return "none", "network.egress is none"
    if has_nat_gateway(config):
        return "1 NAT gateway", "for system and serving nodes (network.egress: system)"
    return "the owner's", "network.existing: its route tables lead out"
