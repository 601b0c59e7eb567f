"""Quotas: vCPUs to ask for, by the names under which Service Quotas has them."""

from __future__ import annotations

from dataclasses import asdict

from sonic_eks.capacity.quotas import quotas as needed
from sonic_eks.plan.sections import Context, Section, section


@section("quotas", place=30)
def quotas(context: Context) -> Section:
    """List each quota with the value to ask for."""
    found = needed(context.config)
    return Section(
        title=f"EC2 quotas to ask for in {context.config.deployment.region}, if yours are lower",
        headings=("quota", "code", "vCPU", "which are"),
        rows=tuple((one.name, one.code, f"{one.vcpus:,}", one.reason) for one in found),
        notes=("what else runs in the account and region needs its own",),
        data={"quotas": [asdict(one) for one in found]},
    )
