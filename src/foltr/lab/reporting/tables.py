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
    statistics,
)
from foltr.lab.reporting.labels import (
    METRIC_NAMES,
    NOTHING,
    data_names,
    described,
    difference,
    figure_metrics,
    figure_of,
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

_REGIMES = ("BM25 (one field, no labels)", "Local", "Global", "CS-F-LTR", "pooled")
OF_TEXTS = (
    *(f"nDCG@10, average, {regime}" for regime in _REGIMES),
    "recall@K", "recall", "ms a query", "AUC",
)  # fmt: skip


def metrics_of(run: Run) -> list[str]:
    """Metrics that the run measured: the known ones in their usual order, then any others."""
    measured = {metric for cells in statistics(run.rows).values() for metric in cells} - scatter_metrics(run.manifest)
    known = [metric for metric in METRIC_NAMES if metric in measured]
    return known + sorted(measured - set(known))


def main_metrics(run: Run) -> list[str]:
    """Those of the figure, else the quality of the final ranker and the discounted online metric.

    Cross-silo: nDCG@10 of every regime, or recall and time.
    """
    wanted, measured = figure_metrics(run.manifest) or [OFFLINE[0], DISCOUNTED, *OF_TEXTS], metrics_of(run)
    return [metric for metric in wanted if metric in measured] or measured[:1]


class Table(NamedTuple):
    keys: list[str]  # swept keys, one column each
    metrics: list[str]
    rows: list[dict[str, Any]]  # name, values [keys], cells [metrics], runs


def settings_table(run: Run, metrics: list[str] | None = None) -> Table:
    """Settings x metrics, each cell "mean ± sd"; a cell says its runs where they differ from the row's."""
    settings = run.manifest.settings
    keys, measured = swept_keys(settings), statistics(run.rows)
    metrics = metrics_of(run) if metrics is None else metrics
    return Table(keys, metrics, [_row(s, keys, metrics, measured.get(s.index, {})) for s in settings])


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


Grid = list[list[Statistic | None]]  # [rows][columns]; None where the metric was not measured


def metric_tables(run: Run) -> list[dict[str, Any]]:
    """Those with at least one cell: title, note, corner, columns, and the rows of every setting."""
    wanted = figure_of(run.manifest).tables or []
    return [table for one in wanted if (table := _metric_table(run, one))["settings"]]


def _metric_table(run: Run, wanted: MetricTable) -> dict[str, Any]:
    settings, measured = run.manifest.settings, statistics(run.rows)
    grids = [(setting, _grid(wanted, measured.get(setting.index, {}))) for setting in settings]
    filled = [(setting, grid) for setting, grid in grids if _cells(grid)]
    runs = {cell.runs for _, grid in filled for cell in _cells(grid)}
    return {
        "title": f"{wanted.title} ({_range(runs)})",
        "note": _note(wanted, runs, data_names([setting for setting, _ in filled])),
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
    def metric(row: Any, column: Any) -> str:
        return wanted.cell.replace("{row}", plain(row)).replace("{column}", plain(column))

    return [[measured.get(metric(row, column)) for column in wanted.columns] for row in wanted.rows]


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
    panels: dict[str, dict[str, dict[str, float]]] = {}
    for setting in run.manifest.settings:
        cell = measured.get(setting.index, {}).get(metric)
        row, column = (_choice(setting, keys) for keys in (wanted.rows, wanted.columns))
        if cell is not None:
            panels.setdefault(described(setting, wanted.panels), {}).setdefault(row, {})[column] = cell.mean
    means = [mean for panel in panels.values() for row in panel.values() for mean in row.values()]
    return [_matrix_panel(title, rows, min(means), max(means)) | {"metric": metric_name(metric)}
            for title, rows in panels.items()]  # fmt: skip


def _choice(setting: SettingRecord, keys: list[str]) -> str:
    """The values of a few keys, none and false left out."""
    values = [value_of(setting, key) for key in keys]
    words = [key.rsplit(".", 1)[-1].replace("_", " ") if value is True else plain(value)
             for key, value in zip(keys, values, strict=True) if value not in (None, False)]  # fmt: skip
    return ", ".join(words)


def _matrix_panel(title: str, rows: dict[str, dict[str, float]], low: float, high: float) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    reach = (high - low) or 1.0
    cells = [
        {"name": name, "cells": [_shaded(row.get(column), low, reach) for column in columns]}
        for name, row in rows.items()
    ]
    return {"title": title, "columns": columns, "rows": cells}


def _shaded(mean: float | None, low: float, reach: float) -> dict[str, Any]:
    if mean is None:
        return {"text": NOTHING, "share": None}
    return {"text": number(mean, 3).removeprefix("0"), "share": round(100 * (mean - low) / reach)}


def gains(run: Run) -> list[dict[str, Any]]:
    """Every setting against the local-only setting of its panel, client by client."""
    measured, settings = client_statistics(run.rows), {s.index: s for s in run.manifest.settings}
    tables = []
    for group in baseline_groups(run.manifest):
        local_only = [index for index in group if value_of(settings[index], "personal.kind") == "local_only"]
        clients = list(measured.get(local_only[0], {})) if local_only else []
        rows = [_gain(settings[index], measured[index], measured[local_only[0]], clients) for index in group if clients]
        if rows:
            tables.append({"clients": clients, "rows": rows})
    return tables


def _gain(
    setting: SettingRecord, ours: dict[str, Statistic], local_only: dict[str, Statistic], clients: list[str]
) -> dict[str, Any]:
    pairs = [(ours[client].mean, local_only[client].mean) for client in clients if client in ours]
    cells = [{"mean": number(a), "gain": difference(a - b, a), "good": a > b} for a, b in pairs]
    return {"name": setting_name(setting), "cells": cells, "gain": sum(a > b for a, b in pairs),
            "lose": sum(a < b for a, b in pairs)}  # fmt: skip
