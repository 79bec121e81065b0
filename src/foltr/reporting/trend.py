"""The final value of a metric along one number, such as quality against epsilon: points with their spread, joined.

A figure asks for it by `trend = { x = key, name = words, log = true }`; the key is looked up in what a setting says of
itself (`privacy.run.epsilon` of its card) and then in its spec. A setting whose number is missing or infinite is
drawn as a level across its panel: that is what the others are measured against.
"""

import math
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from foltr.records import Run, statistics
from foltr.reporting.drawing import COLOURS, MARKERS, SIZES, STYLES, TEXT, WIDEST, frame, place
from foltr.reporting.labels import Setting, described, metric_name, plain, value_of


class Group(NamedTuple):
    """One line: points along x, or one level where x says nothing."""

    name: str
    points: list[tuple[float, float, float]]  # x, mean, sd
    level: float | None


def draw_trend(run: Run, metric: str) -> Figure:
    """A panel for each value of the figure's column key."""
    figure_spec = run.manifest["figure"]
    trend, column_key = figure_spec["trend"], figure_spec.get("columns")
    panels = groups(run, metric, trend["x"], column_key, list(figure_spec.get("lines") or []))
    names = list(dict.fromkeys(group.name for panel in panels.values() for group in panel))
    wide = min(len(panels), WIDEST)
    high = -(-len(panels) // wide)
    width, height = SIZES[wide]
    figure = Figure(figsize=(width, height * high + 0.6 + 0.2 * (len(names) // WIDEST)))
    figure.set_layout_engine("constrained", h_pad=0.08)
    figure.patch.set_alpha(0.0)
    first: Axes | None = None
    for number, (title, panel) in enumerate(panels.items()):
        row, column = place(number, len(panels), wide)
        axes = figure.add_subplot(high, wide, row * wide + column + 1, sharey=first)
        first = first or axes
        frame(axes, title)
        _fill(axes, panel, names, log=bool(trend.get("log")))
        axes.set_ylabel(metric_name(metric) if column == 0 else "")
        axes.set_xlabel(trend.get("name", trend["x"]))
    _legend(figure, names)
    return figure


def groups(run: Run, metric: str, x: str, column_key: str | None, line_keys: list[str]) -> dict[str, list[Group]]:
    """panel -> its lines."""
    measured = statistics(run.rows)
    found: dict[str, dict[str, list[tuple[float | None, float, float]]]] = {}
    for setting in run.manifest.get("settings") or []:
        cell = measured.get(setting["index"], {}).get(metric)
        if cell is None:
            continue
        panel = "" if column_key is None else plain(value_of(setting, column_key))
        line = described(setting, line_keys) or "all settings"
        found.setdefault(panel, {}).setdefault(line, []).append((_x(setting, x), cell["mean"], cell["sd"]))
    return {panel: [_group(name, points) for name, points in lines.items()] for panel, lines in found.items()}


def _group(name: str, points: list[tuple[float | None, float, float]]) -> Group:
    levels = [mean for x, mean, _ in points if x is None]
    return Group(name, sorted((x, mean, sd) for x, mean, sd in points if x is not None), levels[0] if levels else None)


def _x(setting: Setting, key: str) -> float | None:
    place: Any = setting
    for part in key.split("."):
        place = place.get(part) if isinstance(place, dict) else None
    found = value_of(setting, key) if place is None else place
    number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
    return float(found) if number else None


def _fill(axes: Axes, panel: list[Group], names: list[str], *, log: bool) -> None:
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}")
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
    for group in panel:
        look = _look(names.index(group.name))
        if group.level is not None:
            axes.axhline(group.level, color=look["color"], linestyle=look["linestyle"], linewidth=1.0)
        if group.points:
            x, mean, sd = zip(*group.points, strict=True)
            axes.errorbar(x, mean, yerr=sd, **look, capsize=2, elinewidth=0.7)


def _look(slot: int) -> dict[str, Any]:
    colour, style = slot % len(COLOURS), slot // len(COLOURS) % len(STYLES)
    marker = MARKERS[slot % len(MARKERS)]
    return {"color": COLOURS[colour], "linestyle": STYLES[style], "marker": marker, "markersize": 4, "linewidth": 1.4}


def _legend(figure: Figure, names: list[str]) -> None:
    handles: list[Artist] = [Line2D([], [], **_look(slot)) for slot in range(len(names))]
    columns = max(1, min(len(names), int(figure.get_figwidth() / (0.5 + 0.07 * max(map(len, names), default=1)))))
    look: dict[str, Any] = {"frameon": False, "labelcolor": TEXT, "fontsize": 9, "columnspacing": 1.4}
    figure.legend(handles, names, loc="outside lower center", ncols=columns, **look)
