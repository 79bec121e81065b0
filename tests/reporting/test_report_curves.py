"""Which setting is drawn where, with what spread, and that the same run gives the same bytes."""

import sys

import msgspec
import polars as pl
import pytest
from runs_by_hand import run_from

from foltr.errors import InputError
from foltr.lab.records import Manifest, SettingRecord, read
from foltr.lab.reporting.drawing import draw
from foltr.lab.reporting.labels import setting_name, spoken
from foltr.lab.reporting.layout import Layout, Look
from foltr.lab.reporting.layout import layout as layout_of
from foltr.lab.reporting.pictures import caption, curve_metrics, curve_svg
from foltr.lab.reporting.series import curves_of


def layout(manifest: dict, metric: str | None = None) -> Layout:
    return layout_of(msgspec.convert(manifest, Manifest), metric)


def entry(index: int, title: str = "", data: str = "mq2007", **label: object) -> dict:
    return {
        "index": index,
        "label": {k.replace("__", "."): v for k, v in label.items()},
        "title": title,
        "data": {"name": data},
    }


def grid(**sizes: int) -> list[dict]:
    """Every combination of some keys' values "a", "b", ..."""
    combinations: list[dict] = [{}]
    for key, size in sizes.items():
        combinations = [{**c, key: "abcdefghij"[i]} for c in combinations for i in range(size)]
    return [entry(index, **c) for index, c in enumerate(combinations)]


def test_users_make_columns_and_data_make_rows_by_themselves():
    plan = layout({"settings": grid(data__name=2, users__clicks=3, privacy__kind=2)})
    assert [(p.row, p.column) for p in plan.panels] == [(r, c) for r in "ab" for c in "abc"]
    assert plan.names == ["a", "b"]
    assert plan.columns == 3


def test_rows_may_be_of_several_keys():
    settings = grid(data__name=2, ranker__kind=2, users__clicks=2, privacy__p=3)
    plan = layout({"settings": settings, "figure": {"rows": ["data.name", "ranker.kind"], "columns": "users.clicks"}})
    assert [(p.row, p.column) for p in plan.panels] == [(f"{r} · {k}", c) for r in "ab" for k in "ab" for c in "ab"]
    assert [len(panel.lines) for panel in plan.panels] == [3] * 8


def test_a_single_swept_key_gives_lines_in_one_panel():
    plan = layout({"settings": grid(users__clicks=3)})
    assert [len(panel.lines) for panel in plan.panels] == [3]


def test_titles_name_the_lines_where_they_tell_them_apart():
    settings = [entry(0, "PDGD", learner__kind="pdgd"), entry(1, "FOLtR-ES", learner__kind="foltr-es")]
    assert layout({"settings": settings}).names == ["PDGD", "FOLtR-ES"]
    same = [entry(0, "x", privacy__epsilon=1.2), entry(1, "x", privacy__epsilon=2.3)]
    assert layout({"settings": same}).names == ["ε 1.2", "ε 2.3"]


def test_lines_that_differ_in_one_key_share_their_colour():
    plan = layout(
        {
            "settings": grid(learner__streams=2, privacy__p=3),
            "figure": {"lines": ["learner.streams", "privacy.p"]},
        }
    )
    assert plan.looks == [Look(colour, style) for style in range(2) for colour in range(3)]


def test_more_than_six_lines_get_line_styles():
    looks = layout({"settings": grid(privacy__epsilon=9)}).looks
    assert len(set(looks)) == 9
    assert {look.style for look in looks} == {0, 1}


def test_published_points_go_where_their_label_says():
    from_paper = {"label": {"users.clicks": "a"}, "series": "published", "round": 5, "value": 0.4}
    figure = {"metric": "online_max_rr", "columns": "users.clicks", "published": [from_paper]}
    manifest = {"settings": grid(users__clicks=2, privacy__p=2), "figure": figure}
    first, second = layout(manifest, "online_max_rr").panels
    assert [(p.value, p.colour) for p in first.points] == [(0.4, None)]  # it speaks of both lines
    assert second.points == []
    assert layout(manifest, "offline_ndcg@10").panels[0].points == []
    from_paper["label"] = {"users.clicks": "a", "privacy.p": "b", "unknown.key": 7}
    assert layout(manifest, "online_max_rr").panels[0].points[0].colour == 1


def test_numbers_of_toml_and_json_meet():
    manifest = {
        "settings": [entry(0, privacy__p=1), entry(1, privacy__p=0.5)],
        "figure": {"metric": "m", "published": [{"label": {"privacy.p": 1.0}, "round": 1, "value": 0.1}]},
    }
    assert layout(manifest, "m").panels[0].points[0].setting == 0


def test_words_for_keys():
    assert spoken("users.clicks", "perfect") == "perfect"
    assert spoken("privacy.kind", "none") == "privacy none"
    assert spoken("privacy.secure_aggregation", True) == "secure_aggregation true"
    assert setting_name(SettingRecord(0)) == "the only setting"


def test_curves_are_means_and_sds_over_runs(make_run):
    run = read(make_run())
    at_end = run.rows.filter(
        (pl.col("setting") == 0) & (pl.col("metric") == "offline_ndcg@10") & (pl.col("round") == 50)
    )["value"]
    curve = curves_of(run.rows, "offline_ndcg@10")[0]
    assert (curve.rounds[0], curve.rounds[-1], len(curve.rounds)) == (1, 50, 50)
    assert (curve.mean[-1], curve.sd[-1]) == pytest.approx((at_end.mean(), at_end.std()))


def test_online_curves_are_averaged_in_a_hundred_bins():
    rounds = 1000
    values = [float(t % 10) for t in range(rounds)]  # every bin of ten has the mean 4.5
    rows = pl.DataFrame(
        {
            "setting": 0,
            "fold": 1,
            "seed": 0,
            "round": range(1, rounds + 1),
            "metric": "online_ndcg@10",
            "client": "",
            "value": values,
        }
    )
    curve = curves_of(rows, "online_ndcg@10")[0]
    assert len(curve.rounds) == 100
    assert curve.mean == pytest.approx([4.5] * 100)
    assert curve.rounds[0] == 5.5
    assert curve.sd == pytest.approx([0.0] * 100)
    levels = curves_of(rows.with_columns(metric=pl.lit("offline_ndcg@10")), "offline_ndcg@10")[0]
    assert (len(levels.rounds), levels.rounds[-1]) == (200, 1000)


def test_caption_names_data_runs_and_band(make_run, full):
    run = read(make_run(**full))
    words = caption(run, "online_ndcg@10")
    for part in (
        "mq2007 (85 % sample)",
        "10 runs (5 folds × 2 seeds)",
        "standard deviation",
        "Hollow markers",
    ):
        assert part in words
    assert "bins" not in words  # 50 rounds need none
    assert "Hollow" not in caption(run, "offline_ndcg@10")


def test_without_a_figure_both_ndcgs_are_drawn(make_run, full):
    assert curve_metrics(read(make_run())) == ["offline_ndcg@10", "online_ndcg@10"]
    assert curve_metrics(read(make_run(**full))) == ["online_ndcg@10", "offline_ndcg@10"]


def test_svg_is_the_same_twice_and_asks_for_nothing(make_run, full):
    run = read(make_run(**full))
    first = curve_svg(run, "online_ndcg@10", ids="x-")
    assert first == curve_svg(run, "online_ndcg@10", ids="x-")
    assert first.startswith("<svg ")
    assert "http" not in first
    assert "published, ε 1.2" in first
    assert "currentColor" in first
    assert 'id="axes_1"' not in first


def test_labels_are_text_and_no_formulas(make_run, parts):
    named = [{**one, "title": f"$a_{one['index'] % 3} <b> & 検索"} for one in parts.settings()]
    run = read(make_run(settings=named))
    svg = curve_svg(run, "offline_ndcg@10")
    assert "$a_1 &lt;b&gt; &amp; 検索" in svg


def test_png(make_run, full):
    full["figure"]["x"] = "interactions"
    run = read(make_run(**full))
    assert curve_svg(run, "online_ndcg@10").startswith("<svg")


@pytest.mark.parametrize("columns", [1, 4, 5])
def test_panels_that_do_not_fit_side_by_side_go_below(columns: int):
    settings = grid(users__clicks=columns, privacy__epsilon=2) if columns > 1 else grid(privacy__epsilon=2)
    entries = [(s["index"], 1, 0, t, "offline_ndcg@10", 0.1 * t) for s in settings for t in (1, 2)]
    rows = pl.DataFrame(entries, schema=["setting", "fold", "seed", "round", "metric", "value"], orient="row")
    figure = draw(run_from({"settings": settings}, rows), "offline_ndcg@10")
    shape = figure.axes[0].get_gridspec().get_geometry()
    assert shape == {1: (1, 1), 4: (2, 2), 5: (2, 3)}[columns]
    assert len(figure.axes) == columns


def test_without_matplotlib_the_error_says_what_to_install(make_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'foltr\[report\]'"):
        curve_svg(read(make_run()), "offline_ndcg@10")
