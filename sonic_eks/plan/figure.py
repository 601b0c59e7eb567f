"""TTFB against concurrency: what was measured, the objective, and the point that was chosen."""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.capacity.curve import chosen
from sonic_eks.config import Configuration


@dataclass(frozen=True, kw_only=True)
class TtfbFigure:
    """What is drawn.

    Attributes
    ----------
    title : str
        GPU, release and where the figures are from.
    percentile : int
        Percentile of all figures.
    points : tuple of (float, float)
        Generations in progress and TTFB in milliseconds as a caller has it: on top of what a
        worker needs comes the path's budget.
    path_ms : int
        That budget in milliseconds; 0 where it was measured with the path.
    objective_ms : int
        The objective.
    chosen : tuple of (int, float or None)
        Generations per GPU, and their TTFB; None where nothing was measured there.
    """

    title: str
    percentile: int
    points: tuple[tuple[float, float], ...]
    path_ms: int
    objective_ms: int
    chosen: tuple[int, float | None]


def ttfb_figure(config: Configuration) -> TtfbFigure | None:
    """Return the figure of a deployment; None where there is no measurement to draw."""
    point, ours = chosen(config), config.gpu_type.gpu
    if point is None or not ours:
        return None
    profile, there = point.profile, point.first_audio_ms
    path = config.slo.ttfb_ms - point.budget_ms
    measured = ", ".join(filter(None, (profile.gpu, profile.model, profile.release)))
    return TtfbFigure(
        title=f"{measured} (assumed for {ours})" if point.basis == "assumed" else measured,
        percentile=point.percentile,
        points=tuple((concurrency, ms + path) for concurrency, ms in point.curve.points),
        path_ms=path,
        objective_ms=config.slo.ttfb_ms,
        chosen=(point.generations, None if there is None else there + path),
    )


def draw(figure: TtfbFigure) -> bytes:
    """Return the figure as PNG."""
    from sonic_eks.figures import (  # noqa: PLC0415 (matplotlib takes a second)
        new_figure,
        objective_line,
        to_png,
    )

    canvas, axes = new_figure(
        "generations in progress on a GPU", f"TTFB at p{figure.percentile}, ms"
    )
    axes.set_title(figure.title, fontsize="small")
    label = f"measured, and {figure.path_ms} ms for the path" if figure.path_ms else "measured"
    axes.plot(*zip(*figure.points, strict=True), marker="o", markersize=4, label=label)
    objective_line(axes, figure.objective_ms, f"objective: {figure.objective_ms} ms")
    generations, there = figure.chosen
    if there is None:
        axes.axvline(
            generations, color="C1", linewidth=1, label=f"chosen: {generations}, not measured"
        )
    else:
        axes.plot(
            [generations],
            [there],
            linestyle="",
            marker="D",
            markersize=8,
            color="C1",
            label=f"chosen: {generations}, {there:.0f} ms",
        )
    return to_png(canvas, axes)
