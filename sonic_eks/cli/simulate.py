"""`sonic-eks simulate`: what a deployment's scaling would make of a trace of demand."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sonic_eks.cli.columns import print_section
from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.config.service import Model
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown
from sonic_eks.plan.prices import PriceList, read_prices, shipped_prices
from sonic_eks.progress import TerminalLine

if TYPE_CHECKING:
    from sonic_eks.simulation.deployment import Forecast


def simulate(
    trace: Annotated[
        Path, typer.Option(help="CSV file with the columns seconds,generations (concurrent).")
    ],
    config: ConfigArgument = DEFAULT_CONFIG,
    model: Annotated[
        str | None, typer.Option(help="Model whose demand it is; unset: the only one.")
    ] = None,
    median_seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="Median time that a generation takes.")
    ] = 4.0,
    sigma: Annotated[
        float, typer.Option(min=0, max=2, help="Standard deviation of that time's logarithm.")
    ] = 0.5,
    patience_seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="Longest wait of a generation for a slot.")
    ] = 10.0,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws to take the mean of.")] = 3,
    prices: Annotated[
        Path | None, typer.Option(help="File of prices that come before the shipped ones.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a trace of demand: how many generations come late, and how many GPU-hours it takes.

    Exits 1 where more are late than the objective's percentile leaves.
    """
    # numpy takes a while to import, and a mistake in the file should be told before.
    loaded = load_configuration(config)
    chosen = _model(loaded, model)
    own = [] if prices is None else [read_prices(prices, datetime.now(UTC).date())]
    listed = PriceList(loaded.deployment.region, shipped_prices(), *own)
    from sonic_eks.simulation.deployment import forecast
    from sonic_eks.simulation.trace import Lengths, read_trace

    demand = read_trace(trace)
    with TerminalLine(sys.stderr, "simulating") as line:
        found = forecast(
            loaded,
            chosen,
            demand,
            Lengths(median_seconds=median_seconds, sigma=sigma),
            patience_seconds=patience_seconds,
            draws=draws,
            advanced=lambda done: line.show(f"simulating, {done} of {draws} draws"),
        )
    cost = _usd(loaded, listed, found.gpu_hours)
    allowed = 1 - loaded.slo.percentile / 100
    kept = found.share <= allowed
    if as_json:
        print(json.dumps(_to_dict(found, cost, allowed), indent=2))
    else:
        hours = demand.end_seconds / 3600
        title = f"{chosen.name} on {trace.name}: {hours:g} h, mean of {draws} draws"
        print_section(title, _rows(loaded, chosen, found, cost, allowed))
    if not kept:
        raise typer.Exit(PROBLEM_FOUND)


def _model(config: Configuration, name: str | None) -> Model:
    names = [model.name for model in config.models]
    if name is None and len(names) > 1:
        raise SonicEksError(f"--model: got nothing; allowed: one of {', '.join(names)}")
    if name is not None and name not in names:
        raise SonicEksError(f"--model: got {shown(name)}; allowed: {', '.join(names)}")
    return next(model for model in config.models if name in (None, model.name))


def _usd(config: Configuration, prices: PriceList, gpu_hours: float) -> float | None:
    """Return the list price of GPU-hours; None where it is not known."""
    gpu = config.nodes.gpu
    price = prices.find(gpu.instance_type)
    return None if price is None else price.usd * gpu_hours / gpu.workers_per_node


def _rows(
    config: Configuration, model: Model, found: Forecast, cost: float | None, allowed: float
) -> list[tuple[str, str]]:
    maximum = config.max_replicas(model)
    reached = ": all that maxReplicas allows" if found.most_workers >= maximum else ""
    return [
        ("generations", f"{found.generations:,.0f}"),
        ("late", f"{found.late:,.0f}, {found.share:.2%} (the objective leaves {allowed:.0%})"),
        ("refused", f"{found.refused:,.0f} of these"),
        ("GPU-hours", f"{found.gpu_hours:,.1f}"),
        ("cost", "not priced" if cost is None else f"{cost:,.2f} USD, list price of the GPU nodes"),
        ("workers", f"{found.most_workers} at most{reached}"),
        ("removed", f"{found.removed:,.0f} workers, each of which was drained"),
        *(("left out", what) for what in found.left_out),
    ]


def _to_dict(found: Forecast, cost: float | None, allowed: float) -> dict[str, Any]:
    return {
        "generations": round(found.generations),
        "late": round(found.late),
        "lateShare": round(found.share, 6),
        "allowedShare": round(allowed, 6),
        "refused": round(found.refused),
        "gpuHours": round(found.gpu_hours, 3),
        "usd": None if cost is None else round(cost, 2),
        "mostWorkers": found.most_workers,
        "removedWorkers": round(found.removed, 1),
        "leftOut": list(found.left_out),
    }
