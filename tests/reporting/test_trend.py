"""Trends: the final value along one number, and levels where there is none; several metrics, several numbers."""

import polars as pl
import pytest
from runs_by_hand import run_from

from foltr.lab.reporting.drawing import draw_trend
from foltr.lab.reporting.pictures import caption, curve_svg, pictures
from foltr.lab.reporting.series import trend_lines


def a_run(epsilons):
    settings = [
        {
            "index": index,
            "label": {"users.clicks": "perfect", "part": "honest" if epsilon != "infinite" else "no privacy"},
            "privacy": {"run": {"epsilon": epsilon}},
            "data": {"name": "made up"},
            "rounds": 1,
            "runs": 2,
        }
        for index, epsilon in enumerate(epsilons)
    ]
    rows = pl.DataFrame(
        [
            {"setting": index, "fold": fold, "seed": 1, "round": 1, "metric": "offline_ndcg@10", "value": index + fold}
            for index in range(len(epsilons))
            for fold in (1, 2)
        ],
        schema_overrides={"value": pl.Float64},
    )
    figure = {
        "metric": "offline_ndcg@10",
        "metrics": ["offline_ndcg@10"],
        "columns": "users.clicks",
        "lines": ["part"],
        "trend": {"x": "privacy.run.epsilon", "name": "epsilon", "log": True},
    }
    return run_from({"settings": settings, "figure": figure}, rows)


def test_points_come_in_the_order_of_their_number_and_the_infinite_is_a_level():
    found = trend_lines(a_run([4.0, 1.0, "infinite"]), "offline_ndcg@10")
    honest, without = found["perfect"]
    assert [(x, mean) for x, mean, _ in honest.points] == [(1.0, 2.5), (4.0, 1.5)]
    assert honest.level is None
    assert (without.points, without.level) == ([], 3.5)


def test_the_drawing_names_its_axis_and_lines():
    pytest.importorskip("matplotlib")
    svg = curve_svg(a_run([0.5, 2.0, "infinite"]), "offline_ndcg@10")
    for words in ("epsilon", "honest", "no privacy", "Point: mean over 2 runs"):
        assert words in svg


def silo_run(labels, values, **figure):
    """Settings as flat labels, values[setting] = {metric: mean}; two runs each, one above and one below the mean."""
    settings = [{"index": i, "label": label, "data": {"name": "made up"}} for i, label in enumerate(labels)]
    rows = [
        {"setting": i, "fold": 1, "seed": seed, "round": 1, "metric": metric, "value": mean * (0.5 + seed)}
        for i, found in enumerate(values)
        for metric, mean in found.items()
        for seed in (0, 1)
    ]
    return run_from({"settings": settings, "figure": figure}, pl.DataFrame(rows))


PARTIES = {
    "x": "silo.parties",
    "name": "parties",
    "metrics": ["nDCG@10, Local", "nDCG@10, CS-F-LTR", "nDCG@10, never measured"],
    "y": "nDCG@10 of the average party",
}


def parties(kinds=("sound",), **trend):
    labels = [{"silo.kind": kind, "silo.parties": many} for kind in kinds for many in (1, 2)]
    values = [{"nDCG@10, Local": 0.5, "nDCG@10, CS-F-LTR": 0.5 + 0.1 * place} for place in range(len(labels))]
    return silo_run(labels, values, lines=["silo.kind"], trend=PARTIES | trend)


def lines_of(axes):
    """The points of every line, as drawn."""
    return [list(zip(*bar.lines[0].get_data(), strict=True)) for bar in axes.containers]


def words_of(texts):
    return [text.get_text() for text in texts]


def test_metrics_drawn_together_are_lines_of_one_picture():
    run = parties()
    (metrics,) = pictures(run)
    figure = draw_trend(run, *metrics)
    (axes,) = figure.axes
    assert words_of(figure.legends[0].get_texts()) == ["Local", "CS-F-LTR"]
    assert lines_of(axes) == [[(1, 0.5), (2, 0.5)], [(1, 0.5), (2, 0.6)]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("parties", "nDCG@10 of the average party")
    assert caption(run, *metrics).startswith("nDCG@10 of the average party on made up. Point: mean over 2 runs")


def test_lines_of_several_settings_carry_both_names():
    names = [group.name for group in trend_lines(parties(("sound", "paper")), *PARTIES["metrics"])[""]]
    assert names == ["sound, Local", "sound, CS-F-LTR", "paper, Local", "paper, CS-F-LTR"]


@pytest.mark.parametrize(
    ("metrics", "lines", "y"),
    [
        (["nDCG@10, Local", "nDCG@10, CS-F-LTR"], ["Local", "CS-F-LTR"], "nDCG@10"),
        (["offline_ndcg@10", "cover"], ["offline nDCG@10", "cover"], "offline nDCG@10, cover"),
        (["a, b, c", "a, b, d"], ["c", "d"], "a, b"),
        (["a, left", "a, lower"], ["left", "lower"], "a"),
    ],
)
def test_what_all_metrics_share_names_the_axis_and_the_rest_the_lines(metrics, lines, y):
    trend = {"x": "silo.parties", "metrics": metrics}
    run = silo_run([{"silo.parties": 1}], [dict.fromkeys(metrics, 0.5)], trend=trend)
    figure = draw_trend(run, *metrics)
    assert words_of(figure.legends[0].get_texts()) == lines
    assert figure.axes[0].get_ylabel() == y


def test_a_trend_without_anything_measured_is_no_picture():
    assert pictures(parties(metrics=["nDCG@10, never measured"])) == []


SWEEPS = {"alpha": ("silo.alpha", [1, 5]), "beta": ("silo.beta", [0.1, 0.5]), "K": ("silo.top", [50, 150])}


def parameters(sweeps=SWEEPS, means=(0.8, 0.9), **trend):
    """A part for each parameter, and one that is no sweep."""
    labels = [{"part": part, key: value} for part, (key, values) in sweeps.items() for value in values]
    values = [{"cover": mean, "seconds": 10 * mean} for _ in sweeps for mean in means]
    keys = {part: key for part, (key, _) in sweeps.items()}
    return silo_run(
        [*labels, {"part": "defaults"}],
        [*values, {"cover": 0.5, "bytes": 7.0}],
        metric="cover",
        metrics=["cover", "seconds", "bytes"],
        columns="part",
        trend={"x": keys, "name": {"alpha": "size of a cell", "K": "K"}} | trend,
    )


def test_each_panel_has_the_x_of_its_part_and_a_part_without_one_is_not_drawn():
    figure = draw_trend(parameters(), "cover")
    assert [lines_of(axes) for axes in figure.axes] == [
        [[(1, 0.8), (5, 0.9)]], [[(0.1, 0.8), (0.5, 0.9)]], [[(50, 0.8), (150, 0.9)]]
    ]  # fmt: skip
    assert [axes.get_xlabel() for axes in figure.axes] == ["size of a cell", "silo.beta", "K"]
    assert [axes.get_title() for axes in figure.axes] == ["alpha", "beta", "K"]
    first, *others = figure.axes
    assert all(first.get_shared_y_axes().joined(first, axes) for axes in others)
    assert not any(first.get_shared_x_axes().joined(first, axes) for axes in others)


def test_titles_that_only_repeat_the_x_axes_are_left_out():
    figure = draw_trend(parameters(name={part: part for part in SWEEPS}), "cover")
    assert [axes.get_title() for axes in figure.axes] == ["", "", ""]


def test_every_metric_of_the_figure_that_some_panel_has_is_a_picture():
    assert pictures(parameters()) == [["cover"], ["seconds"]]  # bytes: of the part that is not drawn


@pytest.mark.parametrize(("panels", "shape"), [(2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3))])
def test_panels_go_on_below(panels, shape):
    sweeps = {letter: (f"silo.{letter}", [1, 2]) for letter in "abcde"[:panels]}
    figure = draw_trend(parameters(sweeps), "cover")
    assert len(figure.axes) == panels
    assert figure.axes[0].get_gridspec().get_geometry() == shape


@pytest.mark.parametrize(
    ("log_y", "metric", "scale"),
    [
        (True, "seconds", "log"),
        (["seconds"], "seconds", "log"),
        (["seconds"], "cover", "linear"),
        (False, "cover", "linear"),
    ],
)
def test_y_is_logarithmic_where_the_figure_says_so(log_y, metric, scale):
    figure = draw_trend(parameters(log_y=log_y), metric)
    assert {axes.get_yscale() for axes in figure.axes} == {scale}


def test_what_has_no_logarithm_keeps_its_axis_linear():
    run = parameters(sweeps={"a": ("silo.a", [0, 1]), "b": ("silo.b", [1, 10])}, means=(0.0, 1.0), log=True, log_y=True)
    figure = draw_trend(run, "cover")
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]
    assert {axes.get_yscale() for axes in figure.axes} == {"linear"}


def test_large_numbers_are_short_and_whole_numbers_have_whole_ticks():
    run = silo_run([{"n": many} for many in (1, 2, 3)], [{"bytes": 2e6 * many} for many in (1, 2, 3)], trend={"x": "n"})
    (axes,) = draw_trend(run, "bytes").axes
    assert axes.yaxis.get_major_formatter()(2_500_000.0) == "2.5M"
    assert all(tick.is_integer() for tick in axes.get_xticks())


def test_a_trend_of_one_metric_has_the_lines_of_its_settings():
    figure = draw_trend(a_run([4.0, 1.0, "infinite"]), "offline_ndcg@10")
    (axes,) = figure.axes
    assert words_of(figure.legends[0].get_texts()) == ["honest", "no privacy"]
    assert lines_of(axes) == [[(1.0, 2.5), (4.0, 1.5)]]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("perfect", "epsilon", "offline nDCG@10")
    assert pictures(a_run([4.0])) == [["offline_ndcg@10"]]


def test_long_names_are_broken_into_lines():
    long = "bytes that the owner of the documents keeps for one sketch of all of them, " * 3
    run = silo_run([{"n": 1, "kind": long}], [{long: 1.0}], lines=["kind"], trend={"x": "n", "name": long})
    figure = draw_trend(run, long)
    texts = [figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel(), *words_of(figure.legends[0].get_texts())]
    assert all(len(line) < 100 for text in texts for line in text.split("\n"))
