"""Tables of settings, and numbers as people read them."""

import io
import math

import polars as pl
import pytest
from rich.console import Console

from foltr.lab.records import read
from foltr.lab.reporting.labels import difference, duration, mean_sd, number, p_value
from foltr.lab.reporting.tables import metrics_of, settings_table
from foltr.lab.reporting.terminal import terminal_table


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
