"""Two tables that say more than curves: one number for every pair of choices, and what each client gains.

A figure asks for the first by `matrix = { rows, columns, panels = [keys] }`; its cells are shaded from the lowest to
the highest number of the page. The second stands wherever clients were measured one by one and some stayed alone.
"""

from typing import Any

from foltr.lab.records import Run, statistics
from foltr.lab.reporting.labels import described, metric_name, plain, setting_name, value_of
from foltr.lab.reporting.layout import baseline_groups
from foltr.lab.reporting.numbers import NOTHING, difference, number

CLIENT = "client "  # how the metrics of single clients begin


def matrices(run: Run) -> list[dict[str, Any]]:
    """One table for each panel: title, columns, rows of cells."""
    figure = run.manifest.get("figure") or {}
    wanted = figure.get("matrix")
    if not wanted:
        return []
    measured, metric = statistics(run.rows), figure["metric"]
    panels: dict[str, dict[str, dict[str, float]]] = {}
    for setting in run.manifest.get("settings") or []:
        cell = measured.get(setting["index"], {}).get(metric)
        row, column = (_choice(setting, wanted[key]) for key in ("rows", "columns"))
        if cell is not None:
            panels.setdefault(described(setting, wanted["panels"]), {}).setdefault(row, {})[column] = cell["mean"]
    means = [mean for panel in panels.values() for row in panel.values() for mean in row.values()]
    return [_panel(title, rows, min(means), max(means)) | {"metric": metric_name(metric)}
            for title, rows in panels.items()]  # fmt: skip


def _choice(setting: dict[str, Any], keys: list[str]) -> str:
    """The values of a few keys, those that say nothing (none, false) left out."""
    values = [value_of(setting, key) for key in keys]
    words = [key.rsplit(".", 1)[-1].replace("_", " ") if value is True else plain(value)
             for key, value in zip(keys, values, strict=True) if value not in (None, False)]  # fmt: skip
    return ", ".join(words)


def _panel(title: str, rows: dict[str, dict[str, float]], low: float, high: float) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    reach = (high - low) or 1.0
    cells = [
        {"name": name, "cells": [_cell(row.get(column), low, reach) for column in columns]}
        for name, row in rows.items()
    ]
    return {"title": title, "columns": columns, "rows": cells}


def _cell(mean: float | None, low: float, reach: float) -> dict[str, Any]:
    if mean is None:
        return {"text": NOTHING, "share": None}
    return {"text": number(mean, 3).removeprefix("0"), "share": round(100 * (mean - low) / reach)}


def gains(run: Run) -> list[dict[str, Any]]:
    """Every setting against the one of its panel in which clients stayed alone, client by client."""
    measured, settings = statistics(run.rows), {s["index"]: s for s in run.manifest.get("settings") or []}
    tables = []
    for group in baseline_groups(run.manifest):
        alone = [index for index in group if value_of(settings[index], "personal.kind") == "alone"]
        clients = [metric for metric in measured.get(alone[0], {}) if metric.startswith(CLIENT)] if alone else []
        rows = [_gain(settings[index], measured[index], measured[alone[0]], clients) for index in group if clients]
        if rows:
            tables.append({"clients": [client.removeprefix(CLIENT) for client in clients], "rows": rows})
    return tables


def _gain(setting: dict[str, Any], ours: dict[str, Any], alone: dict[str, Any], clients: list[str]) -> dict[str, Any]:
    pairs = [(ours[client]["mean"], alone[client]["mean"]) for client in clients if client in ours]
    cells = [{"mean": number(a), "gain": difference(a - b, a), "good": a > b} for a, b in pairs]
    return {"name": setting_name(setting), "cells": cells, "gain": sum(a > b for a, b in pairs),
            "lose": sum(a < b for a, b in pairs)}  # fmt: skip
