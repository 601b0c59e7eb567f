"""Writes the tables of docs/draining.md from runs of the scenarios.

python -m tests.standin.report
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from tests.standin import scenarios
from tests.standin.client import Tally
from tests.standin.process import ROOT
from tests.standin.scenarios import DEFAULT_NUMBERS, NEVER_NUMBERS, Rollout, Single
from tests.standin.worker import ON_SIGTERM

PAGE = ROOT / "docs" / "draining.md"
HEAD = ("completed", "cut", "retryable")


def table(title: Iterable[str], rows: Iterable[tuple[Iterable[str], Tally]]) -> list[str]:
    """Return a Markdown table of tallies."""
    head = [*title, *HEAD]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for names, tally in rows:
        counts = (str(n) for n in (tally.completed, tally.cut, tally.retryable))
        lines.append(f"| {' | '.join([*names, *counts])} |")
    return lines


def read_cuts(text: str, name: str) -> dict[tuple[str, ...], int]:
    """Return the cuts in the table `name` of the page by the names of its rows."""
    found = {}
    for line in block(text, name)[2:]:
        *names, _, cut, _ = (cell.strip() for cell in line.strip("|").split("|"))
        found[tuple(names)] = int(cut)
    return found


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: written by tests/standin/report.py -->", f"<!-- end of {name} -->"


def block(text: str, name: str) -> list[str]:
    """Return the lines of the table `name` of the page."""
    begin, end = _marks(name)
    return text.partition(begin)[2].partition(end)[0].strip().splitlines()


def replace_block(text: str, name: str, lines: list[str]) -> str:
    """Return the page with other lines in the table `name`."""
    begin, end = _marks(name)
    before, found, rest = text.partition(begin)
    if not found:
        raise ValueError(f"{PAGE} has no table {name}")
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{after}"


API_RUNS = (
    "callers renew, gate",
    "callers never renew, gate",
    "callers renew, no gate",
    "gate killed in the drain",
    "stream longer than the budget",
)


def worker_names(on_sigterm: str, mode: str) -> tuple[str, str]:
    """Return the first cells of a worker's row."""
    return f"`{on_sigterm}`: {ON_SIGTERM[on_sigterm]}", mode


async def _api() -> list[tuple[list[str], Tally]]:
    renew, never = scenarios.callers_that_renew, scenarios.callers_that_never_renew
    replace = scenarios.replace_api_pods
    runs: list[Callable[[Path], Coroutine[Any, Any, Rollout | Single]]] = [
        lambda folder: replace(folder, DEFAULT_NUMBERS, renew),
        lambda folder: replace(folder, NEVER_NUMBERS, never),
        lambda folder: replace(folder, DEFAULT_NUMBERS, renew, gate=False),
        lambda folder: scenarios.kill_the_gate(folder, while_draining=True),
        scenarios.outlive_the_budget,
    ]
    rows = []
    for name, run in zip(API_RUNS, runs, strict=True):
        print(name, file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(([name], (await run(Path(folder))).tally))
    return rows


async def _write() -> None:
    text = PAGE.read_text()
    text = replace_block(text, "api", table(["run"], await _api()))
    with tempfile.TemporaryDirectory() as folder:
        print("workers", file=sys.stderr)
        rows = await scenarios.end_workers(Path(folder))
    named = [(worker_names(row.on_sigterm, row.mode), row.tally) for row in rows]
    text = replace_block(text, "workers", table(["worker on SIGTERM", "drain.worker"], named))
    brokers: list[tuple[list[str], Tally]] = []
    for lame_duck in (True, False):
        print("brokers", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            result = await scenarios.restart_brokers(Path(folder), lame_duck)
        name = "lame duck" if lame_duck else "killed"
        brokers.append(([name, "while they restart"], result.tally))
        brokers.append(([name, "after"], result.after))
    text = replace_block(text, "brokers", table(["NATS server", "generations"], brokers))
    PAGE.write_text(text)


if __name__ == "__main__":
    asyncio.run(_write())
