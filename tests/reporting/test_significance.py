"""Significance by closed arithmetic and against scipy: units, correction, and which setting is the baseline."""

import io
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from runs_by_hand import run_from
from scipy.stats import ttest_rel

from foltr.errors import InputError
from foltr.lab.records import QUERY_SCHEMA, read
from foltr.lab.reporting.layout import baselines, layout
from foltr.lab.reporting.page import section, write_page
from foltr.lab.reporting.significance import (
    Paired,
    PairedTest,
    holm,
    mark,
    method,
    paired_runs,
    paired_settings,
    paired_t,
    significance,
    untested,
)
from foltr.lab.reporting.terminal import terminal_tests
from foltr.rng import stream

METRIC = "offline_ndcg@10"
LEARNERS = [
    {"learner.kind": "pdgd", "learner.learning_rate": 0.1},
    {"learner.kind": "pdgd", "learner.learning_rate": 0.01},
    {"learner.kind": "foltr-es", "learner.learning_rate": 0.001},
]
LEVELS = (0.5, 0.45, 0.6)


def settings(labels=LEARNERS):
    return [{"index": i, "label": label, "data": {"name": "mq2008"}} for i, label in enumerate(labels)]


def noise(setting, fold, seed, size=1):
    return stream(seed, round=fold, client=setting, purpose="noise").normal(size)


def sweep(labels=LEARNERS, *, folds=5, seeds=3, queries=0, **manifest):
    """A run whose settings have levels of their own; with values of so many queries a fold."""
    rows, values = [], []
    for setting in range(len(labels)):
        for fold in range(1, folds + 1):
            for seed in range(1, seeds + 1):
                each = LEVELS[setting % 3] + 0.2 * noise(setting, fold, seed, max(queries, 1))
                rows.append((setting, fold, seed, 1, METRIC, float(each.mean())))
                values += [(setting, fold, seed, f"{fold}-{q}", METRIC, v) for q, v in enumerate(each[:queries])]
    columns = ["setting", "fold", "seed", "round", "metric", "value"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    run = run_from({"settings": settings(labels), **manifest}, frame)
    return run._replace(queries=pl.DataFrame(values, schema=QUERY_SCHEMA, orient="row"))


def test_two_pairs_by_hand():
    # differences 1 and 3: mean 2, sd sqrt(2), t = 2 / (sqrt(2) / sqrt(2)) = 2;
    # with one degree of freedom P(|T| > t) = 1 - 2 arctan(t) / pi
    found = paired_runs({(1, 1): 1.0, (2, 1): 3.0}, {(1, 1): 0.0, (2, 1): 0.0})
    assert found == Paired("folds", 2, 2.0, 0.0, 2.0, pytest.approx(1.0), pytest.approx(2.0),
                           pytest.approx(1 - 2 * math.atan(2) / math.pi), folds=2)  # fmt: skip


def test_three_pairs_by_hand():
    # differences 0, 1, 2: mean 1, sd 1, t = sqrt(3); with two degrees P(|T| > t) = 1 - t / sqrt(2 + t^2)
    t, p = paired_t(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    assert t == pytest.approx(math.sqrt(3))
    assert p == pytest.approx(1 - math.sqrt(3 / 5))


@pytest.mark.parametrize("size", [2, 5, 25, 200])
def test_agrees_with_scipy(size):
    draws = stream(size, purpose="noise").normal(2 * size)
    left, right = draws[:size] + 0.3, draws[size:]
    expected = ttest_rel(left, right)
    assert paired_t(left, right) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)


def test_queries_are_the_unit_with_seeds_averaged_as_scipy_has_it():
    run = sweep(queries=7)
    means = run.queries.with_columns(pl.col("value").cast(pl.Float64)).group_by("setting", "query").agg(
        pl.col("value").mean()).sort("query")  # fmt: skip
    left, right = (means.filter(pl.col("setting") == setting)["value"].to_numpy() for setting in (1, 0))
    found = paired_settings(run, 1, 0, METRIC)
    assert (found.unit, found.pairs) == ("queries", 35)
    assert found.p == pytest.approx(ttest_rel(left, right).pvalue, abs=1e-9)


def test_a_query_of_several_folds_is_one_unit():
    run = sweep(queries=7)
    run = run._replace(queries=run.queries.with_columns(pl.col("query").str.split("-").list.last()))
    assert paired_settings(run, 1, 0, METRIC).pairs == 7


def test_an_id_that_names_another_query_in_every_fold_is_a_unit_in_every_fold():
    run = sweep(queries=7, settings=[{**one, "data": {"name": "mine", "reused_ids": 7}} for one in settings()])
    run = run._replace(queries=run.queries.with_columns(pl.col("query").str.split("-").list.last()))
    means = run.queries.with_columns(pl.col("value").cast(pl.Float64)).group_by("setting", "fold", "query").agg(
        pl.col("value").mean()).sort("fold", "query")  # fmt: skip
    left, right = (means.filter(pl.col("setting") == setting)["value"].to_numpy() for setting in (1, 0))
    found = paired_settings(run, 1, 0, METRIC)
    assert found.pairs == 35
    assert found.p == pytest.approx(ttest_rel(left, right).pvalue, abs=1e-9)


def test_queries_without_a_value_and_runs_of_one_side_are_left_out():
    run = sweep(queries=7, folds=1)
    lost = (pl.col("setting") == 1) & (pl.col("seed") == 3)
    empty = pl.when(pl.col("query") == "1-0").then(None).otherwise(pl.col("value")).alias("value")
    found = paired_settings(run._replace(queries=run.queries.filter(~lost).with_columns(empty)), 1, 0, METRIC)
    assert (found.unit, found.pairs) == ("queries", 6)
    shared = run.queries.filter((pl.col("setting") == 0) & (pl.col("seed") < 3) & (pl.col("query") != "1-0"))
    assert found.right == pytest.approx(shared["value"].mean(), abs=1e-6)


def test_without_values_of_queries_folds_are_the_unit_and_never_fold_and_seed():
    run = sweep(seeds=20)
    found = paired_settings(run, 1, 0, METRIC)
    assert (found.unit, found.pairs) == ("folds", 5)
    by_fold = run.rows.group_by("setting", "fold").agg(pl.col("value").mean()).sort("fold")
    left, right = (by_fold.filter(pl.col("setting") == setting)["value"].to_numpy() for setting in (1, 0))
    assert found.p == pytest.approx(ttest_rel(left, right).pvalue, abs=1e-9)


def test_a_single_fold_is_tested_over_its_seeds():
    found = paired_settings(sweep(folds=1), 1, 0, METRIC)
    assert (found.unit, found.pairs) == ("seeds", 3)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6, math.nan])[:2] == [1.0, 1.0]
    assert math.isnan(holm([math.nan])[0])


def test_identical_samples_are_no_difference_and_a_constant_one_is_no_chance():
    ours = {(1, 1): 0.3, (2, 1): 0.4}
    same = paired_runs(ours, dict(ours))
    assert (same.t, same.p, mark(PairedTest(1, 0, same, same.p))) == (0.0, 1.0, "")
    constant = paired_runs({(1, 1): 1.0, (2, 1): 2.0}, {(1, 1): 1.5, (2, 1): 2.5})
    assert (constant.t, constant.p, mark(PairedTest(1, 0, constant, constant.p))) == (-math.inf, 0.0, "▼")


@pytest.mark.parametrize("ours", [{(1, 1): 0.5}, {(3, 1): 0.5}, {}])
def test_a_single_pair_or_none_is_no_test(ours):
    assert math.isnan(paired_runs(ours, {(1, 1): 0.3, (2, 1): 0.4}).p)


def test_three_learners_with_different_learning_rates_give_one_panel_and_two_tests():
    run = sweep(queries=40)
    (panel,) = layout(run.manifest).panels
    assert len(panel.lines) == 3
    tests = significance(run, METRIC)
    assert [(test.setting, test.baseline) for test in tests] == [(1, 0), (2, 0)]
    assert [test.corrected_p for test in tests] == holm([test.paired.p for test in tests])
    chosen = sweep(queries=40, baseline={"learner.kind": "foltr-es"})
    assert [(test.setting, test.baseline) for test in significance(chosen, METRIC)] == [(0, 2), (1, 2)]


def test_page_and_terminal_state_unit_number_and_correction():
    run = sweep(queries=40)
    (table,) = section(run, 0)["significance"]
    assert "200 of 200 queries (3 seeds averaged)" in table["method"]
    assert "Holm's correction for 2 comparisons" in table["method"]
    assert "training sets of folds overlap" in table["method"]
    printed = io.StringIO()
    Console(file=printed, width=80).print(terminal_tests(run))
    text = printed.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "over 200 of 200 queries" in " ".join(text.split())


@pytest.mark.parametrize(
    ("folds", "seeds", "queries", "words"),
    [
        (5, 3, 8, ["40 queries (3 seeds averaged)", "Each query counts once; training sets of folds overlap"]),
        (1, 1, 8, ["8 queries (one seed)", "p says nothing about other training sets"]),
        (5, 2, 0, ["5 folds (2 seeds averaged)", "Training sets of folds overlap"]),
        (1, 4, 0, ["4 seeds (of one fold)", "nothing about other queries"]),
        (2, 1, 0, ["2 folds (one seed)"]),
    ],
)
def test_the_method_states_the_unit_and_what_p_does_not_cover(folds, seeds, queries, words):
    stated = method(significance(sweep(folds=folds, seeds=seeds, queries=queries), METRIC))
    assert all(word in stated for word in words), stated
    if folds == 1:
        assert "folds overlap" not in stated


@pytest.mark.parametrize("queries", [0, 1])
def test_one_run_without_two_queries_is_not_tested(queries):
    run = sweep(folds=1, seeds=1, queries=queries)
    assert significance(run, METRIC) == []
    assert section(run, 0)["significance"][0]["rows"] == []


def test_settings_that_have_the_baselines_values_too_are_named_as_untested():
    run = sweep([*LEARNERS, {"learner.kind": "foltr-es", "learner.learning_rate": 0.1}], queries=9,
                baseline={"learner.kind": "pdgd"})  # fmt: skip
    tests = significance(run, METRIC)
    assert [(test.setting, test.baseline) for test in tests] == [(2, 0), (3, 0)]
    assert untested(run, tests) == {"has the baseline's values itself": [1]}
    printed = io.StringIO()
    Console(file=printed, width=80).print(terminal_tests(run))
    assert "Not tested (has the baseline's values itself): pdgd" in printed.getvalue()


USERS = [{**label, "users.clicks": users} for users in ("perfect", "informational") for label in LEARNERS]


def test_a_chosen_baseline_is_that_of_the_same_panel_unless_it_names_the_panel():
    run = sweep(USERS, baseline={"learner.kind": "foltr-es"})
    assert baselines(run.manifest) == {0: 2, 1: 2, 3: 5, 4: 5}
    run = sweep(USERS, baseline={"users.clicks": "perfect"})
    assert baselines(run.manifest) == {3: 0, 4: 1, 5: 2}


def test_a_setting_without_a_baseline_on_its_data_is_not_tested():
    run = sweep([{"learner.kind": "pdgd"}, {"learner.kind": "foltr-es"}], baseline={"learner.kind": "pdgd"})
    elsewhere = {"data": {"name": "mq2007"}}
    run = sweep([{"learner.kind": "pdgd"}, {"learner.kind": "foltr-es"}], baseline={"learner.kind": "pdgd"},
                settings=[settings()[0], {**settings()[2], "index": 1, **elsewhere}])  # fmt: skip
    assert baselines(run.manifest) == {1: None}
    assert significance(run, METRIC) == []


def test_settings_are_compared_with_the_first_line_of_their_panel(make_run):
    tests = significance(read(make_run()), METRIC)
    assert [(test.baseline, test.setting) for test in tests] == [(0, 1), (0, 2), (3, 4), (3, 5)]
    assert {(test.paired.unit, test.paired.pairs) for test in tests} == {("folds", 5)}


def test_a_figure_names_its_baseline_and_the_command_goes_first(make_run, full, tmp_path):
    figure = {**full["figure"], "baseline": {"privacy.epsilon": 4.5}}
    folder = make_run(figure=figure)
    assert baselines(read(folder).manifest) == {0: 2, 1: 2, 3: 5, 4: 5}
    page = write_page([folder], tmp_path / "page.html", baseline={"privacy.epsilon": 2.3})
    assert page.is_file()
    with pytest.raises(InputError, match=r"--baseline privacy.epsilon=7: no setting of"):
        write_page([folder], tmp_path / "other.html", baseline={"privacy.epsilon": 7})
    with pytest.raises(InputError, match=r"--baseline data.name=mq2007: every setting of .* none to test"):
        write_page([folder], tmp_path / "other.html", baseline={"data.name": "mq2007"})
