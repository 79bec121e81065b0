"""Trends on matplotlib's axes: a panel for each value of the figure's column key, points joined, levels across.

Imported only where matplotlib is there (see curves).
"""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from foltr.lab.records import Run
from foltr.lab.reporting.drawing import COLOURS, MARKERS, SIZES, STYLES, across, frame, legend, place, sheet, wrapped
from foltr.lab.reporting.labels import picture_name
from foltr.lab.reporting.trend import Group, groups, x_name

MANY = 10_000  # from here on numbers are shortened


def draw_trend(run: Run, *metrics: str) -> Figure:
    """Panels share their y axis; x is each panel's own."""
    trend, panels = run.manifest["figure"]["trend"], groups(run, *metrics)
    names = list(dict.fromkeys(group.name for panel in panels.values() for group in panel))
    wide = across(len(panels))
    high = -(-len(panels) // wide)
    width, height = SIZES[wide]
    figure = sheet(width, height * high, names)
    titled = any(title != x_name(trend, title) for title in panels)  # else once is enough
    first: Axes | None = None
    for number, (title, panel) in enumerate(panels.items()):
        row, column = place(number, len(panels), wide)
        axes = figure.add_subplot(high, wide, row * wide + column + 1, sharey=first)
        first = first or axes
        frame(axes, wrapped(title, 0.9 * width / wide) if titled else "")
        _scale_x(axes, panel, trend)
        _fill(axes, panel, names)
        axes.set_ylabel(wrapped(picture_name(run.manifest, metrics), 0.8 * height) if column == 0 else "")
        axes.set_xlabel(wrapped(x_name(trend, title), 0.9 * width / wide))
    if first is not None:
        wanted = trend.get("log_y", False)
        log = bool(wanted) if isinstance(wanted, bool) else set(metrics) <= set(wanted)
        _scale_y(first, [group for panel in panels.values() for group in panel], log=log)
    legend(figure, [(Line2D([], [], **_look(slot)), name) for slot, name in enumerate(names)])
    return figure


def _scale_x(axes: Axes, panel: list[Group], trend: dict[str, Any]) -> None:
    """An x of 0 has no place on a logarithmic axis, so its panel has none."""
    values = [x for group in panel for x, _, _ in group.points]
    if trend.get("log") and min(values, default=1) > 0:
        few = isinstance(trend["x"], dict) and _few_decades(values)
        _logarithmic(axes.set_xscale, axes.xaxis, few=few)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=all(x.is_integer() for x in values)))


def _scale_y(first: Axes, lines: list[Group], *, log: bool) -> None:
    """The y axis of all panels; a mean of 0 or less would vanish from a logarithmic one."""
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
    """At most two marks, which say little."""
    return max(values, default=1) < 20 * min(values, default=1)


def _logarithmic(set_scale: Callable[[str], None], axis: Axis, *, few: bool) -> None:
    """Numbers as people write them, at the decades; in between too where there are few of those."""
    set_scale("log")
    if few:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _fill(axes: Axes, panel: list[Group], names: list[str]) -> None:
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
