"""What reports read of a run: one value a metric and single run, from rows stored with gaps."""

import math

import polars as pl
import pytest

from foltr.lab import records

SCHEMA = {"setting": pl.Int32, "fold": pl.Int32, "seed": pl.Int64, "round": pl.Int64, "metric": pl.Utf8}


def rows(*stored):
    """(setting, fold, seed, metric, {round: value}) ..."""
    flat = [
        (setting, fold, seed, round, metric, value)
        for setting, fold, seed, metric, values in stored
        for round, value in values.items()
    ]
    return pl.DataFrame(flat, schema={**SCHEMA, "value": pl.Float64}, orient="row").with_columns(client=pl.lit(""))


def only(table, metric, **where):
    """The one value of a metric."""
    found = table.filter(pl.col("metric") == metric, **where)["value"].to_list()
    assert len(found) == 1
    return found[0]


def test_online_means_count_every_round_once():
    # the row of round 1 stands for one round, that of 4 for three, that of 10 for six
    stored = rows((0, 1, 1, "online_ndcg@10", {1: 0.2, 4: 0.5, 10: 0.8}))
    assert only(records.summary(stored), "online_ndcg@10") == pytest.approx((0.2 + 3 * 0.5 + 6 * 0.8) / 10)


def test_the_order_of_rows_does_not_matter():
    stored = rows(
        (0, 1, 1, "online_ndcg@10", {10: 0.8, 1: 0.2, 4: 0.5}), (0, 1, 1, "offline_ndcg@10", {10: 0.6, 5: 0.4})
    )
    assert only(records.summary(stored), "online_ndcg@10") == pytest.approx((0.2 + 3 * 0.5 + 6 * 0.8) / 10)
    assert only(records.summary(stored), "offline_ndcg@10") == 0.6


def test_single_runs_are_kept_apart():
    stored = rows(
        (0, 1, 1, "online_ndcg@10", {1: 0.1, 3: 0.4}),
        (0, 1, 2, "online_ndcg@10", {1: 0.2, 3: 0.5}),
        (0, 2, 1, "online_ndcg@10", {1: 0.3, 3: 0.6}),
        (1, 1, 1, "online_ndcg@10", {1: 0.4, 3: 0.7}),
    )
    table = records.summary(stored)
    assert only(table, "online_ndcg@10", setting=0, fold=1, seed=1) == pytest.approx((0.1 + 2 * 0.4) / 3)
    assert only(table, "online_ndcg@10", setting=0, fold=1, seed=2) == pytest.approx((0.2 + 2 * 0.5) / 3)
    assert only(table, "online_ndcg@10", setting=0, fold=2, seed=1) == pytest.approx((0.3 + 2 * 0.6) / 3)
    assert only(table, "online_ndcg@10", setting=1, fold=1, seed=1) == pytest.approx((0.4 + 2 * 0.7) / 3)


def test_final_values_are_those_of_the_last_round():
    stored = rows(
        (0, 1, 1, "offline_ndcg@10", {1: 0.3, 50: 0.5, 100: 0.45}),
        (0, 1, 1, "offline_mrr@10", {1: 0.4, 50: 0.7, 100: 0.6}),
        (0, 1, 1, "discounted_online_ndcg", {1: 0.4, 100: 37.5}),
    )
    table = records.summary(stored)
    assert only(table, "offline_ndcg@10") == 0.45
    assert only(table, "offline_mrr@10") == 0.6
    assert only(table, "discounted_online_ndcg") == 37.5


def test_max_rr_of_the_first_round_and_of_the_last_tenth():
    # of 100 rounds the last tenth is 91 .. 100: the rows of 95 (five rounds) and of 100 (five), not that of 90
    stored = rows((0, 1, 1, "online_max_rr", {1: 0.1, 50: 0.2, 90: 0.3, 95: 0.5, 100: 0.7}))
    table = records.summary(stored)
    assert only(table, "online_max_rr_first") == 0.1
    assert only(table, "online_max_rr_last_tenth") == pytest.approx((5 * 0.5 + 5 * 0.7) / 10)
    assert only(table, "online_max_rr") == pytest.approx((0.1 + 49 * 0.2 + 40 * 0.3 + 5 * 0.5 + 5 * 0.7) / 100)


def test_rows_of_unequal_gaps_weigh_unequally_in_the_last_tenth():
    stored = rows((0, 1, 1, "online_max_rr", {1: 0.1, 900: 0.2, 902: 0.5, 1000: 0.7}))
    expected = (2 * 0.5 + 98 * 0.7) / 100
    assert only(records.summary(stored), "online_max_rr_last_tenth") == pytest.approx(expected)


@pytest.mark.parametrize("rounds", [1, 5, 10, 250, 1000])
def test_the_last_tenth_of_complete_rows(rounds):
    stored = rows((0, 1, 1, "online_max_rr", {round: float(round) for round in range(1, rounds + 1)}))
    last = [round for round in range(1, rounds + 1) if 10 * round > 9 * rounds]
    assert only(records.summary(stored), "online_max_rr_last_tenth") == pytest.approx(sum(last) / len(last))


def test_runs_of_different_length_have_their_own_last_tenth():
    stored = rows(
        (0, 1, 1, "online_max_rr", {1: 0.1, 9: 0.2, 10: 0.3}), (1, 1, 1, "online_max_rr", {1: 0.1, 90: 0.2, 100: 0.9})
    )
    table = records.summary(stored)
    assert only(table, "online_max_rr_last_tenth", setting=0) == pytest.approx(0.3)
    assert only(table, "online_max_rr_last_tenth", setting=1) == pytest.approx(0.9)


def test_statistics_are_mean_and_spread_over_folds_and_seeds():
    stored = rows(
        (0, 1, 1, "offline_ndcg@10", {10: 0.4}),
        (0, 1, 2, "offline_ndcg@10", {10: 0.5}),
        (0, 2, 1, "offline_ndcg@10", {10: 0.9}),
        (1, 1, 1, "offline_ndcg@10", {10: 0.7}),
    )
    table = records.statistics(stored)
    # mean .6; deviations -.2, -.1, .3; squares .04 + .01 + .09 over n - 1 = 2
    assert table[0]["offline_ndcg@10"] == pytest.approx((0.6, math.sqrt(0.14 / 2), 3))
    assert table[1]["offline_ndcg@10"] == (0.7, 0.0, 1)  # one run has no spread
    assert set(table) == {0, 1}


def test_statistics_name_every_metric_once():
    metrics = ("online_ndcg@10", "online_max_rr", "discounted_online_ndcg", "offline_ndcg@10", "offline_mrr@10")
    stored = rows(*((0, 1, 1, metric, {1: 0.5, 2: 0.5}) for metric in metrics))
    assert set(records.statistics(stored)[0]) == {*metrics, "online_max_rr_first", "online_max_rr_last_tenth"}


def test_curves_are_means_over_runs_by_round():
    stored = rows(
        (0, 1, 1, "offline_ndcg@10", {2: 0.5, 1: 0.1}),
        (0, 2, 1, "offline_ndcg@10", {2: 0.7, 1: 0.3}),
        (1, 1, 1, "offline_ndcg@10", {1: 0.9}),
        (0, 1, 1, "online_ndcg@10", {1: 0.0}),
    )
    curve = records.curves(stored, "offline_ndcg@10").to_dicts()
    assert [(point["setting"], point["round"], point["runs"]) for point in curve] == [(0, 1, 2), (0, 2, 2), (1, 1, 1)]
    assert [point["mean"] for point in curve] == pytest.approx([0.2, 0.6, 0.9])
    # two values that differ by .2 have the standard deviation .2 / sqrt(2); one value has none
    assert [point["sd"] for point in curve[:2]] == pytest.approx([0.2 / math.sqrt(2)] * 2)
    assert curve[2]["sd"] is None


def test_values_of_single_clients_are_kept_apart_from_the_federation():
    whole = rows((0, 1, 1, "offline_ndcg@10", {10: 0.5}), (0, 2, 1, "offline_ndcg@10", {10: 0.7}))
    of_clients = [
        rows((0, fold, 1, "offline_ndcg@10", {10: value})).with_columns(client=pl.lit(client))
        for client, value, fold in (("a", 0.2, 1), ("a", 0.4, 2), ("b", 0.9, 1))
    ]
    both = pl.concat([whole, *of_clients])
    assert records.statistics(both)[0]["offline_ndcg@10"] == pytest.approx((0.6, math.sqrt(0.02), 2))
    assert records.client_statistics(both)[0]["a"] == pytest.approx((0.3, math.sqrt(0.02), 2))
    assert records.client_statistics(both)[0]["b"] == (0.9, 0.0, 1)
    assert records.curves(both, "offline_ndcg@10")["mean"].to_list() == pytest.approx([0.6])
