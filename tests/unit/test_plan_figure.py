"""The figure of a plan: what is handed to it, and that it is drawn."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.config import load_configuration
from sonic_eks.plan.figure import TtfbFigure, draw, ttfb_figure
from tests.configuration import load, with_values
from tests.expected.vendor_capacity import TABLES
from tests.synth import ROOT

H100_TYPE = ("nodes.gpu.instanceType", "p5.4xlarge")


def figure_of(folder: Path, *changes: tuple[str, Any]) -> TtfbFigure | None:
    return ttfb_figure(load(with_values(*changes), folder))


def test_a_measured_gpu_is_drawn_as_its_callers_have_it(tmp_path: Path) -> None:
    """The vendor's H100 table, p95; 20 ms for the path come on top; 80 ms carry two."""
    assert figure_of(tmp_path, H100_TYPE) == TtfbFigure(
        title="H100, sonic-3.5, sonic-20260503",
        percentile=95,
        points=((1, 75.0), (2, 75.0), (4, 135.0), (8, 185.0), (12, 245.0), (16, 320.0)),
        path_ms=20,
        objective_ms=100,
        chosen=(2, 75.0),
    )


def test_the_points_are_those_of_the_vendor(tmp_path: Path) -> None:
    figure = figure_of(tmp_path, H100_TYPE, ("slo.pathBudgetMs", 0), ("slo.ttfbMs", 165))
    assert figure is not None
    assert dict(figure.points) == {row[0]: row[2] for row in TABLES["H100"]}
    assert figure.chosen == (8, 165.0)
    assert figure.path_ms == 0


def test_a_point_between_two_measured_ones_is_on_the_line(tmp_path: Path) -> None:
    """115 ms at 4 and 165 at 8: half way is 140, and the path's 20 come on top."""
    figure = figure_of(tmp_path, H100_TYPE, ("slo.ttfbMs", 165))
    assert figure is not None
    assert figure.chosen == (6, 160.0)


def test_a_gpu_that_is_assumed_shows_what_it_is_assumed_from(tmp_path: Path) -> None:
    figure = figure_of(tmp_path)
    assert figure is not None
    assert figure.title == "H100, sonic-3.5, sonic-20260503 (assumed for L40S)"
    assert figure.chosen == (2, 75.0)


def test_a_pin_beyond_what_was_measured_has_no_value(tmp_path: Path) -> None:
    figure = figure_of(tmp_path, H100_TYPE, ("scaling.generationsPerGpu", 20))
    assert figure is not None
    assert figure.chosen == (20, None)


def test_a_client_s_profile_holds_the_path_already(tmp_path: Path) -> None:
    profile = {
        "gpu": "L40S",
        "model": "sonic-3",
        "side": "client",
        "source": "measured",
        "dated": "2026-11-30",
        "points": [
            {"concurrency": 1, "firstAudioMs": {"p95": 60.0}},
            {"concurrency": 5, "firstAudioMs": {"p95": 140.0}},
        ],
    }
    (tmp_path / "l40s.yaml").write_text(yaml.safe_dump(profile))
    figure = figure_of(tmp_path, ("scaling.profile", "l40s.yaml"))
    assert figure == TtfbFigure(
        title="L40S, sonic-3",
        percentile=95,
        points=((1, 60.0), (5, 140.0)),
        path_ms=0,
        objective_ms=100,
        chosen=(3, 100.0),
    )


@pytest.mark.parametrize(
    "changes",
    [
        # Nobody's table of an L40S, and what the operator measured is a number alone.
        [("scaling.generationsPerGpu", 4)],
        # The vendor's table has p50 and p95.
        [H100_TYPE, ("slo.percentile", 99), ("scaling.generationsPerGpu", 4)],
        [("slo.percentile", 99)],
    ],
)
def test_without_a_measurement_there_is_no_figure(
    tmp_path: Path, changes: list[tuple[str, Any]]
) -> None:
    assert figure_of(tmp_path, *changes) is None


def test_a_stand_in_has_no_gpu_to_draw() -> None:
    assert ttfb_figure(load_configuration(ROOT / "config" / "smoke.yaml")) is None


FIGURE = TtfbFigure(
    title="H100",
    percentile=95,
    points=((1, 55.0), (4, 115.0)),
    path_ms=0,
    objective_ms=80,
    chosen=(2, 75.0),
)


def test_it_is_a_png_of_the_size_of_all_figures() -> None:
    image = draw(FIGURE)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", image[16:24]) == (770, 396)  # 7.0 by 3.6 inches, 110 to each


@pytest.mark.parametrize(
    ("chosen", "drawn"),
    [((2, 75.0), ([2], [75.0])), ((20, None), ([20, 20], [0, 1]))],
)
def test_points_objective_and_choice_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
    chosen: tuple[int, float | None],
    drawn: tuple[list[float], list[float]],
) -> None:
    from sonic_eks import figures

    kept: list[Any] = []
    monkeypatch.setattr(figures, "to_png", lambda figure, axes: kept.append(axes) or b"")
    draw(TtfbFigure(**{**vars(FIGURE), "chosen": chosen}))
    (axes,) = kept
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["measured"].get_xdata()) == [1, 4]
    assert list(lines["measured"].get_ydata()) == [55.0, 115.0]
    assert set(lines["objective: 80 ms"].get_ydata()) == {80}
    (label,) = [label for label in lines if label.startswith("chosen: ")]
    assert (list(lines[label].get_xdata()), list(lines[label].get_ydata())) == drawn
    assert ("not measured" in label) is (chosen[1] is None)
