"""Significance by closed arithmetic and against scipy; numbers as people read them."""

import io
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy.stats import ttest_rel

from foltr.lab.records import read
from foltr.lab.reporting.labels import difference, duration, mean_sd, number, p_value
from foltr.lab.reporting.significance import mark, paired_t, paired_t_tests, significance
from foltr.lab.reporting.tables import metrics_of, settings_table
from foltr.lab.reporting.terminal import terminal_table
from foltr.rng import stream


def table(values: dict[int, list[float]]) -> pl.DataFrame:
    """One fold, a seed a value, a single round."""
    entries = [
        (setting, 1, seed, 1, "offline_ndcg@10", value)
        for setting, found in values.items()
        for seed, value in enumerate(found)
    ]
    columns = ["setting", "fold", "seed", "round", "metric", "value"]
    return pl.DataFrame(entries, schema=columns, orient="row").with_columns(client=pl.lit(""))


def compared(values: dict[int, list[float]]):
    return paired_t_tests(table(values), "offline_ndcg@10", 0)


def test_two_pairs_by_hand():
    # differences 1 and 3: mean 2, sd sqrt(2), t = 2 / (sqrt(2) / sqrt(2)) = 2;
    # with one degree of freedom P(|T| > t) = 1 - 2 arctan(t) / pi
    (only,) = compared({0: [0.0, 0.0], 1: [1.0, 3.0]})
    assert only.t == pytest.approx(2.0)
    assert only.p == pytest.approx(1 - 2 * math.atan(2) / math.pi)
    assert (only.setting, only.baseline, only.pairs, only.mean, only.difference) == (1, 0, 2, 2.0, 2.0)


def test_three_pairs_by_hand():
    # differences 0, 1, 2: mean 1, sd 1, t = sqrt(3); with two degrees P(|T| > t) = 1 - t / sqrt(2 + t^2)
    t, p = paired_t(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    assert t == pytest.approx(math.sqrt(3))
    assert p == pytest.approx(1 - math.sqrt(3 / 5))


@pytest.mark.parametrize("size", [2, 5, 25, 200])
def test_agrees_with_scipy(size: int):
    draws = stream(size, purpose="noise").normal(2 * size)
    left, right = draws[:size] + 0.3, draws[size:]
    expected = ttest_rel(left, right)
    assert paired_t(left, right) == pytest.approx((expected.statistic, expected.pvalue))


def test_bonferroni_multiplies_by_the_number_of_comparisons_and_stops_at_one():
    found = compared({0: [0.0, 0.0, 0.0], 1: [1.0, 1.2, 1.4], 2: [0.1, -0.1, 0.1]})
    assert [f.corrected_p for f in found] == pytest.approx([min(1, 2 * f.p) for f in found])
    assert found[1].corrected_p == 1.0


def test_identical_samples_are_no_difference():
    (same,) = compared({0: [0.3, 0.4], 1: [0.3, 0.4]})
    assert (same.t, same.p, same.corrected_p, mark(same)) == (0.0, 1.0, 1.0, "")


def test_a_constant_difference_is_no_chance():
    (constant,) = compared({0: [1.0, 2.0], 1: [0.5, 1.5]})
    assert (constant.t, constant.p, mark(constant)) == (-math.inf, 0.0, "▼")


@pytest.mark.parametrize("ours", [[0.5], [math.nan, 0.5], []])
def test_a_single_pair_or_none_is_no_test(ours: list[float]):
    found = paired_t_tests(table({0: [0.3, 0.4], 1: ours}), "offline_ndcg@10", 0, settings=[1])
    assert math.isnan(found[0].p)
    assert p_value(found[0].corrected_p) == "–"
    assert mark(found[0]) == ""


def test_only_runs_of_the_same_fold_and_seed_are_paired():
    rows = table({0: [1.0, 2.0, 3.0], 1: [2.0, 4.0, 100.0]})
    rows = rows.with_columns(seed=pl.when((pl.col("setting") == 1) & (pl.col("seed") == 2)).then(7).otherwise("seed"))
    (found,) = paired_t_tests(rows, "offline_ndcg@10", 0)
    assert (found.pairs, found.difference) == (2, 1.5)


def test_settings_are_compared_with_the_first_line_of_their_panel(make_run):
    run = read(make_run())
    found = significance(run, "offline_ndcg@10")
    assert [(f.baseline, f.setting) for f in found] == [(0, 1), (0, 2), (3, 4), (3, 5)]
    assert all(f.corrected_p == pytest.approx(min(1.0, 4 * f.p)) for f in found)


def test_settings_table_holds_mean_sd_and_runs(make_run):
    run = read(make_run())
    rows = run.rows.filter((pl.col("metric") == "offline_ndcg@10") & (pl.col("round") == 50))
    first = rows.filter(pl.col("setting") == 0)["value"]
    content = settings_table(run, ["offline_ndcg@10", "not_measured"])
    assert content.keys == ["users.clicks", "privacy.epsilon"]
    assert content.rows[0]["values"] == ["perfect", "1.2"]
    assert content.rows[0]["cells"] == [f"{first.mean():.4f} ± {first.std():.4f}", "–"]
    assert content.rows[0]["runs"] == 10
    assert metrics_of(run)[0] == "offline_ndcg@10"


def test_a_cell_with_fewer_runs_says_so(make_run):
    run = read(make_run())
    short = (pl.col("metric") == "offline_mrr@10") & (pl.col("seed") == 1)
    content = settings_table(run._replace(rows=run.rows.filter(~short)), ["offline_ndcg@10", "offline_mrr@10"])
    assert content.rows[0]["cells"][1].endswith("(5 runs)")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (4_000_000, "4,000,000"),
        (12345.6, "12,346"),
        (304.14, "304.1"),
        (12.3, "12.30"),
        (1.5, "1.500"),
        (0.40712, "0.4071"),
        (-0.5, "−0.5000"),
        (math.nan, "–"),
        (None, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_sensible_digits(value: float | None, shown: str):
    assert number(value) == shown


def test_differences_and_spreads_take_the_digits_of_their_mean():
    assert mean_sd(304.14, 1.234, 25) == "304.1 ± 1.2"
    assert mean_sd(0.4, 0.0, 1) == "0.4000"
    assert mean_sd(None, None, 0) == "–"
    assert difference(3.5, 321.5) == "+3.5"
    assert difference(-0.02, 0.4) == "−0.0200"


@pytest.mark.parametrize(
    ("p", "shown"),
    [(0.0, "< .001"), (0.00099, "< .001"), (0.0124, ".012"), (0.5, ".500"), (0.9996, "1"), (1.0, "1")],
)
def test_p_values_read_as_in_papers(p: float, shown: str):
    assert p_value(p) == shown


def test_durations():
    assert [duration(s) for s in (12.34, 245.0, 7620.0, None)] == ["12.3 s", "4 min 05 s", "2 h 07 min", "–"]


@pytest.mark.parametrize("title", ["", "FPDGD, three interactions a round, ε 1.2 [b]x[/b] and a long tail " * 2])
def test_terminal_table_fits_80_columns(make_run, parts, full, title: str):
    about = {**full, "quick": True}
    run = read(make_run(settings=[{**one, "title": title} for one in parts.settings()], **about))
    printed = io.StringIO()
    Console(file=printed, width=80).print(terminal_table(run, ["offline_ndcg@10", "discounted_online_ndcg"]))
    text = printed.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "mq2007 (85 % sample)" in text
    assert "quick form" in text
    assert f"{0.4274:.4f}" in text
    assert not title or "[b]x[/b]" in "".join(text.split())
