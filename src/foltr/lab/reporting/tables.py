"""Tables of a run: settings by metrics, metrics by metrics, a matrix of choices, gains of clients. Cells are mean ± sd.

A figure asks for metric tables by `tables`, a list of

    title    its heading
    corner   words above the names of the rows
    rows     names of rows
    columns  names of columns
    cell     the metric's name, with {row} and {column} in their places
    bold     "column" or "row": within each the highest mean is emphasised; absent: none is

and for a matrix by `matrix = { rows, columns, panels = [keys] }`: one number for every pair of choices, with a shade
from the lowest to the highest number of the page. Gains of clients are listed wherever clients were measured one by one
and one setting of the panel trains local-only.
"""

import math
from typing import Any, NamedTuple

from foltr.lab.records import (
    DISCOUNTED,
    OFFLINE,
    MetricTable,
    Run,
    SettingRecord,
    Statistic,
    client_statistics,
    is_other,
    other_name,
    statistics,
)
from foltr.lab.reporting.counted import (
    Counted,
    both_words,
    counted_note,
    empty_of,
    other_mean,
    other_words,
    size_words,
)
from foltr.lab.reporting.labels import (
    METRIC_NAMES,
    NOTHING,
    data_names,
    described,
    difference,
    figure_metrics,
    figure_of,
    listed_metrics,
    mean_sd,
    metric_name,
    number,
    plain,
    scatter_metrics,
    setting_name,
    swept_keys,
    value_of,
)
from foltr.lab.reporting.layout import baseline_groups
from foltr.types import Empty

_REGIMES = ("BM25 (one field, no labels)", "Local", "Global", "CS-F-LTR", "pooled")
OF_TEXTS = (
    *(f"nDCG@10, average, {regime}" for regime in _REGIMES),
    "recall@K", "recall", "ms a query", "AUC",
)  # fmt: skip


def metrics_of(run: Run) -> list[str]:
    """Metrics that the run measured: the known ones in their usual order, then any others."""
    measured = {metric for cells in statistics(run.rows).values() for metric in cells if not is_other(metric)}
    measured -= scatter_metrics(run.manifest)
    known = [metric for metric in METRIC_NAMES if metric in measured]
    return known + sorted(measured - set(known))


def main_metrics(run: Run) -> list[str]:
    """Those of the figure, else the quality of the final ranker and the discounted online metric.

    Cross-silo: nDCG@10 of every regime, or recall and time.
    """
    usual = [*listed_metrics(run.manifest), DISCOUNTED, *OF_TEXTS]
    wanted, measured = figure_metrics(run.manifest) or usual, metrics_of(run)
    return [metric for metric in wanted if metric in measured] or measured[:1]


class Table(NamedTuple):
    keys: list[str]  # swept keys, one column each
    metrics: list[str]
    rows: list[dict[str, Any]]  # name, values [keys], cells [metrics], others [metrics], runs


def settings_table(run: Run, metrics: list[str] | None = None) -> Table:
    """Settings x metrics, each cell "mean ± sd"; a cell says its runs where they differ from the row's.

    `others` are the means by the other choice of `metrics.empty`, "" where there is none.
    """
    settings = run.manifest.settings
    keys, measured = swept_keys(settings), statistics(run.rows)
    metrics = metrics_of(run) if metrics is None else metrics
    rows = [_row(s, keys, metrics, measured.get(s.index, {})) for s in settings]
    others = [[other_mean(run, setting, metric) for metric in metrics] for setting in settings]
    words = [
        [other_words(one.mean if one else None, empty_of(setting)) for one in row]
        for setting, row in zip(settings, others, strict=True)
    ]
    return Table(keys, metrics, [{**row, "others": other} for row, other in zip(rows, words, strict=True)])


def _row(setting: SettingRecord, keys: list[str], metrics: list[str], measured: dict[str, Statistic]) -> dict[str, Any]:
    runs = max((measured[metric].runs for metric in metrics if metric in measured), default=0)
    values = [value_of(setting, key) for key in keys]
    return {
        "name": setting_name(setting),
        "values": [NOTHING if value is None else plain(value) for value in values],
        "cells": [mean_cell(measured.get(metric), runs) for metric in metrics],
        "runs": runs,
    }


def mean_cell(cell: Statistic | None, usual: int) -> str:
    """Mean ± sd, with the number of runs where it is not the usual one."""
    if cell is None:
        return NOTHING
    spread = mean_sd(*cell)
    return spread if cell.runs == usual else f"{spread} ({cell.runs} run{'' if cell.runs == 1 else 's'})"


def best_settings(run: Run) -> list[str]:
    """A sentence for each group of compared settings: the best one, and on which part it was chosen."""
    measured, settings = statistics(run.rows), {s.index: s for s in run.manifest.settings}
    tested = listed_metrics(run.manifest)[0]
    by = tested.replace("offline", "validation", 1) if run.manifest.tune == "validation" else tested
    sentences = []
    for group in baseline_groups(run.manifest):
        values = {index: measured[index][by].mean for index in group if by in measured.get(index, {})}
        if len(values) > 1:
            best = max(values, key=values.__getitem__)
            sentences.append(_best(run, settings[best], tested, by))
    return sentences


def _best(run: Run, setting: SettingRecord, metric: str, by: str) -> str:
    name, short = setting_name(setting), metric_name(metric).removeprefix("offline ")
    test = both_words(run, setting, metric) if metric in statistics(run.rows)[setting.index] else NOTHING
    if run.manifest.tune == "validation":
        there = both_words(run, setting, by)
        return f"Best setting, chosen on the validation part: {name}, {short} {there} there and {test} on test."
    return (
        f"Highest {short} on test: {name}, {test}. It was chosen on test, so the value is too high for a "
        'new test set; tune = "validation" in the spec chooses on the validation part.'
    )


Grid = list[list[Statistic | None]]  # [rows][columns]; None where the metric was not measured


def metric_tables(run: Run) -> list[dict[str, Any]]:
    """Those with at least one cell: title, note, corner, columns, and the rows of every setting."""
    wanted = figure_of(run.manifest).tables or []
    return [table for one in wanted if (table := _metric_table(run, one))["settings"]]


def _metric_table(run: Run, wanted: MetricTable) -> dict[str, Any]:
    settings, measured = run.manifest.settings, statistics(run.rows)
    grids = [(setting, _grid(wanted, measured.get(setting.index, {}))) for setting in settings]
    filled = [(setting, grid) for setting, grid in grids if _cells(grid)]
    runs, filled_on = {cell.runs for _, grid in filled for cell in _cells(grid)}, data_names([s for s, _ in filled])
    return {
        "title": f"{wanted.title} ({_range(runs)})",
        "note": f"{_note(wanted, runs, filled_on)} {counted_note(run, _names(wanted))}".strip(),
        "corner": wanted.corner,
        "columns": [plain(column) for column in wanted.columns],
        "settings": [
            {
                "name": setting_name(setting) if len(settings) > 1 else "",
                "rows": _metric_rows(wanted, grid, max(cell.runs for cell in _cells(grid))),
            }
            for setting, grid in filled
        ],
    }


def _grid(wanted: MetricTable, measured: dict[str, Statistic]) -> Grid:
    names, width = _names(wanted), len(wanted.columns)
    return [[measured.get(name) for name in names[row * width :][:width]] for row in range(len(wanted.rows))]


def _names(wanted: MetricTable) -> list[str]:
    """Metrics of the cells, row by row."""
    return [
        wanted.cell.replace("{row}", plain(row)).replace("{column}", plain(column))
        for row in wanted.rows
        for column in wanted.columns
    ]


def _cells(grid: Grid) -> list[Statistic]:
    return [cell for row in grid for cell in row if cell is not None]


def _range(runs: set[int]) -> str:
    """ "1 run", "5 runs", "3 to 5 runs"."""
    low, high = min(runs, default=0), max(runs, default=0)
    return f"{low} to {high} runs" if low < high else f"{high} run{'' if high == 1 else 's'}"


def _note(wanted: MetricTable, runs: set[int], data: str) -> str:
    spread = "mean ± standard deviation over runs" if max(runs, default=0) > 1 else "one run, no standard deviation"
    return f"On {data}: {spread}." + (f" Bold: the highest mean of its {wanted.bold}." if wanted.bold else "")


def _metric_rows(wanted: MetricTable, grid: Grid, runs: int) -> list[dict[str, Any]]:
    """Cells with fewer than the setting's runs say so."""
    best = _emphasised(grid, wanted.bold)
    texts = [["" if cell is None else mean_cell(cell, runs) for cell in row] for row in grid]
    return [
        {"name": plain(name), "cells": [{"text": text, "best": top} for text, top in zip(row, tops, strict=True)]}
        for name, row, tops in zip(wanted.rows, texts, best, strict=True)
    ]


def _emphasised(grid: Grid, bold: str | None) -> list[list[bool]]:
    """[rows][columns]"""
    if bold == "column":
        turned = [_highest(list(column)) for column in zip(*grid, strict=True)]
        return [list(row) for row in zip(*turned, strict=True)]
    return [_highest(row) if bold else [False] * len(row) for row in grid]


def _highest(cells: list[Statistic | None]) -> list[bool]:
    """The highest mean, and those that print equal to it."""
    means = [math.nan if cell is None else cell.mean for cell in cells]
    top = number(max(filter(math.isfinite, means), default=None))
    return [math.isfinite(mean) and number(mean) == top for mean in means]


def matrices(run: Run) -> list[dict[str, Any]]:
    """One table for each panel: title, columns, rows of cells."""
    figure = figure_of(run.manifest)
    wanted = figure.matrix
    if not wanted:
        return []
    measured, metric = statistics(run.rows), figure.metric
    panels: dict[str, dict[str, dict[str, tuple[float, str]]]] = {}  # mean, and the other mean in words
    for setting in run.manifest.settings:
        cell = measured.get(setting.index, {}).get(metric)
        row, column = (_choice(setting, keys) for keys in (wanted.rows, wanted.columns))
        if cell is not None:
            other = other_mean(run, setting, metric)
            words = other_words(other.mean if other else None, empty_of(setting))
            panels.setdefault(described(setting, wanted.panels), {}).setdefault(row, {})[column] = cell.mean, words
    means = [mean for panel in panels.values() for row in panel.values() for mean, _ in row.values()]
    about = {"metric": metric_name(metric), "note": counted_note(run, [metric])}
    return [_matrix_panel(title, rows, min(means), max(means)) | about
            for title, rows in panels.items()]  # fmt: skip


def _choice(setting: SettingRecord, keys: list[str]) -> str:
    """The values of a few keys, none and false left out."""
    values = [value_of(setting, key) for key in keys]
    words = [key.rsplit(".", 1)[-1].replace("_", " ") if value is True else plain(value)
             for key, value in zip(keys, values, strict=True) if value not in (None, False)]  # fmt: skip
    return ", ".join(words)


def _matrix_panel(title: str, rows: dict[str, dict[str, tuple[float, str]]], low: float, high: float) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    reach = (high - low) or 1.0
    cells = [
        {"name": name, "cells": [_shaded(row.get(column), low, reach) for column in columns]}
        for name, row in rows.items()
    ]
    return {"title": title, "columns": columns, "rows": cells}


def _shaded(cell: tuple[float, str] | None, low: float, reach: float) -> dict[str, Any]:
    if cell is None:
        return {"text": NOTHING, "other": "", "share": None}
    mean, other = cell
    return {"text": number(mean, 3).removeprefix("0"), "other": other, "share": round(100 * (mean - low) / reach)}


def gains(run: Run) -> list[dict[str, Any]]:
    """Every setting against the local-only setting of its panel, client by client.

    `clients` are their names with the test queries of each: "party 1 (40 of 52 queries)".
    """
    measured, settings = client_statistics(run.rows), {s.index: s for s in run.manifest.settings}
    tables = []
    for group in baseline_groups(run.manifest):
        local_only = [index for index in group if value_of(settings[index], "personal.kind") == "local_only"]
        clients = list(measured.get(local_only[0], {})) if local_only else []
        rows = [_gain(run, settings[index], measured[local_only[0]], clients) for index in group if clients]
        if rows:
            names = [_client_name(settings[local_only[0]], client) for client in clients]
            tables.append({"clients": names, "rows": rows, "note": counted_note(run, [OFFLINE[0]])})
    return tables


def _client_name(setting: SettingRecord, client: str) -> str:
    size = setting.clients.get(client)
    return f"{client} ({size_words(Counted(*size), empty_of(setting))})" if size else client


def _gain(run: Run, setting: SettingRecord, local_only: dict[str, Statistic], clients: list[str]) -> dict[str, Any]:
    ours, empty = client_statistics(run.rows).get(setting.index, {}), empty_of(setting)
    others = client_statistics(run.rows, other_name(OFFLINE[0], empty)).get(setting.index, {})
    there = [client for client in clients if client in ours]
    pairs = [(ours[client].mean, local_only[client].mean) for client in there]
    cells = [
        {"mean": number(a), "gain": difference(a - b, a), "good": a > b, "other": _other(ours, others, client, empty)}
        for client, (a, b) in zip(there, pairs, strict=True)
    ]
    return {"name": setting_name(setting), "cells": cells, "gain": sum(a > b for a, b in pairs),
            "lose": sum(a < b for a, b in pairs)}  # fmt: skip


def _other(ours: dict[str, Statistic], others: dict[str, Statistic], client: str, empty: Empty) -> str:
    differs = client in others and others[client].mean != ours[client].mean
    return other_words(others[client].mean if differs else None, empty)
