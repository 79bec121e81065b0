"""Tables of pairs of choices, and of what clients gain: by hand."""

from pathlib import Path

import polars as pl

from foltr.lab.records import Run
from foltr.lab.reporting.tables import gains, matrices


def run_of(settings, values, figure=None):
    """A run of single rounds: settings as flat labels, values[setting] = {metric: number}."""
    rows = [
        {"setting": place, "fold": 1, "seed": 1, "round": 1, "metric": metric, "value": value}
        for place, found in enumerate(values)
        for metric, value in found.items()
    ]
    listed = [{"index": place, "label": label, "resolved": {}} for place, label in enumerate(settings)]
    return Run(Path(), {"settings": listed, "figure": figure or {}}, pl.DataFrame(rows))


FIGURE = {
    "metric": "offline_ndcg@10",
    "matrix": {"rows": ["rule", "alarm"], "columns": ["attack"], "panels": ["users"]},
}


def test_every_pair_has_its_cell_and_the_shade_goes_from_the_lowest_to_the_highest():
    settings = [
        {"rule": "mean", "alarm": False, "attack": "lie", "users": "perfect"},
        {"rule": "mean", "alarm": True, "attack": "fang", "users": "perfect"},
        {"rule": "mean", "alarm": False, "attack": "lie", "users": "noisy"},
    ]
    run = run_of(settings, [{"offline_ndcg@10": value} for value in (0.5, 0.3, 0.4)], FIGURE)
    perfect, noisy = matrices(run)
    assert perfect["title"] == "perfect"
    assert perfect["columns"] == ["lie", "fang"]
    assert [row["name"] for row in perfect["rows"]] == ["mean", "mean, alarm"]
    assert [[cell["text"] for cell in row["cells"]] for row in perfect["rows"]] == [[".500", "–"], ["–", ".300"]]
    assert perfect["rows"][0]["cells"][0]["share"] == 100
    assert perfect["rows"][1]["cells"][1]["share"] == 0
    assert noisy["rows"][0]["cells"][0]["share"] == 50


def test_a_figure_that_asks_for_no_matrix_gets_none():
    assert matrices(run_of([{"rule": "mean"}], [{"offline_ndcg@10": 0.5}])) == []


def test_gains_are_against_the_setting_in_which_clients_stay_alone():
    settings = [{"personal.kind": "local_only"}, {"personal.kind": "none"}]
    values = [{"client a": 0.5, "client b": 0.4}, {"client a": 0.6, "client b": 0.3}]
    (table,) = gains(run_of(settings, values))
    assert table["clients"] == ["a", "b"]
    alone, together = table["rows"]
    assert (alone["gain"], alone["lose"]) == (0, 0)
    assert (together["gain"], together["lose"]) == (1, 1)
    assert [cell["gain"] for cell in together["cells"]] == ["+0.1000", "−0.1000"]


def test_without_anybody_alone_there_is_nothing_to_gain_against():
    assert gains(run_of([{"personal.kind": "none"}], [{"client a": 0.6}])) == []
