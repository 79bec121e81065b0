"""Scatters: which rows are points, where they are drawn, and that no other part of the page shows them."""

import numpy as np
import polars as pl
import pytest
from runs_by_hand import run_from

from foltr.lab.reporting.drawing import NOT_RELEVANT, RELEVANT, draw_scatter
from foltr.lab.reporting.pictures import curve_metrics, scatter_svg
from foltr.lab.reporting.series import clouds, scatter_caption
from foltr.lab.reporting.tables import metrics_of

SCATTER = {"x": "picture x", "y": "picture y", "grade": "picture grade", "name": "two components of the features"}
POINTS = [(0.0, 1.0, 0), (2.0, 3.0, 2), (4.0, 1.0, 1), (1.0, 1.0, 0)]  # x, y, grade


def run_of(*settings, seeds=(3, 5), figure=()):
    """settings[i] = its points in the first run; later runs have others."""
    rows = [
        (i, 1, seed, number, SCATTER[key], value + 100.0 * place)
        for i, points in enumerate(settings)
        for place, seed in enumerate(seeds)
        for number, point in enumerate(points, 1)
        for key, value in zip(("x", "y", "grade"), point, strict=True)
    ]
    rows += [(i, 1, seeds[0], 1, "nDCG@10", 0.5) for i in range(len(settings))]
    listed = [{"index": i, "label": {"silo.w": 5 * i, "part": "a"}, "data": {"name": "nfcorpus"}}
              for i in range(len(settings))]  # fmt: skip
    asked = {"metrics": ["nDCG@10", "picture x"], "lines": ["silo.w"], "scatter": SCATTER} | dict(figure)
    columns = ["setting", "fold", "seed", "round", "metric", "value"]
    return run_from({"settings": listed, "figure": asked}, pl.DataFrame(rows[::-1], schema=columns, orient="row"))


def drawn(axes):
    """Points by mark: stars, then circles."""
    return [list(zip(*line.get_data(), strict=True)) for line in axes.lines]


def test_points_are_the_rounds_of_the_first_run():
    (cloud, _) = clouds(run_of(POINTS, POINTS[:2]))
    assert cloud.title == "w 0"
    assert list(zip(cloud.x, cloud.y, cloud.relevant, strict=True)) == [(x, y, grade > 0) for x, y, grade in POINTS]


def test_relevant_points_are_filled_circles_and_the_others_hollow_stars():
    first, second = draw_scatter(run_of(POINTS, POINTS[:2])).axes
    assert drawn(first) == [[(0.0, 1.0), (1.0, 1.0)], [(2.0, 3.0), (4.0, 1.0)]]
    assert drawn(second) == [[(0.0, 1.0)], [(2.0, 3.0)]]
    stars, circles = first.lines
    assert (stars.get_marker(), stars.get_markerfacecolor()) == ("*", "none")
    assert (circles.get_marker(), circles.get_markerfacecolor()) == ("o", RELEVANT["color"])
    assert NOT_RELEVANT["color"] != RELEVANT["color"]


def test_panels_have_titles_the_same_limits_and_no_ticks():
    figure = draw_scatter(run_of(POINTS, POINTS[:2]))
    assert [axes.get_title() for axes in figure.axes] == ["w 0", "w 5"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["relevant", "not relevant"]
    # x from 0 to 4 and y from 1 to 3, with a twentieth of that at each end
    for axes in figure.axes:
        assert axes.get_xlim() == pytest.approx((-0.2, 4.2))
        assert axes.get_ylim() == pytest.approx((0.9, 3.1))
        assert (len(axes.get_xticks()), len(axes.get_yticks())) == (0, 0)


@pytest.mark.parametrize(("panels", "shape"), [(1, (1, 1)), (4, (1, 4)), (5, (2, 3)), (8, (2, 4)), (9, (3, 3))])
def test_rows_of_panels_are_even(panels, shape):
    figure = draw_scatter(run_of(*[POINTS] * panels))
    assert len(figure.axes) == panels
    assert figure.axes[0].get_gridspec().get_geometry() == shape


def test_points_on_one_spot_are_drawn():
    (axes,) = draw_scatter(run_of([(1.0, 2.0, 0)] * 3)).axes
    assert axes.get_xlim() == (0.0, 2.0)
    assert axes.get_title() == ""  # the only setting needs no name


def test_a_round_that_lacks_something_is_no_point_and_a_setting_without_points_no_panel():
    run = run_of([*POINTS, (np.nan, 0.0, 0)], POINTS)
    stored = ~((pl.col("setting") == 1) & (pl.col("metric") == "picture grade"))
    (cloud,) = clouds(run._replace(rows=run.rows.filter(stored)))
    assert len(cloud.x) == len(POINTS)
    assert clouds(run._replace(rows=run.rows.clear())) == []
    assert clouds(run_of(POINTS, figure={"scatter": None})) == []


def test_the_caption_says_axes_data_marks_and_runs():
    words = scatter_caption(run_of(POINTS))
    for part in ("Two components of the features on nfcorpus.", "hollow stars: not relevant", "The first of 2 runs"):
        assert part in words
    assert "One run a panel." in scatter_caption(run_of(POINTS, seeds=(1,)))


def test_no_curve_and_no_table_shows_places_of_points():
    run = run_of(POINTS)
    assert metrics_of(run) == ["nDCG@10"]
    assert curve_metrics(run) == []  # nDCG@10 has a single round: the picture says more
    later = pl.DataFrame(
        {"setting": [0], "fold": [1], "seed": [3], "round": [2], "metric": ["nDCG@10"], "value": [0.6]}
    ).with_columns(client=pl.lit(""))
    assert curve_metrics(run._replace(rows=pl.concat([run.rows, later]))) == ["nDCG@10"]


def test_the_picture_is_the_same_twice():
    run = run_of(POINTS, POINTS)
    assert scatter_svg(run, ids="a-") == scatter_svg(run, ids="a-")
    assert "w 5" in scatter_svg(run)
