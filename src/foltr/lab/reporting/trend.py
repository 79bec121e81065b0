"""The final value of a metric along one number, such as quality against epsilon: points with their spread, as numbers.

A figure asks for it by `trend`:

    x        a key, looked up in what a setting says of itself (`privacy.run.epsilon` of its card) and then in its spec;
             or a table from the value of the figure's `columns` key to the key of that panel (others are not drawn)
    name     words for x, or a table of them
    metrics  metrics to draw together in one picture, a line each; else one picture for each metric of the figure
    y        what these have in common
    log      logarithmic x
    log_y    logarithmic y; or a list of the metrics whose y is

A setting whose number is missing or infinite is drawn as a level across its panel: that is what the others are
measured against.
"""

import math
from typing import Any, NamedTuple

from foltr.lab.records import Run, statistics
from foltr.lab.reporting.labels import Setting, described, metric_name, plain, shared_start, value_of

Point = tuple[float | None, float, float]  # x, mean, sd


class Group(NamedTuple):
    """One line: points along x, or one level where x says nothing."""

    name: str
    points: list[tuple[float, float, float]]  # x, mean, sd
    level: float | None


def groups(run: Run, *metrics: str) -> dict[str, list[Group]]:
    """panel -> its lines."""
    measured, drawn = statistics(run.rows), _drawn(run)
    names = _line_names(run.manifest["figure"], [setting for setting, _, _ in drawn], metrics)
    found: dict[str, dict[str, list[Point]]] = {}
    for setting, panel, key in drawn:
        cells = measured.get(setting["index"], {})
        for metric in [metric for metric in metrics if metric in cells]:
            point = (_x(setting, key), cells[metric]["mean"], cells[metric]["sd"])
            found.setdefault(panel, {}).setdefault(names[setting["index"], metric], []).append(point)
    return {panel: [_group(name, points) for name, points in lines.items()] for panel, lines in found.items()}


def _drawn(run: Run) -> list[tuple[Setting, str, str]]:
    """Settings whose panel has an x, with both."""
    figure, found = run.manifest["figure"], []
    for setting in run.manifest.get("settings") or []:
        panel = plain(value_of(setting, figure["columns"])) if figure.get("columns") else ""
        key = of_panel(figure["trend"]["x"], panel)
        if key is not None:
            found.append((setting, panel, key))
    return found


def of_panel(said: str | dict[str, str], panel: str) -> str | None:
    """What is said for one panel: the same for all, or its entry of a table."""
    return said.get(panel) if isinstance(said, dict) else said


def x_name(trend: dict[str, Any], panel: str) -> str:
    """Words for the panel's x, else its key."""
    return of_panel(trend.get("name") or {}, panel) or of_panel(trend["x"], panel) or ""


def _line_names(
    figure: dict[str, Any], settings: list[Setting], metrics: tuple[str, ...]
) -> dict[tuple[int, str], str]:
    """(setting, metric) -> the settings' line, the metric drawn with others, or both where both are several."""
    lines = {setting["index"]: described(setting, list(figure.get("lines") or [])) for setting in settings}
    if not figure["trend"].get("metrics"):
        return {(index, metric): line or "all settings" for index, line in lines.items() for metric in metrics}
    full = [metric_name(metric) for metric in metrics]
    short = dict(zip(metrics, (name.removeprefix(shared_start(full)) for name in full), strict=True))
    several = len(set(lines.values())) > 1
    return {
        (index, metric): f"{line}, {short[metric]}" if several and line else short[metric]
        for index, line in lines.items()
        for metric in metrics
    }


def _group(name: str, points: list[Point]) -> Group:
    levels = [mean for x, mean, _ in points if x is None]
    return Group(name, sorted((x, mean, sd) for x, mean, sd in points if x is not None), levels[0] if levels else None)


def _x(setting: Setting, key: str) -> float | None:
    place: Any = setting
    for part in key.split("."):
        place = place.get(part) if isinstance(place, dict) else None
    found = value_of(setting, key) if place is None else place
    number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
    return float(found) if number else None
