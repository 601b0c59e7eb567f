"""Capacity: from the objective to replicas and nodes, each value with its reason."""

from __future__ import annotations

from dataclasses import asdict

from sonic_eks.capacity.derived import derive
from sonic_eks.plan.sections import Context, Section, section


@section("capacity", place=10)
def capacity(context: Context) -> Section:
    """List what follows from the objective, the GPU's profile and the traffic."""
    config, slo = context.config, context.config.slo
    values = derive(config)
    gpu = config.gpu_type.gpu or config.gpu_type.name
    return Section(
        title=f"Capacity for {slo.ttfb_ms} ms at p{slo.percentile} on {gpu}",
        headings=("value of", "is", "unit", "mark", "why"),
        rows=tuple((one.name, _shown(one.value), one.unit, one.mark, one.reason) for one in values),
        notes=tuple(f"{one.name}: {one.risk}" for one in values if one.risk),
        data={
            "slo": {
                "ttfbMs": slo.ttfb_ms,
                "percentile": slo.percentile,
                "pathBudgetMs": slo.path_budget_ms,
            },
            "gpu": gpu,
            "values": [asdict(one) for one in values],
        },
    )


def _shown(value: float | str) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
