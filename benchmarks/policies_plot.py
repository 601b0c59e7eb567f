"""Plot of each trace under our policy and the vendor's: demand, capacity, and what came late."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks import traces
from benchmarks.comparison import OURS, Task, run, slots_of
from sonic_eks.simulation.run import Watcher
from sonic_eks.simulation.serving import Floats

_SIZE_INCHES = (10.0, 13.0)
_DPI = 90


class Course(Watcher):
    """Capacity by time, and what was late by the minute."""

    def __init__(self) -> None:
        self.hours: list[float] = []
        self.ready: list[int] = []
        self.late: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def decided(self, now: float, signal: float, ready: int, replicas: int) -> None:
        """Keep the workers that serve."""
        if now >= 0:
            self.hours.append(now / traces.HOUR)
            self.ready.append(ready)

    def judged(self, times: Floats, missed: NDArray[np.bool_]) -> None:
        """Count by the minute."""
        minutes = np.arange(0, traces.TRACE_SECONDS + 60, 60)
        self.late = np.histogram(times[missed], minutes)[0]


def plot_of(seed: int) -> bytes:
    """Return the plot as PNG, of one draw of each trace.

    Parameters
    ----------
    seed : int
        Of the draw.
    """
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DPI, layout="constrained")
    rows = figure.subplots(len(traces.TRACES), 2, sharex=True, squeeze=False)
    for row, trace in zip(rows, traces.TRACES, strict=True):
        courses = {}
        for policy in (OURS, traces.VENDOR.name):
            courses[policy] = Course()
            run(Task(traces.REPORTED, policy, trace, seed), courses[policy])
        most = max(int(course.late.max()) for course in courses.values())
        for axes, (policy, course) in zip(row, courses.items(), strict=True):
            _draw(axes, trace, course, most)
            axes.set_title(f"{trace}: {policy}", fontsize="medium")
    for axes in rows[-1]:
        axes.set_xlabel("hours")
    rows[0][0].legend(fontsize="small", loc="lower center")
    image = io.BytesIO()
    figure.savefig(image, format="png")
    return image.getvalue()


def _draw(axes: Axes, trace: str, course: Course, most: int) -> None:
    hours = np.array(course.hours)
    demand = traces.TRACES[trace](hours * traces.HOUR)
    axes.plot(hours, demand, color="black", linewidth=1, label="demand")
    slots = np.array(course.ready) * slots_of(traces.REPORTED)
    axes.step(hours, slots, where="post", color="tab:blue", label="slots of ready workers")
    axes.set_ylim(0, 650)
    axes.set_ylabel("generations")
    late = axes.twinx()
    minutes = np.arange(len(course.late)) / 60
    late.fill_between(minutes, course.late, step="post", color="tab:red", alpha=0.5)
    late.set_ylim(0, max(most, 1) * 1.5)
    late.set_ylabel("late, a minute", color="tab:red")
