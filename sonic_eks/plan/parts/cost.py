"""Cost: list prices at least demand and at the bounds, GPUs and the rest apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.plan.cost import HOURS_PER_MONTH, Item, items, not_priced, total
from sonic_eks.plan.fleet import least, most
from sonic_eks.plan.prices import Price
from sonic_eks.plan.sections import Context, Section, section

_HEADINGS = (
    "what",
    "trough",
    "peak",
    "USD/h each",
    "USD/h trough",
    "USD/h peak",
    "USD/month trough",
    "price",
)
_NOT_PRICED = "not priced"
_LEVELS = (
    "trough: every part at its minReplicas, or at what the traffic's trough needs above them, all"
    " month; peak: at its maxReplicas; headroom included, nodes.gpu.maxNodes kept"
)


@section("cost", place=60)
def cost(context: Context) -> Section:
    """Add up the bill."""
    lines = items(context.config, context.prices)
    sources = _sources(lines)
    gpu = [line for line in lines if line.is_gpu]
    rest = [line for line in lines if not line.is_gpu]
    rows = [_row(line, sources, context) for line in lines]
    rows += [
        _sum(
            "GPU nodes together" if context.config.gpu_type.gpus else "stand-in nodes together", gpu
        ),
        _sum("the rest together", rest),
        _sum("all", lines),
    ]
    return Section(
        title=f"Cost in {context.config.deployment.region}, list prices without tax",
        headings=_HEADINGS,
        rows=tuple(rows),
        notes=tuple(_notes(context, lines, sources)),
        data=_data(context, lines),
    )


def _sources(lines: Sequence[Item]) -> dict[tuple[str, str], int]:
    """Return a number for each source, in the order in which the lines need them."""
    found: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.price is not None:
            found.setdefault(_source(line.price), len(found) + 1)
    return found


def _source(price: Price) -> tuple[str, str]:
    return price.dated.isoformat(), price.source


def _row(line: Item, sources: dict[tuple[str, str], int], context: Context) -> tuple[str, ...]:
    counts = (f"{line.least:,}", f"{line.most:,}")
    each, hourly = line.usd_per_hour_each, line.usd_per_hour
    if line.price is None or each is None or hourly is None:
        return (line.name, *counts, "", "", "", "", _NOT_PRICED)
    old = ", old" if line.price.is_old(context.today) else ""
    return (
        line.name,
        *counts,
        f"{each:.6f}" if line.is_monthly else f"{each:.4f}",
        *_sums(hourly),
        f"[{sources[_source(line.price)]}]{old}",
    )


def _sum(name: str, lines: Sequence[Item]) -> tuple[str, ...]:
    missing = len(not_priced(lines))
    if missing == len(lines):
        return (name, "", "", "", "", "", "", _NOT_PRICED)
    mark = f"without the {missing} not priced" if missing else ""
    return (name, "", "", "", *_sums(total(lines)), mark)


def _sums(hourly: tuple[float, float]) -> tuple[str, str, str]:
    low, high = hourly
    return f"{low:,.3f}", f"{high:,.3f}", f"{low * HOURS_PER_MONTH:,.0f}"


def _notes(
    context: Context, lines: Sequence[Item], sources: dict[tuple[str, str], int]
) -> list[str]:
    config = context.config
    notes = [_LEVELS]
    low, high = least(config).gpus, most(config).gpus
    if high:
        notes.append(
            f"GPU-hours a month: {low * HOURS_PER_MONTH:,} at the trough ({low} GPUs),"
            f" {high * HOURS_PER_MONTH:,} at the peak ({high})"
        )
    missing = not_priced(lines)
    if len(missing) == len(lines):
        notes.append(f"no price of {config.deployment.region} is known; --prices FILE gives yours")
    elif missing:
        notes.append(
            f"not priced in {config.deployment.region}, so in no sum: {'; '.join(missing)};"
            " --prices FILE gives a price"
        )
    notes.append(
        "in no sum: what traffic decides (data, load balancer units, logs, metrics), the license,"
        " stored images and weights, volumes of pods, nodes during an update"
    )
    notes += _of_capacity(config)
    for (dated, source), number in sources.items():
        notes.append(f"[{number}] {dated}: {source}")
    if any(line.price is not None and line.price.is_old(context.today) for line in lines):
        notes.append("old: said more than a year ago; look the price up")
    return notes


def _of_capacity(config: Configuration) -> list[str]:
    """Say where GPU nodes cost something else than their on-demand price."""
    gpu = config.nodes.gpu
    notes = []
    if gpu.base_reservation_id or gpu.reservation_ids or gpu.overflow.reservation_ids:
        notes.append(
            "a Capacity Reservation costs the on-demand price for what it holds, used or not"
        )
    if gpu.overflow.capacity_block_ids:
        notes.append("Capacity Blocks are paid in advance at another price than this one")
    if gpu.overflow.spot:
        notes.append("Spot nodes cost less than the on-demand price that is counted for them")
    return notes


def _data(context: Context, lines: Sequence[Item]) -> dict[str, Any]:
    config = context.config
    gpu = [line for line in lines if line.is_gpu]
    rest = [line for line in lines if not line.is_gpu]
    return {
        "currency": "USD",
        "region": config.deployment.region,
        "hoursPerMonth": HOURS_PER_MONTH,
        "lines": [_line_data(line, context) for line in lines],
        "gpuHoursPerMonth": {
            "trough": least(config).gpus * HOURS_PER_MONTH,
            "peak": most(config).gpus * HOURS_PER_MONTH,
        },
        "gpu": _sum_data(gpu),
        "rest": _sum_data(rest),
        "all": _sum_data(lines),
        "notPriced": not_priced(lines),
    }


def _line_data(line: Item, context: Context) -> dict[str, Any]:
    price = line.price
    return {
        "name": line.name,
        "figure": line.figure,
        "isGpu": line.is_gpu,
        "trough": line.least,
        "peak": line.most,
        "usdPerHour": None if line.usd_per_hour is None else _pair(line.usd_per_hour),
        "price": None
        if price is None
        else {
            "usd": price.usd,
            "per": "GB-month" if line.is_monthly else "hour",
            "dated": price.dated.isoformat(),
            "source": price.source,
            "old": price.is_old(context.today),
        },
    }


def _sum_data(lines: Sequence[Item]) -> dict[str, Any]:
    missing = len(not_priced(lines))
    if missing == len(lines):
        return {
            "troughPerHour": None,
            "peakPerHour": None,
            "troughPerMonth": None,
            "complete": False,
        }
    low, high = total(lines)
    return {
        **_pair((low, high)),
        "troughPerMonth": round(low * HOURS_PER_MONTH, 2),
        "complete": not missing,
    }


def _pair(hourly: tuple[float, float]) -> dict[str, float]:
    return {"troughPerHour": round(hourly[0], 4), "peakPerHour": round(hourly[1], 4)}
