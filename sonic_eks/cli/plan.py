"""`sonic-eks plan`: what a deployment comes to before it exists."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from sonic_eks.bench.outputs import writable, write
from sonic_eks.cli.columns import print_section
from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption
from sonic_eks.config import load_configuration
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, one_line
from sonic_eks.plan.figure import draw, ttfb_figure
from sonic_eks.plan.prices import PriceList, read_prices, shipped_prices
from sonic_eks.plan.sections import Context, Section, sections


def plan(
    config: ConfigArgument = DEFAULT_CONFIG,
    prices: Annotated[
        Path | None, typer.Option(help="File of prices that come before the shipped ones.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the figure: TTFB against concurrency; unset: none is made."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a configuration comes to: capacity, quotas, cost, and what each rests on."""
    context = _context(config, prices, datetime.now(UTC).date())
    path = None if out is None else _writable(out, context.config.deployment.name)
    found = sections(context)
    figure = None if path is None else _draw(context, path)
    problems = [problem for section in found.values() for problem in section.problems]
    if as_json:
        print(json.dumps(_to_dict(context, found, figure, problems), indent=2))
    else:
        _print(context, found)
        if path is not None:
            print(f"Figure: {figure or 'none, as no measurement can be drawn'}")
    for problem in problems:
        print(one_line(problem), file=sys.stderr)
    if problems:
        raise typer.Exit(PROBLEM_FOUND)


def _context(path: Path, prices: Path | None, today: date) -> Context:
    config = load_configuration(path)
    own = [] if prices is None else [read_prices(prices, today)]
    return Context(config, PriceList(config.deployment.region, shipped_prices(), *own), today)


def _writable(out: Path, name: str) -> Path:
    """Return where the figure goes, before anything is worked out for it.

    Raises
    ------
    SonicEksError
        When the folder cannot be made or written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SonicEksError(f"--out {out}: cannot be made a folder: {reason}") from None
    path = out / f"{name}-ttfb.png"
    writable("--out", path)
    return path


def _draw(context: Context, path: Path) -> Path | None:
    figure = ttfb_figure(context.config)
    if figure is None:
        return None
    write("--out", path, draw(figure))
    return path


def _to_dict(
    context: Context, found: dict[str, Section], figure: Path | None, problems: list[str]
) -> dict[str, Any]:
    deployment = context.config.deployment
    return {
        "deployment": deployment.name,
        "region": deployment.region,
        "dated": context.today.isoformat(),
        "sections": {key: section.data for key, section in found.items()},
        "figure": None if figure is None else str(figure),
        "problems": problems,
    }


def _print(context: Context, found: dict[str, Section]) -> None:
    deployment = context.config.deployment
    print(f"Plan of {deployment.name} in {deployment.region}, {context.today.isoformat()}\n")
    for section in found.values():
        print_section(section.title, section.rows, headings=section.headings)
        for note in section.notes:
            print(f"  {one_line(note)}")
        print()
