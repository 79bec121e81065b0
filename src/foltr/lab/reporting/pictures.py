"""Pictures (learning curves, trends, scatters) as inline SVG for the page and as PNG for a README.

Uses matplotlib's figures without pyplot and leaves no setting of the host program changed. The
background is transparent and the axes are grey, so that a figure is legible on light and dark backgrounds; the same
run gives the same bytes.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from foltr.errors import InputError
from foltr.lab.records import Run
from foltr.lab.reporting.labels import figure_of
from foltr.lab.reporting.series import caption, curve_metrics, scatter_caption, trend_lines

PIXELS_AN_INCH = 96
__all__ = ["caption", "curve_metrics", "curve_svg", "pictures", "scatter_svg"]


def pictures(run: Run) -> list[list[str]]:
    """The metrics of each picture: one, or those that a trend draws together; none without anything to draw."""
    trend = figure_of(run.manifest).trend
    wanted = [trend.metrics] if trend and trend.metrics else [[metric] for metric in curve_metrics(run)]
    return [metrics for metrics in wanted if not trend or trend_lines(run, *metrics)]


def curve_svg(run: Run, *metrics: str, ids: str = "") -> str:
    """An <svg> element to put into a page; `ids` keeps its identifiers apart from those of other figures."""
    return _svg(lambda: _drawn(run, *metrics), ids, caption(run, *metrics))


def scatter_svg(run: Run, *, ids: str = "") -> str:
    """The figure's scatter as an <svg> element."""
    return _svg(lambda: _scattered(run), ids, scatter_caption(run))


def _drawn(run: Run, *metrics: str) -> Any:
    """A curve over rounds, or a trend along one number where the figure asks for it."""
    from foltr.lab.reporting.drawing import draw, draw_trend

    return draw_trend(run, *metrics) if figure_of(run.manifest).trend else draw(run, *metrics)


def _scattered(run: Run) -> Any:
    from foltr.lab.reporting.drawing import draw_scatter

    return draw_scatter(run)


def _svg(drawn: Callable[[], Any], ids: str, words: str) -> str:
    with _matplotlib_ready():
        figure, data = drawn(), io.StringIO()
        figure.savefig(data, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _inline(data.getvalue(), ids, words, figure.get_figwidth() * PIXELS_AN_INCH)


@contextmanager
def _matplotlib_ready() -> Iterator[None]:
    """Labels are plain text (no math mode), identifiers are deterministic, text is not turned into paths."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("drawing curves needs the report extra: pip install 'foltr[report]'") from error
    ours: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "foltr",
        "text.parse_math": False,
        "font.family": ["DejaVu Sans"],
        "font.size": 9,
        "axes.unicode_minus": True,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a user's own matplotlibrc must not change the bytes
        matplotlib.rcParams.update(ours)
        # the measuring font may lack a letter of some label; a browser draws the text with its own fonts
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def _inline(svg: str, ids: str, words: str, width: float) -> str:
    """Without prolog and namespaces (HTML knows them), in the page's colours, with a label for screen readers."""
    from foltr.lab.reporting.drawing import TEXT

    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{ids}", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "inherit", svg)
    svg = svg.replace(TEXT, "currentColor")
    # below three quarters of its size the text is too small to read: the page scrolls instead
    shape = f'style="max-width: {width:.0f}px; min-width: {0.75 * width:.0f}px"'
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(words)}" {shape} ', 1)
