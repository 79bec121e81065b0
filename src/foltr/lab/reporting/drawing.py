"""The panels on matplotlib's axes: mean lines, bands, hollow published points, one legend below the data.

Imported only where matplotlib is there (see curves).
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from foltr.lab.records import Run
from foltr.lab.reporting.labels import metric_name
from foltr.lab.reporting.layout import Layout, Look, Panel, layout
from foltr.lab.reporting.series import Curve, curves_of, interactions_a_round

# Okabe and Ito's palette without black and yellow, which vanish on dark and on light paper
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
    shared = (run.manifest.get("figure") or {}).get("share_y", True)
    firsts: dict[str, Axes] = {}
    for panel, (row, column) in zip(plan.panels, places, strict=True):
        axes = figure.add_subplot(high, wide, row * wide + column + 1, sharey=firsts.get(panel.row) if shared else None)
        firsts.setdefault(panel.row, axes)
        frame(axes, " · ".join(filter(None, (panel.row, panel.column))))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        _fill(axes, panel, plan, curves, scales)
        axes.tick_params(labelleft=column == 0 or not shared)
        axes.set_ylabel(wrapped(metric_name(metric), 0.8 * height) if column == 0 else "")
        axes.set_xlabel("" if (row + 1, column) in places else x)
    _legend(figure, plan, curves)
    return figure


def across(panels: int) -> int:
    """Panels side by side; four make a square."""
    return panels if panels <= WIDEST else 2 if panels == 4 else WIDEST


def sheet(width: float, height: float, names: Sequence[str]) -> Figure:
    """Transparent, with room for the names of the legend below the panels; in inches."""
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


def _x_axis(manifest: dict[str, Any]) -> tuple[str, dict[int, float]]:
    """The axis' name, and what one round is worth on it for each setting."""
    settings = manifest.get("settings") or []
    if (manifest.get("figure") or {}).get("x") == "interactions":
        return "interactions", {s["index"]: interactions_a_round(s) for s in settings}
    return "rounds", {s["index"]: 1.0 for s in settings}


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


def _fill(axes: Axes, panel: Panel, plan: Layout, curves: dict[int, Curve], scales: dict[int, float]) -> None:
    band = 0.16 if len(panel.lines) <= 4 else 0.08  # many bands would cover each other
    for line in panel.lines:
        if line.setting not in curves:
            continue
        rounds, mean, sd = curves[line.setting]
        x = rounds * scales[line.setting]
        single = "o" if len(x) == 1 else None  # one point makes no line
        look = _look(plan.looks[line.slot])
        axes.plot(x, mean, **look, marker=single, markersize=4)
        axes.fill_between(x, mean - sd, mean + sd, color=look["color"], alpha=band, linewidth=0)
    series = _series(plan)
    for point in panel.points:
        x_value, number = point.round * scales[point.setting], list(series).index(point.series)
        axes.plot([x_value], [point.value], **_hollow(point.colour, number))


def _look(look: Look) -> dict[str, Any]:
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


def _legend(figure: Figure, plan: Layout, curves: dict[int, Curve]) -> None:
    drawn = sorted({line.slot for panel in plan.panels for line in panel.lines if line.setting in curves})
    entries: list[tuple[Artist, str]] = [
        (Line2D([], [], **_look(plan.looks[slot])), plan.names[slot]) for slot in drawn
    ]
    for number, (series, colours) in enumerate(_series(plan).items()):
        colour = next(iter(colours)) if len(colours) == 1 else None
        entries.append((Line2D([], [], **_hollow(colour, number)), series))
    legend(figure, entries)


def legend(figure: Figure, entries: list[tuple[Artist, str]]) -> None:
    """Below the panels, in as many columns as the longest name leaves room for."""
    if not entries:
        return
    handles, names = zip(*entries, strict=True)
    inches_an_entry = 0.5 + INCHES_A_LETTER * max(map(len, names))
    columns = max(1, min(len(names), int(figure.get_figwidth() / inches_an_entry)))
    look: dict[str, Any] = {"frameon": False, "labelcolor": TEXT, "fontsize": 9, "columnspacing": 1.4}
    lines = [wrapped(name, figure.get_figwidth() - 0.5) for name in names]
    figure.legend(handles, lines, loc="outside lower center", ncols=columns, **look)
