"""A result as rows for people, in a terminal and in a report."""

from __future__ import annotations

from typing import Any

from sonic_eks.bench.plan import Load

HEADINGS = (
    "load",
    "generations",
    "mean at a time",
    "TTFB p50 ms",
    "p90",
    "p95",
    "p99",
    "RTF p50",
    "chars/s",
    "connect p95 ms",
    "failed",
    "stood still",
    "client lag ms",
    "objective",
)


def shown_runs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the valid runs of a result."""
    return [one for one in result["runs"] if one["valid"]]


def row(one: dict[str, Any]) -> tuple[str, ...]:
    """Return a run under `HEADINGS`."""
    ttfb = one["ttfb"]
    return (
        _load(one),
        str(one["generations"]),
        _number(one["in_progress"], 1),
        *(_ms(ttfb.get(percent)) for percent in ("50", "90", "95", "99")),
        _number(one["rtf"].get("50"), 2),
        _number(one["characters_per_second"], 0),
        # None was opened in a run that found all of them open, or the client was late with it.
        _ms(one["connect"]["95"]) if one["connect"] else "-",
        str(sum(one["failures"].values())),
        str(one["stuttering"]),
        _ms(one["lag"]),
        verdict(one),
    )


def verdict(one: dict[str, Any]) -> str:
    """Return whether a run kept the objective."""
    if not one["valid"]:
        return "not valid"
    return "kept" if one["sloKept"] else "missed"


def capacity_lines(result: dict[str, Any]) -> list[str]:
    """Return what a search found, for people."""
    capacity, slo = result["capacity"], result["slo"]
    if capacity is None:
        return []
    objective = f"{slo['ttfb_ms']:g} ms at p{slo['percentile']:g}"
    found = f"{'at least ' if capacity['atLeast'] else ''}{capacity['generations']}"
    alone, average = capacity["conversationsAlone"], capacity["conversationsOnAverage"]
    return [
        f"capacity at {objective}: {found} generations in progress",
        f"conversations, the service speaking {result['speakingPercent']:g} % of the time: {alone}",
        f"conversations for each of many services that share their load: {average:g}",
        f"where one GPU serves all of this: scaling.generationsPerGpu: {capacity['generations']}",
    ]


def failure_lines(result: dict[str, Any]) -> list[str]:
    """Return how many failed in each run, by kind, and what the first of them said."""
    lines = []
    for one in result["runs"]:
        inside, outside = one["failures"], one["failures_outside"]
        for outcome in {**inside, **outside}:
            said = one["examples"].get(outcome)
            such = f", the first: {said}" if said else ""
            more = f" and {outside[outcome]} that do not count" if outside.get(outcome) else ""
            lines.append(f"{_load(one)}: {inside.get(outcome, 0)} {outcome}{more}{such}")
    return lines


def _load(one: dict[str, Any]) -> str:
    """Return what the load of a run was; a stored one may hold more than that."""
    told = one["load"]
    return Load(
        arrivals=told["arrivals"], concurrency=told["concurrency"], rate=told["rate"]
    ).description


def _ms(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds * 1000:.1f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
