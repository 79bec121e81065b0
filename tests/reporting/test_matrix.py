"""Tables of pairs of choices, and of what clients gain: by hand."""

import polars as pl
from runs_by_hand import run_from

from foltr.lab.reporting.tables import gains, matrices

METRIC = "offline_ndcg@10"


def run_of(settings, values, figure=None):
    """Settings as flat labels, values[setting] = {client: number}; the client "" is the whole federation."""
    rows = [
        {"setting": place, "fold": 1, "seed": 1, "round": 1, "metric": METRIC, "client": client, "value": value}
        for place, found in enumerate(values)
        for client, value in found.items()
    ]
    listed = [{"index": place, "label": label, "resolved": {}} for place, label in enumerate(settings)]
    return run_from({"settings": listed, "figure": figure or {}}, pl.DataFrame(rows))


FIGURE = {
    "metric": METRIC,
    "matrix": {"rows": ["aggregator", "alarm"], "columns": ["attack"], "panels": ["users"]},
}


def test_every_pair_has_its_cell_and_the_shade_goes_from_the_lowest_to_the_highest():
    settings = [
        {"aggregator": "mean", "alarm": False, "attack": "lie", "users": "perfect"},
        {"aggregator": "mean", "alarm": True, "attack": "fang", "users": "perfect"},
        {"aggregator": "mean", "alarm": False, "attack": "lie", "users": "noisy"},
    ]
    run = run_of(settings, [{"": value} for value in (0.5, 0.3, 0.4)], FIGURE)
    perfect, noisy = matrices(run)
    assert perfect["title"] == "perfect"
    assert perfect["columns"] == ["lie", "fang"]
    assert [row["name"] for row in perfect["rows"]] == ["mean", "mean, alarm"]
    assert [[cell["text"] for cell in row["cells"]] for row in perfect["rows"]] == [[".500", "–"], ["–", ".300"]]
    assert perfect["rows"][0]["cells"][0]["share"] == 100
    assert perfect["rows"][1]["cells"][1]["share"] == 0
    assert noisy["rows"][0]["cells"][0]["share"] == 50


def test_a_figure_that_asks_for_no_matrix_gets_none():
    assert matrices(run_of([{"aggregator": "mean"}], [{"": 0.5}])) == []


def test_gains_are_against_local_only_training():
    settings = [{"personal.kind": "local_only"}, {"personal.kind": "none"}]
    values = [{"": 0.45, "a": 0.5, "b": 0.4}, {"": 0.45, "a": 0.6, "b": 0.3}]
    (table,) = gains(run_of(settings, values))
    assert table["clients"] == ["a", "b"]
    local_only, together = table["rows"]
    assert (local_only["gain"], local_only["lose"]) == (0, 0)
    assert (together["gain"], together["lose"]) == (1, 1)
    assert [cell["gain"] for cell in together["cells"]] == ["+0.1000", "−0.1000"]


def test_without_a_local_only_setting_there_are_no_gains():
    assert gains(run_of([{"personal.kind": "none"}], [{"a": 0.6}])) == []
