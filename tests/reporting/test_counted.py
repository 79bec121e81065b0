"""Offline means say which queries they count, and stand beside the mean by the other choice."""

import polars as pl
import pytest
from rich.console import Console
from runs_by_hand import run_from

from foltr.lab.records import QUERY_SCHEMA
from foltr.lab.reporting.counted import both_words, counted, counted_note, other_mean
from foltr.lab.reporting.page import render, section
from foltr.lab.reporting.series import caption
from foltr.lab.reporting.significance import paired_settings
from foltr.lab.reporting.tables import best_settings, metrics_of
from foltr.lab.reporting.terminal import terminal_table

NDCG = "offline_ndcg@10"
OTHER = {"skip": "zero", "zero": "skip"}


def run_of(parts, empty="skip", *, relevant=3, queries=4):
    """Two settings in two folds; of four queries a fold three have a relevant document and the values .5, .6, .7."""
    settings = [parts.setting(i, {"learner.kind": kind}) for i, kind in enumerate(("pdgd", "foltr-es"))]
    for one in settings:
        one["resolved"]["metrics"] = {"empty": empty}
    values = [0.5, 0.6, 0.7, 0.8][:relevant]
    means = {"skip": sum(values) / relevant, "zero": sum(values) / queries}
    rows, each = [], []
    for one in settings:
        for fold in (1, 2):
            key = (one["index"], fold, 1)
            rows += [(*key, 50, NDCG, means[empty]), (*key, 50, f"{NDCG} ({OTHER[empty]})", means[OTHER[empty]])]
            for query in range(queries):
                value = values[query] if query < relevant else None
                each.append((*key, f"{fold}-{query}", NDCG, value))
    run = run_from({"settings": settings}, parts.rows_of(settings, folds=2, seeds=1, offline=False))
    schema = {name: kind for name, kind in run.rows.schema.items() if name != "client"}
    stored = pl.DataFrame(rows, schema=schema, orient="row").with_columns(client=pl.lit(""))
    return run._replace(
        rows=pl.concat([run.rows, stored]), queries=pl.DataFrame(each, schema=QUERY_SCHEMA, orient="row")
    )


def printed(content):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(content)
    return captured.get()


def test_the_mean_says_its_queries_and_the_mean_over_all(parts):
    run = run_of(parts)
    assert counted(run)[0, NDCG] == (6, 8)
    assert both_words(run, run.manifest.settings[0], NDCG) == "0.6000 (6 of 8 queries; 0.4500 over all)"


def test_with_zero_the_mean_over_queries_with_a_relevant_document_stands_beside_it(parts):
    run = run_of(parts, "zero")
    assert both_words(run, run.manifest.settings[0], NDCG) == "0.4500 (8 of 8 queries; 0.6000 if relevant)"
    assert "over all test queries (with a relevant document: mq2007: 6 of 8, if relevant x 1.333)" in counted_note(
        run, [NDCG]
    )


def test_terminal_page_captions_and_the_best_setting_show_both(parts):
    run = run_of(parts)
    text = printed(terminal_table(run))
    words = " ".join(text.split())
    assert "0.6000 ± 0.0000" in text
    assert text.count("0.4500 over all") == 2
    note = "Offline means are over the test queries with a relevant document (mq2007: 6 of 8, over all x 0.750)."
    assert note in words
    assert note in caption(run, NDCG)
    assert "(6 of 8 queries; 0.4500 over all)" in best_settings(run)[0]
    page = render([section(run, 0)])
    assert page.count('<small class="nowrap">0.4500 over all</small>') == 2
    assert note in page


def test_lines_of_the_terminal_fit_80_columns(parts):
    assert max(map(len, printed(terminal_table(run_of(parts))).splitlines())) <= 80


def test_online_values_say_that_such_queries_count_as_zero(parts):
    said = "Online nDCG@10 counts a query without a relevant document as 0."
    run = run_of(parts)
    for metric in ("online_ndcg@10", "discounted_online_ndcg"):
        assert said in caption(run, metric)
    assert said not in caption(run, "online_max_rr")
    assert said in " ".join(printed(terminal_table(run)).split())


def test_the_other_mean_is_no_metric_of_its_own(parts):
    assert not [metric for metric in metrics_of(run_of(parts)) if "(" in metric]


def test_no_other_mean_is_shown_where_every_query_has_a_relevant_document(parts):
    run = run_of(parts, relevant=4)
    assert other_mean(run, run.manifest.settings[0], NDCG) is None
    assert both_words(run, run.manifest.settings[0], NDCG) == "0.6500 (8 of 8 queries)"


def test_a_run_without_values_of_queries_says_the_mean_only(parts):
    run = run_of(parts)
    old = run._replace(queries=run.queries.clear(), rows=run.rows.filter(~pl.col("metric").str.contains(r" \(")))
    assert both_words(old, old.manifest.settings[0], NDCG) == "0.6000"
    assert counted_note(old, [NDCG]) == ""


@pytest.mark.parametrize(("empty", "pairs", "mean"), [("skip", 6, 0.6), ("zero", 8, 0.45)])
def test_tests_are_over_the_queries_that_the_mean_counts(parts, empty, pairs, mean):
    found = paired_settings(run_of(parts, empty), 1, 0, NDCG)
    assert (found.unit, found.pairs) == ("queries", pairs)
    assert found.left == pytest.approx(mean, abs=1e-7)
