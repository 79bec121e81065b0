"""Figures on matplotlib's axes: learning curves with bands, trends with error bars, scatters.

Curves: mean lines, bands of one standard deviation, hollow markers for published values. Trends: points joined by
lines, a horizontal line where a setting has no x. Scatters: small panels with equal limits. One legend below all.
Imported only where matplotlib is installed (see `pictures`).
"""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from foltr.lab.records import Manifest, Run, Trend
from foltr.lab.reporting.labels import figure_of, metric_name, picture_name
from foltr.lab.reporting.layout import Layout, Look, Panel, layout
from foltr.lab.reporting.series import (
    Cloud,
    Curve,
    TrendLine,
    clouds,
    curves_of,
    interactions_a_round,
    trend_lines,
    x_name,
)
from foltr.types import Array

# Okabe and Ito's palette without black and yellow, which are invisible on dark and light backgrounds
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "D", "^", "v", "P")
TEXT, FRAME = "#767676", "#9a9a9a"
WIDEST = 3  # panels side by side
INCHES_A_LETTER = 0.07
SIZES = {
    1: (7.2, 3.4),
    2: (9.4, 2.9),
    3: (10.4, 2.6),
}  # panels side by side -> width, height of a row (inches)


def draw(run: Run, metric: str) -> Figure:
    """Panels by the figure's rows and columns; y is shared along a row unless the figure says no, the legend below."""
    plan, curves = layout(run.manifest, metric), curves_of(run.rows, metric)
    wide = across(plan.columns)
    places = [place(number, plan.columns, wide) for number in range(len(plan.panels))]
    high = 1 + max(row for row, _ in places)
    width, height = SIZES[wide]
    figure = sheet(width, height * high, plan.names)
    x, scales = _x_axis(run.manifest)
    shared = figure_of(run.manifest).share_y
    firsts: dict[str, Axes] = {}
    for panel, (row, column) in zip(plan.panels, places, strict=True):
        axes = figure.add_subplot(high, wide, row * wide + column + 1, sharey=firsts.get(panel.row) if shared else None)
        firsts.setdefault(panel.row, axes)
        frame(axes, " · ".join(filter(None, (panel.row, panel.column))))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        _fill_curves(axes, panel, plan, curves, scales)
        axes.tick_params(labelleft=column == 0 or not shared)
        axes.set_ylabel(wrapped(metric_name(metric), 0.8 * height) if column == 0 else "")
        axes.set_xlabel("" if (row + 1, column) in places else x)
    _curve_legend(figure, plan, curves)
    return figure


def across(panels: int) -> int:
    """Panels side by side; four make a square."""
    return panels if panels <= WIDEST else 2 if panels == 4 else WIDEST


def sheet(width: float, height: float, names: Sequence[str]) -> Figure:
    """Transparent, with space for the legend below the panels; in inches."""
    below = 0.6 + 0.2 * (len(names) // WIDEST)  # many lines need many rows of names
    figure = Figure(figsize=(width, height + below))
    figure.set_layout_engine("constrained", h_pad=0.08)  # inches, so that a title keeps clear of the ticks above
    figure.patch.set_alpha(0.0)
    return figure


def wrapped(words: str, inches: float) -> str:
    """Broken into lines that fit; a name that is short enough stays as it is."""
    letters = int(inches / INCHES_A_LETTER)
    return words if len(words) <= letters else textwrap.fill(words, letters, break_on_hyphens=False)


def place(number: int, columns: int, wide: int) -> tuple[int, int]:
    """Row and column in the grid; a row of more panels than fit goes on below itself."""
    row, column = divmod(number, columns)
    return row * -(-columns // wide) + column // wide, column % wide


def _x_axis(manifest: Manifest) -> tuple[str, dict[int, float]]:
    """The axis' name, and its units per round for each setting."""
    settings = manifest.settings
    if figure_of(manifest).x == "interactions":
        return "interactions", {s.index: interactions_a_round(s) for s in settings}
    return "rounds", {s.index: 1.0 for s in settings}


def frame(axes: Axes, title: str) -> None:
    """Grey axes and a title."""
    axes.set_title(title, fontsize=9, color=TEXT)
    axes.patch.set_alpha(0.0)
    axes.grid(visible=True, color=FRAME, alpha=0.25, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FRAME)
    axes.tick_params(color=FRAME, labelcolor=TEXT, labelsize=8)
    axes.xaxis.label.set_color(TEXT)
    axes.yaxis.label.set_color(TEXT)
    axes.yaxis.set_major_locator(MaxNLocator(6))


def _fill_curves(axes: Axes, panel: Panel, plan: Layout, curves: dict[int, Curve], scales: dict[int, float]) -> None:
    band = 0.16 if len(panel.lines) <= 4 else 0.08  # many bands would overlap
    for line in panel.lines:
        if line.setting not in curves:
            continue
        rounds, mean, sd = curves[line.setting]
        x = rounds * scales[line.setting]
        single = "o" if len(x) == 1 else None  # a line needs two points
        look = _line_style(plan.looks[line.slot])
        axes.plot(x, mean, **look, marker=single, markersize=4)
        axes.fill_between(x, mean - sd, mean + sd, color=look["color"], alpha=band, linewidth=0)
    series = _series(plan)
    for point in panel.points:
        x_value, number = point.round * scales[point.setting], list(series).index(point.series)
        axes.plot([x_value], [point.value], **_hollow(point.colour, number))


def _line_style(look: Look) -> dict[str, Any]:
    return {"color": COLOURS[look.colour], "linestyle": STYLES[look.style], "linewidth": 1.5}


def _hollow(colour: int | None, number: int) -> dict[str, Any]:
    shade = TEXT if colour is None else COLOURS[colour]
    look = {"color": shade, "linestyle": "none", "markersize": 6.5, "markeredgewidth": 1.4}
    return {**look, "marker": MARKERS[number % len(MARKERS)], "markerfacecolor": "none", "zorder": 3}


def _series(plan: Layout) -> dict[str, set[int | None]]:
    """Published series in order, with the colours of the lines that each belongs to."""
    found: dict[str, set[int | None]] = {}
    for panel in plan.panels:
        for point in panel.points:
            found.setdefault(point.series, set()).add(point.colour)
    return found


def _curve_legend(figure: Figure, plan: Layout, curves: dict[int, Curve]) -> None:
    drawn = sorted({line.slot for panel in plan.panels for line in panel.lines if line.setting in curves})
    entries: list[tuple[Artist, str]] = [
        (Line2D([], [], **_line_style(plan.looks[slot])), plan.names[slot]) for slot in drawn
    ]
    for number, (series, colours) in enumerate(_series(plan).items()):
        colour = next(iter(colours)) if len(colours) == 1 else None
        entries.append((Line2D([], [], **_hollow(colour, number)), series))
    legend(figure, entries)


def legend(figure: Figure, entries: list[tuple[Artist, str]]) -> None:
    """Below the panels, in as many columns as the longest name allows."""
    if not entries:
        return
    handles, names = zip(*entries, strict=True)
    inches_an_entry = 0.5 + INCHES_A_LETTER * max(map(len, names))
    columns = max(1, min(len(names), int(figure.get_figwidth() / inches_an_entry)))
    look: dict[str, Any] = {"frameon": False, "labelcolor": TEXT, "fontsize": 9, "columnspacing": 1.4}
    lines = [wrapped(name, figure.get_figwidth() - 0.5) for name in names]
    figure.legend(handles, lines, loc="outside lower center", ncols=columns, **look)


MANY = 10_000  # from here on numbers are shortened


def draw_trend(run: Run, *metrics: str) -> Figure:
    """Panels share their y axis; x is each panel's own."""
    trend, panels = figure_of(run.manifest).trend, trend_lines(run, *metrics)
    assert trend is not None
    names = list(dict.fromkeys(group.name for panel in panels.values() for group in panel))
    wide = across(len(panels))
    high = -(-len(panels) // wide)
    width, height = SIZES[wide]
    figure = sheet(width, height * high, names)
    titled = any(title != x_name(trend, title) for title in panels)  # otherwise the first panel names the axis
    first: Axes | None = None
    for number, (title, panel) in enumerate(panels.items()):
        row, column = place(number, len(panels), wide)
        axes = figure.add_subplot(high, wide, row * wide + column + 1, sharey=first)
        first = first or axes
        frame(axes, wrapped(title, 0.9 * width / wide) if titled else "")
        _scale_x(axes, panel, trend)
        _fill_trend(axes, panel, names)
        axes.set_ylabel(wrapped(picture_name(run.manifest, metrics), 0.8 * height) if column == 0 else "")
        axes.set_xlabel(wrapped(x_name(trend, title), 0.9 * width / wide))
    if first is not None:
        log = trend.log_y if isinstance(trend.log_y, bool) else set(metrics) <= set(trend.log_y)
        _scale_y(first, [group for panel in panels.values() for group in panel], log=log)
    legend(figure, [(Line2D([], [], **_trend_style(slot)), name) for slot, name in enumerate(names)])
    return figure


def _scale_x(axes: Axes, panel: list[TrendLine], trend: Trend) -> None:
    """A panel with an x of 0 or less has no logarithmic axis."""
    values = [x for group in panel for x, _, _ in group.points]
    if trend.log and min(values, default=1) > 0:
        few = isinstance(trend.x, dict) and _few_decades(values)
        _logarithmic(axes.set_xscale, axes.xaxis, few=few)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=all(x.is_integer() for x in values)))


def _scale_y(first: Axes, lines: list[TrendLine], *, log: bool) -> None:
    """The y axis of all panels; a logarithmic one cannot show means of 0 or less."""
    means = [mean for line in lines for _, mean, _ in line.points]
    means += [line.level for line in lines if line.level is not None]
    log = log and not any(mean <= 0 for mean in means)
    if log:
        _logarithmic(first.set_yscale, first.yaxis, few=_few_decades(means))
    if log or max(means) >= MANY:
        first.yaxis.set_major_formatter(FuncFormatter(_short))


def _short(value: float, _: object) -> str:
    """2.5M for 2,500,000, so that bytes do not push the panels apart; .001 stays .001."""
    return str(EngFormatter(sep="")(value)) if abs(value) >= MANY else f"{value:g}"


def _few_decades(values: list[float]) -> bool:
    """Fewer than three decades: two marks are not enough."""
    return max(values, default=1) < 20 * min(values, default=1)


def _logarithmic(set_scale: Callable[[str], None], axis: Axis, *, few: bool) -> None:
    """Plain numbers at the decades, and in between where there are few decades."""
    set_scale("log")
    if few:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _fill_trend(axes: Axes, panel: list[TrendLine], names: list[str]) -> None:
    for group in panel:
        look = _trend_style(names.index(group.name))
        if group.level is not None:
            axes.axhline(group.level, color=look["color"], linestyle=look["linestyle"], linewidth=1.0)
        if group.points:
            x, mean, sd = zip(*group.points, strict=True)
            axes.errorbar(x, mean, yerr=sd, **look, capsize=2, elinewidth=0.7)


def _trend_style(slot: int) -> dict[str, Any]:
    colour, style = slot % len(COLOURS), slot // len(COLOURS) % len(STYLES)
    marker = MARKERS[slot % len(MARKERS)]
    return {"color": COLOURS[colour], "linestyle": STYLES[style], "marker": marker, "markersize": 4, "linewidth": 1.4}


SCATTER_COLUMNS, SIDE = 4, 2.5  # panels side by side, inches
# distinguished by shape and fill as well as by colour
RELEVANT: dict[str, Any] = {"marker": "o", "color": COLOURS[1], "markersize": 3.5, "markeredgewidth": 0}
NOT_RELEVANT: dict[str, Any] = {
    "marker": "*", "color": COLOURS[0], "markerfacecolor": "none", "markersize": 5.5, "markeredgewidth": 0.8
}  # fmt: skip


def draw_scatter(run: Run) -> Figure:
    """A panel for each setting that has points, in rows of nearly equal length."""
    found = clouds(run)
    high = -(-len(found) // SCATTER_COLUMNS)
    wide = -(-len(found) // high)
    entries = {"relevant": RELEVANT, "not relevant": NOT_RELEVANT}
    figure = sheet(SIDE * wide, SIDE * high, list(entries))
    limits = _limits([cloud.x for cloud in found]), _limits([cloud.y for cloud in found])
    for number, cloud in enumerate(found):
        axes = figure.add_subplot(high, wide, number + 1)
        frame(axes, wrapped(cloud.title, SIDE))
        _fill_scatter(axes, cloud)
        axes.set(xlim=limits[0], ylim=limits[1], xticks=[], yticks=[])
    legend(figure, [(Line2D([], [], linestyle="none", **look), name) for name, look in entries.items()])
    return figure


def _limits(values: list[Array]) -> tuple[float, float]:
    """Of all panels, with a margin."""
    low, high = min(map(np.min, values)), max(map(np.max, values))
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _fill_scatter(axes: Axes, cloud: Cloud) -> None:
    for chosen, look in ((~cloud.relevant, NOT_RELEVANT), (cloud.relevant, RELEVANT)):
        axes.plot(cloud.x[chosen], cloud.y[chosen], linestyle="none", **look)
    for spine in axes.spines.values():  # without ticks, a box says where the panel ends
        spine.set_visible(True)
