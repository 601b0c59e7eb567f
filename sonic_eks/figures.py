"""What every figure of the project shares. matplotlib takes a second: import this late."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

SIZE_INCHES = (7.0, 3.6)
DPI = 110


def new_figure(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """Return an empty figure and its axes, whole numbers below."""
    figure = Figure(figsize=SIZE_INCHES, dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, alpha=0.3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def objective_line(axes: Axes, value: float, label: str) -> None:
    """Draw a bound."""
    axes.axhline(value, color="black", linestyle="--", linewidth=1, label=label)


def to_png(figure: Figure, axes: Axes) -> bytes:
    """Return the figure as PNG, with its legend and from zero."""
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
    image = io.BytesIO()
    figure.savefig(image, format="png")
    return image.getvalue()
