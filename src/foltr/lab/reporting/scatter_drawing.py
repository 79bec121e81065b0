"""Scatters on matplotlib's axes: small panels with the same limits, filled circles over hollow stars.

Imported only where matplotlib is there (see curves).
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from foltr.lab.records import Run
from foltr.lab.reporting.drawing import COLOURS, frame, legend, sheet, wrapped
from foltr.lab.reporting.scatter import Cloud, clouds
from foltr.types import Array

WIDEST, SIDE = 4, 2.5  # panels side by side, inches
# told apart by shape and filling as much as by colour
RELEVANT: dict[str, Any] = {"marker": "o", "color": COLOURS[1], "markersize": 3.5, "markeredgewidth": 0}
NOT_RELEVANT: dict[str, Any] = {
    "marker": "*", "color": COLOURS[0], "markerfacecolor": "none", "markersize": 5.5, "markeredgewidth": 0.8
}  # fmt: skip


def draw_scatter(run: Run) -> Figure:
    """A panel for each setting that has points, in rows as even as they can be."""
    found = clouds(run)
    high = -(-len(found) // WIDEST)
    wide = -(-len(found) // high)
    entries = {"relevant": RELEVANT, "not relevant": NOT_RELEVANT}
    figure = sheet(SIDE * wide, SIDE * high, list(entries))
    limits = _limits([cloud.x for cloud in found]), _limits([cloud.y for cloud in found])
    for number, cloud in enumerate(found):
        axes = figure.add_subplot(high, wide, number + 1)
        frame(axes, wrapped(cloud.title, SIDE))
        _fill(axes, cloud)
        axes.set(xlim=limits[0], ylim=limits[1], xticks=[], yticks=[])
    legend(figure, [(Line2D([], [], linestyle="none", **look), name) for name, look in entries.items()])
    return figure


def _limits(values: list[Array]) -> tuple[float, float]:
    """Of all panels, with a margin."""
    low, high = min(map(np.min, values)), max(map(np.max, values))
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _fill(axes: Axes, cloud: Cloud) -> None:
    for chosen, look in ((~cloud.relevant, NOT_RELEVANT), (cloud.relevant, RELEVANT)):
        axes.plot(cloud.x[chosen], cloud.y[chosen], linestyle="none", **look)
    for spine in axes.spines.values():  # without ticks, a box says where the panel ends
        spine.set_visible(True)
