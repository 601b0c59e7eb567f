"""Plots of a measurement as PNG. matplotlib takes a second to import: import this late."""

from __future__ import annotations

import math
from typing import Any

from sonic_eks.bench.record import Outcome
from sonic_eks.bench.table import shown_runs
from sonic_eks.figures import new_figure, objective_line, to_png


def plots(result: dict[str, Any]) -> dict[str, bytes]:
    """Return the plots of a result by title."""
    runs = sorted(shown_runs(result), key=_load)
    if not runs:
        return {}
    axis = "generations in progress" if _closed(runs[0]) else "generations a second"
    return {
        f"Time to first byte against {axis}": _ttfb(runs, result["slo"], axis),
        f"Generations that stood still against {axis}": _underruns(runs, result["slo"], axis),
        f"Failures against {axis}": _failures(runs, axis),
    }


def _closed(one: dict[str, Any]) -> bool:
    return bool(one["load"]["arrivals"] == "closed")


def _load(one: dict[str, Any]) -> float:
    return float(one["load"]["concurrency" if _closed(one) else "rate"])


def _ttfb(runs: list[dict[str, Any]], slo: dict[str, float], axis: str) -> bytes:
    figure, axes = new_figure(axis, "ms")
    loads = [_load(one) for one in runs]
    for percent in ("50", "90", "95", "99"):
        values = [one["ttfb"].get(percent) for one in runs]
        # What is infinite, because so many failed, is a gap in the line.
        shown = [math.nan if value is None else value * 1000 for value in values]
        axes.plot(loads, shown, marker="o", markersize=4, label=f"p{percent}")
    label = f"objective: {slo['ttfb_ms']:g} ms at p{slo['percentile']:g}"
    objective_line(axes, slo["ttfb_ms"], label)
    return to_png(figure, axes)


def _underruns(runs: list[dict[str, Any]], slo: dict[str, float], axis: str) -> bytes:
    figure, axes = new_figure(axis, "% of generations")
    shares = [100 * one["stuttering"] / one["generations"] for one in runs]
    axes.plot(
        [_load(one) for one in runs], shares, marker="o", markersize=4, label="with underruns"
    )
    limit = slo["underrun_percent"]
    objective_line(axes, limit, f"limit: {limit:g} %")
    return to_png(figure, axes)


def _failures(runs: list[dict[str, Any]], axis: str) -> bytes:
    figure, axes = new_figure(axis, "% of generations")
    loads = [_load(one) for one in runs]
    for outcome in Outcome:
        if any(outcome in one["failures"] for one in runs):
            shares = [100 * one["failures"].get(outcome, 0) / one["generations"] for one in runs]
            axes.plot(loads, shares, marker="o", markersize=4, label=str(outcome))
    if not axes.lines:
        axes.plot(loads, [0.0] * len(loads), marker="o", markersize=4, label="none failed")
    return to_png(figure, axes)
