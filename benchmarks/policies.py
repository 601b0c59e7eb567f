"""Compare the policy that a deployment has by default with the vendor's, and with CPU's.

The world, the policies to beat and what is claimed are in `benchmarks/traces.py`; what a run is,
in `sonic_eks.simulation`. docs/scaling-comparison.md has method and results.

Exit status: 0 where the claim holds, 1 where it does not, 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import traces
from benchmarks.comparison import OURS, POLICIES, Task, run_all
from benchmarks.traces import Cell
from sonic_eks.cli.columns import print_section
from sonic_eks.errors import SonicEksError
from sonic_eks.simulation.run import Result

VENDOR = traces.VENDOR.name
PLOT = "policies.png"
CELLS = (*traces.SENSITIVITY, *traces.UNTOLD)


@dataclass(frozen=True)
class Sum:
    """Runs of a policy, added up.

    Attributes
    ----------
    generations, violating, refused, scale_ins : int
        As in `Result`.
    gpu_hours : float
        As in `Result`.
    """

    generations: int = 0
    violating: int = 0
    refused: int = 0
    scale_ins: int = 0
    gpu_hours: float = 0.0

    def plus(self, other: Result | Sum) -> Sum:
        """Return both together."""
        return Sum(
            self.generations + other.generations,
            self.violating + other.violating,
            self.refused + other.refused,
            self.scale_ins + other.scale_ins,
            self.gpu_hours + other.gpu_hours,
        )


@dataclass(frozen=True)
class Versus:
    """Ours against the vendor's.

    Attributes
    ----------
    ours, vendor : Sum
        Both.
    """

    ours: Sum
    vendor: Sum

    @property
    def violations(self) -> float:
        """Our violating generations over the vendor's."""
        return self.ours.violating / max(self.vendor.violating, 1)

    @property
    def gpu_hours(self) -> float:
        """Our GPU-hours over the vendor's."""
        return self.ours.gpu_hours / self.vendor.gpu_hours

    @property
    def won(self) -> bool:
        """Whether what is claimed holds."""
        return self.violations <= traces.MOST_VIOLATIONS and self.gpu_hours <= traces.MOST_GPU_HOURS

    def to_dict(self) -> dict[str, object]:
        """Return the figures for programs."""
        return {
            "violationsToVendor": round(self.violations, 4),
            "gpuHoursToVendor": round(self.gpu_hours, 4),
            "won": self.won,
        }


class Comparison:
    """All runs, added up by cell, policy and trace."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], Sum] = {}

    def add(self, task: Task, result: Result) -> None:
        """Add a run."""
        key = (task.cell.name, task.policy, task.trace)
        self._sums[key] = self._sums.get(key, Sum()).plus(result)

    def of(self, cell: Cell, policy: str, trace: str | None = None) -> Sum:
        """Return a policy's runs in a cell, of one trace or of all."""
        total = Sum()
        for one in (trace,) if trace is not None else traces.TRACES:
            total = total.plus(self._sums[cell.name, policy, one])
        return total

    def versus(self, cell: Cell, trace: str | None = None) -> Versus:
        """Return ours against the vendor's."""
        return Versus(self.of(cell, OURS, trace), self.of(cell, VENDOR, trace))

    def missed(self, cells: Sequence[Cell]) -> list[str]:
        """Return the cells that were told of and miss the claim."""
        return [cell.name for cell in cells if cell.told and not self.versus(cell).won]

    def passed(self, cells: Sequence[Cell]) -> bool:
        """Whether the claim holds, and its sensitivity."""
        few = len(self.missed(cells)) <= traces.MOST_CELLS_MISSED
        return few and self.versus(traces.REPORTED).won

    def to_dict(self, cells: Sequence[Cell]) -> dict[str, object]:
        """Return what ``--json`` prints."""
        return {
            "passed": self.passed(cells),
            "missed": self.missed(cells),
            "traces": {
                trace: {
                    **{
                        policy: vars(self.of(traces.REPORTED, policy, trace)) for policy in POLICIES
                    },
                    **self.versus(traces.REPORTED, trace).to_dict(),
                }
                for trace in traces.TRACES
            },
            "cells": {
                cell.name: {"told": cell.told, **self.versus(cell).to_dict()} for cell in cells
            },
        }


def tasks_of(cells: Sequence[Cell], seeds: Sequence[int]) -> list[Task]:
    """Return the runs; CPU's policy only in the world that is reported."""
    return [
        Task(cell, policy, trace, seed)
        for cell in cells
        for policy in (POLICIES if cell == traces.REPORTED else (OURS, VENDOR))
        for trace in traces.TRACES
        for seed in seeds
    ]


def compare(tasks: Sequence[Task], advanced: Callable[[], None]) -> Comparison:
    """Play the runs."""
    comparison = Comparison()
    for task, result in run_all(tasks, advanced):
        comparison.add(task, result)
    return comparison


def by_trace(comparison: Comparison, draws: int) -> list[tuple[str, ...]]:
    """Return the rows of the world that is reported: means of the draws."""
    rows: list[tuple[str, ...]] = []
    for trace in (*traces.TRACES, None):
        for policy in POLICIES:
            one = comparison.of(traces.REPORTED, policy, trace)
            rows.append(
                (
                    trace or "all",
                    policy,
                    f"{one.generations / draws:,.0f}",
                    f"{one.violating / draws:,.0f}",
                    f"{100 * one.violating / one.generations:.2f}",
                    f"{one.refused / draws:,.0f}",
                    f"{one.gpu_hours / draws:,.1f}",
                    f"{one.scale_ins / draws:,.0f}",
                    _verdict(comparison.versus(traces.REPORTED, trace)) if policy == OURS else "",
                )
            )
    return rows


def by_cell(comparison: Comparison, cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """Return the rows of the cells: ours over the vendor's, all traces together."""
    rows: list[tuple[str, ...]] = []
    for cell in cells:
        one = comparison.versus(cell)
        verdict = _verdict(one) if cell.told else "not counted"
        rows.append((cell.name, f"{one.violations:.3f}", f"{one.gpu_hours:.3f}", verdict))
    return rows


def _verdict(versus: Versus) -> str:
    return "won" if versus.won else "missed"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, help="draws of each trace (20; of the tuning ones 10)")
    parser.add_argument(
        "--tuning", action="store_true", help="the draws on which the defaults were chosen"
    )
    parser.add_argument("--out", type=Path, help="folder for a plot of every trace")
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")
    options = parser.parse_args(argv)
    seeds = traces.TUNING_SEEDS if options.tuning else traces.REPORTED_SEEDS
    if options.seeds is None:
        options.seeds = len(seeds)
    if not 1 <= options.seeds <= len(seeds):
        raise SonicEksError(f"--seeds: got {options.seeds}; allowed: 1 to {len(seeds)}")
    options.seeds = list(seeds)[: options.seeds]
    if options.out is not None:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SonicEksError(f"--out: {options.out}: {error.strerror}") from None
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; return the exit status."""
    try:
        options = _arguments(argv)
        comparison = _with_progress(tasks_of(CELLS, options.seeds))
        if options.out is not None:
            from benchmarks.policies_plot import plot_of  # noqa: PLC0415 (matplotlib)

            (options.out / PLOT).write_bytes(plot_of(options.seeds[0]))
    except SonicEksError as error:
        print(f"policies: {error}", file=sys.stderr)
        return error.exit_status
    if options.json:
        print(json.dumps(comparison.to_dict(CELLS), indent=2))
    else:
        draws = len(options.seeds)
        headings = ("trace", "policy", "generations", "late", "late %", "refused", "GPU-hours")
        print_section(
            f"A trace of six hours, mean of {draws} draws",
            by_trace(comparison, draws),
            headings=(*headings, "removed", "claim"),
        )
        print_section(
            "Ours over the vendor's, all traces together",
            by_cell(comparison, CELLS),
            headings=("cell", "late", "GPU-hours", "claim"),
        )
    return 0 if comparison.passed(CELLS) else 1


def _with_progress(tasks: Sequence[Task]) -> Comparison:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("scaling policies", total=len(tasks))
        return compare(tasks, lambda: progress.advance(bar))


if __name__ == "__main__":
    sys.exit(main())
