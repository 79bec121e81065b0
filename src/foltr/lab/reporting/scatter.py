"""Points in a plane with a grade each, such as documents by their features: one panel for each setting, as numbers.

A figure asks for it by `scatter = { x, y, grade, name }`: three metrics whose rounds are the points (the same round of
the three is one point) and words for what the axes are. The first fold and seed of a setting stand for all.
"""

from typing import NamedTuple

import polars as pl

from foltr.lab.records import Rows, Run
from foltr.lab.reporting.labels import described, scatter_metrics, setting_name
from foltr.lab.reporting.series import headline
from foltr.types import Array


class Cloud(NamedTuple):
    """The points of one setting."""

    title: str
    x: Array  # [points]
    y: Array  # [points]
    relevant: Array  # [points] bool


def clouds(run: Run) -> list[Cloud]:
    """Settings in their order; those without points are left out."""
    figure, settings = run.manifest.get("figure") or {}, run.manifest.get("settings") or []
    rows, found = _rows(run), []
    for setting in settings if figure.get("scatter") else []:
        points = _points(rows.filter(pl.col("setting") == setting["index"]), figure["scatter"])
        title = described(setting, list(figure.get("lines") or [])) or setting_name(setting)
        if len(points):
            x, y, grade = (points[key].to_numpy() for key in ("x", "y", "grade"))
            found.append(Cloud(title if len(settings) > 1 else "", x, y, grade > 0))
    return found


def scatter_caption(run: Run) -> str:
    """What the axes are, the data, the marks, and of how many runs this is one."""
    runs = max(_rows(run).select("setting", "fold", "seed").unique().group_by("setting").len()["len"], default=0)
    return " ".join(
        [
            headline(run.manifest["figure"]["scatter"].get("name") or "points", run.manifest.get("settings") or []),
            "Filled circles: relevant (grade above 0); hollow stars: not relevant.",
            "One run a panel." if runs == 1 else f"The first of {runs} runs in each panel.",
            "All panels have the same limits.",
        ]
    )


def _rows(run: Run) -> Rows:
    return run.rows.filter(pl.col("metric").is_in(scatter_metrics(run.manifest)) & pl.col("value").is_finite())


def _points(rows: Rows, scatter: dict[str, str]) -> pl.DataFrame:
    """Columns x, y, grade, in the order of rounds; a round that lacks one of them is no point."""
    first = rows.sort("fold", "seed").filter(*(pl.col(key) == pl.col(key).first() for key in ("fold", "seed")))
    x, y, grade = (
        first.filter(pl.col("metric") == scatter[key]).select("round", pl.col("value").alias(key))
        for key in ("x", "y", "grade")
    )
    return x.join(y, on="round").join(grade, on="round").sort("round")
