"""Tables whose cells are metrics, such as methods by parties: one for each setting, mean ± sd over its runs.

A figure asks for them by `tables`, a list of

    title    its heading
    corner   words above the names of the rows
    rows     names of rows
    columns  names of columns
    cell     the metric's name, with {row} and {column} in their places
    bold     "column" or "row": within each the highest mean is emphasised; absent: none is
"""

import math
from typing import Any

from foltr.errors import SpecError
from foltr.lab.records import Run, statistics
from foltr.lab.reporting.labels import data_names, plain, setting_name
from foltr.lab.reporting.numbers import number
from foltr.lab.reporting.tables import shown

Cell = dict[str, float]  # mean, sd, runs
Grid = list[list[Cell | None]]  # [rows][columns]; None where the metric was not measured


def metric_tables(run: Run) -> list[dict[str, Any]]:
    """Those with at least one cell: title, note, corner, columns, and the rows of every setting."""
    wanted = (run.manifest.get("figure") or {}).get("tables") or []
    return [table for one in wanted if (table := _table(run, one))["settings"]]


def _table(run: Run, wanted: dict[str, Any]) -> dict[str, Any]:
    settings, measured = run.manifest.get("settings") or [], statistics(run.rows)
    grids = [(setting, _grid(wanted, measured.get(setting["index"], {}))) for setting in settings]
    filled = [(setting, grid) for setting, grid in grids if _cells(grid)]
    runs = {int(cell["runs"]) for _, grid in filled for cell in _cells(grid)}
    return {
        "title": f"{wanted['title']} ({_range(runs)})",
        "note": _note(wanted, runs, data_names([setting for setting, _ in filled])),
        "corner": wanted["corner"],
        "columns": [plain(column) for column in wanted["columns"]],
        "settings": [
            {
                "name": setting_name(setting) if len(settings) > 1 else "",
                "rows": _rows(wanted, grid, max(int(cell["runs"]) for cell in _cells(grid))),
            }
            for setting, grid in filled
        ],
    }


def _grid(wanted: dict[str, Any], measured: dict[str, Cell]) -> Grid:
    def metric(row: Any, column: Any) -> str:
        return str(wanted["cell"]).replace("{row}", plain(row)).replace("{column}", plain(column))

    return [[measured.get(metric(row, column)) for column in wanted["columns"]] for row in wanted["rows"]]


def _cells(grid: Grid) -> list[Cell]:
    return [cell for row in grid for cell in row if cell is not None]


def _range(runs: set[int]) -> str:
    """ "1 run", "5 runs", "3 to 5 runs"."""
    low, high = min(runs, default=0), max(runs, default=0)
    return f"{low} to {high} runs" if low < high else f"{high} run{'' if high == 1 else 's'}"


def _note(wanted: dict[str, Any], runs: set[int], data: str) -> str:
    bold = wanted.get("bold")
    if bold not in (None, "column", "row"):
        raise SpecError(f'tables: bold = "{bold}"; say "column" or "row", or leave it out')
    spread = "mean ± standard deviation over runs" if max(runs, default=0) > 1 else "one run, no standard deviation"
    return f"On {data}: {spread}." + (f" Bold: the highest mean of its {bold}." if bold else "")


def _rows(wanted: dict[str, Any], grid: Grid, runs: int) -> list[dict[str, Any]]:
    """Cells with fewer than the setting's runs say so."""
    best = _emphasised(grid, wanted.get("bold"))
    texts = [["" if cell is None else shown(cell, runs) for cell in row] for row in grid]
    return [
        {"name": plain(name), "cells": [{"text": text, "best": top} for text, top in zip(row, tops, strict=True)]}
        for name, row, tops in zip(wanted["rows"], texts, best, strict=True)
    ]


def _emphasised(grid: Grid, bold: str | None) -> list[list[bool]]:
    """[rows][columns]"""
    if bold == "column":
        turned = [_highest(list(column)) for column in zip(*grid, strict=True)]
        return [list(row) for row in zip(*turned, strict=True)]
    return [_highest(row) if bold else [False] * len(row) for row in grid]


def _highest(cells: list[Cell | None]) -> list[bool]:
    """The highest mean, and those that read the same."""
    means = [math.nan if cell is None else cell["mean"] for cell in cells]
    top = number(max(filter(math.isfinite, means), default=None))
    return [math.isfinite(mean) and number(mean) == top for mean in means]
