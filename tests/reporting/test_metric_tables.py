"""Tables whose cells are metrics: every cell by hand."""

import msgspec
import polars as pl
import pytest
from runs_by_hand import run_from

from foltr.lab.reporting.tables import metric_tables

TABLE = {
    "title": "Every party",
    "corner": "nDCG@10",
    "rows": ["Local", "CS-F-LTR"],
    "columns": ["party 1", "mean"],
    "cell": "nDCG@10, {row}, {column}",
}


def run_of(*settings, tables=(TABLE,), data="nfcorpus"):
    """settings[i] = {metric: values of its runs}."""
    rows = [
        {"setting": i, "fold": 1, "seed": seed, "round": 1, "metric": metric, "value": value}
        for i, found in enumerate(settings)
        for metric, values in found.items()
        for seed, value in enumerate(values)
    ]
    listed = [{"index": i, "label": {"silo.top": 50 * (i + 1)}, "data": {"name": data}} for i in range(len(settings))]
    return run_from({"settings": listed, "figure": {"tables": list(tables)}}, pl.DataFrame(rows))


MEASURED = {
    "nDCG@10, Local, party 1": [0.5, 0.7],
    "nDCG@10, CS-F-LTR, party 1": [0.4, 0.4],
    "nDCG@10, CS-F-LTR, mean": [0.7, 0.7],
    "cover": [1.0, 1.0],
}


def texts(table, setting=0):
    return [[cell["text"] for cell in row["cells"]] for row in table["settings"][setting]["rows"]]


def best(table):
    return [[cell["best"] for cell in row["cells"]] for row in table["settings"][0]["rows"]]


def test_cells_are_means_with_their_spread_and_empty_where_nothing_was_measured():
    (table,) = metric_tables(run_of(MEASURED))
    assert table["columns"] == ["party 1", "mean"]
    assert [row["name"] for row in table["settings"][0]["rows"]] == ["Local", "CS-F-LTR"]
    # 0.5 and 0.7: sd = 0.1 * sqrt(2)
    assert texts(table) == [["0.6000 ± 0.1414", ""], ["0.4000 ± 0.0000", "0.7000 ± 0.0000"]]
    assert best(table) == [[False, False], [False, False]]


def test_data_and_runs_are_said():
    (table,) = metric_tables(run_of(MEASURED))
    assert table["title"] == "Every party (2 runs)"
    assert table["note"] == "On nfcorpus: mean ± standard deviation over runs."
    (single,) = metric_tables(run_of({"nDCG@10, Local, mean": [0.5]}))
    assert single["title"] == "Every party (1 run)"
    assert "no standard deviation" in single["note"]
    assert texts(single) == [["", "0.5000"], ["", ""]]


def test_a_cell_with_fewer_runs_says_so():
    (table,) = metric_tables(run_of(MEASURED | {"nDCG@10, Local, mean": [0.5]}))
    assert table["title"] == "Every party (1 to 2 runs)"
    assert texts(table)[0][1] == "0.5000 (1 run)"


@pytest.mark.parametrize(
    ("bold", "expected"), [("column", [[True, False], [False, True]]), ("row", [[True, False], [False, True]])]
)
def test_the_highest_mean_of_a_column_or_row_is_emphasised(bold, expected):
    (table,) = metric_tables(run_of(MEASURED, tables=[TABLE | {"bold": bold}]))
    assert best(table) == expected
    assert table["note"].endswith(f"Bold: the highest mean of its {bold}.")


def test_columns_and_rows_are_not_the_same():
    values = {
        ("Local", "party 1"): 0.9,
        ("Local", "mean"): 0.8,
        ("CS-F-LTR", "party 1"): 0.2,
        ("CS-F-LTR", "mean"): 0.1,
    }
    measured = {f"nDCG@10, {row}, {column}": [value] for (row, column), value in values.items()}
    by_column, by_row = metric_tables(run_of(measured, tables=[TABLE | {"bold": b} for b in ("column", "row")]))
    assert best(by_column) == [[True, True], [False, False]]
    assert best(by_row) == [[True, False], [True, False]]


def test_means_that_read_the_same_are_emphasised_together_and_what_is_no_number_never():
    measured = {"nDCG@10, Local, mean": [0.50001], "nDCG@10, CS-F-LTR, mean": [0.50002]}
    broken = measured | {"nDCG@10, Local, party 1": [float("nan")]}
    (table,) = metric_tables(run_of(broken, tables=[TABLE | {"bold": "column"}]))
    assert best(table) == [[False, True], [False, True]]
    assert texts(table)[0][0] == "–"


def test_every_setting_has_its_table_with_its_name_and_one_without_cells_has_none():
    (table,) = metric_tables(run_of(MEASURED, {"cover": [1.0]}, MEASURED))
    assert [one["name"] for one in table["settings"]] == ["top 50", "top 150"]
    (alone,) = metric_tables(run_of(MEASURED))
    assert alone["settings"][0]["name"] == ""


def test_a_table_without_any_cell_is_left_out():
    other = TABLE | {"cell": "ERR, {row}, {column}"}
    assert [table["title"] for table in metric_tables(run_of(MEASURED, tables=[other, TABLE]))] == [
        "Every party (2 runs)"
    ]
    assert metric_tables(run_of(MEASURED, tables=[])) == []


def test_numbers_may_name_rows_and_columns():
    counted = {"title": "By K", "corner": "cover", "rows": ["sound"], "columns": [50, 0.5], "cell": "{row} at {column}"}
    (table,) = metric_tables(run_of({"sound at 50": [0.8], "sound at 0.5": [0.9]}, tables=[counted]))
    assert table["columns"] == ["50", "0.5"]
    assert texts(table) == [["0.8000", "0.9000"]]


def test_an_unknown_emphasis_is_refused():
    with pytest.raises(msgspec.ValidationError, match=r"'best' - at `\$.figure.tables\[0\].bold`"):
        run_of(MEASURED, tables=[TABLE | {"bold": "best"}])
