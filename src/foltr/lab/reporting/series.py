"""The data of pictures: learning curves, trends along one number, scatters, and their captions.

Curves: online metrics jump from round to round, so each run is averaged in up to 100 bins before runs are compared; all
other metrics are levels and keep the last value of each of up to 200 bins.

Trends: the final value of a metric along one number, such as quality against epsilon. A figure asks for one by `trend`:

    x        a key, looked up in the setting's record (`privacy.run.epsilon` of its card) and then in its spec; or a
             table from the value of the figure's `columns` key to the key of that panel (others are not drawn)
    name     words for x, or a table of them
    metrics  metrics to draw together in one picture, a line each; else one picture for each metric of the figure
    y        their common label
    log      logarithmic x
    log_y    logarithmic y; or a list of the metrics whose y is

A setting whose x is missing or infinite is drawn as a horizontal line: the reference for the others.

Scatters: points in a plane with a grade each, such as documents by their features, one panel for each setting. A figure
asks for one by `scatter = { x, y, grade, name }`: three metrics whose rounds are the points (the same round of all
three is one point) and a name for the axes. The first fold and seed of a setting are drawn.
"""

import math
from typing import Any, NamedTuple

import msgspec
import polars as pl

from foltr.lab.records import (
    ONLINE,
    FigureRecord,
    Rows,
    Run,
    Scatter,
    SettingRecord,
    Trend,
    statistics,
    whole,
)
from foltr.lab.reporting.counted import counted_note
from foltr.lab.reporting.labels import (
    data_names,
    described,
    figure_metrics,
    figure_of,
    listed_metrics,
    metric_name,
    picture_name,
    plain,
    scatter_metrics,
    setting_name,
    shared_start,
    value_of,
)
from foltr.types import Array

MAX_ONLINE_POINTS, MAX_OTHER_POINTS = 100, 200


class Curve(NamedTuple):
    rounds: Array  # [points]
    mean: Array  # [points]
    sd: Array  # [points] over runs; 0 where a single run exists


def curve_metrics(run: Run) -> list[str]:
    """Metrics to draw: the figure's, else those of the spec and online nDCG@10; only those with rows.

    Where tables or a scatter show the end of the run, a metric of a single round needs no curve beside them.
    """
    figure = figure_of(run.manifest)
    settings = [setting.index for setting in run.manifest.settings]
    rounds = (
        whole(run.rows).filter(pl.col("setting").is_in(settings)).group_by("metric").agg(pl.col("round").n_unique())
    )
    needed = 2 if (figure.tables is not None or figure.scatter) and not figure.trend else 1
    there = {metric for metric, count in rounds.iter_rows() if count >= needed} - scatter_metrics(run.manifest)
    return [
        metric
        for metric in figure_metrics(run.manifest) or [*listed_metrics(run.manifest), ONLINE[0]]
        if metric in there
    ]


def curves_of(rows: Rows, metric: str) -> dict[int, Curve]:
    """setting -> its curve; values that are not numbers are left out."""
    binned = _binned(rows, metric)
    by_round = pl.all().sort_by("round").last()  # x of a level is the end of the bin, x of an average its centre
    in_bin = pl.col("round", "value").mean() if metric in ONLINE else by_round
    runs = binned.select("setting", "fold", "seed", "bin", "round", "value")
    points = (
        runs.group_by("setting", "fold", "seed", "bin")
        .agg(in_bin)
        .group_by("setting", "bin")
        .agg(pl.col("round").mean(), mean=pl.col("value").mean(), sd=pl.col("value").std().fill_null(0.0))
        .sort("setting", "bin")
    )
    parts = points.partition_by("setting", as_dict=True)
    return {
        int(setting): Curve(part["round"].to_numpy(), part["mean"].to_numpy(), part["sd"].to_numpy())
        for (setting,), part in parts.items()
    }


def _binned(rows: Rows, metric: str) -> Rows:
    """The metric's rows with the bin each falls into; the first and the last round keep a place."""
    chosen = whole(rows).filter((pl.col("metric") == metric) & pl.col("value").is_finite())
    place = pl.col("round").rank("dense").over("setting").cast(pl.Int64) - 1
    count = pl.col("round").n_unique().over("setting").cast(pl.Int64)
    bins = pl.min_horizontal(pl.lit(_max_points(metric), dtype=pl.Int64), count)
    return chosen.with_columns(bin=place * bins // count)


def _max_points(metric: str) -> int:
    return MAX_ONLINE_POINTS if metric in ONLINE else MAX_OTHER_POINTS


def interactions_a_round(setting: SettingRecord) -> float:
    """For an x axis in interactions; 1 where the manifest does not say."""
    interactions, rounds = setting.interactions, setting.rounds
    return interactions / rounds if interactions and rounds else 1.0


def caption(run: Run, *metrics: str) -> str:
    """Caption: metrics, data, runs, the band, the smoothing, the published points and the queries that count."""
    figure, chosen = figure_of(run.manifest), whole(run.rows).filter(pl.col("metric").is_in(metrics))
    parts = [headline(picture_name(run.manifest, metrics), run.manifest.settings)]
    parts.append(_runs_and_band(run, chosen))
    note = counted_note(run, list(metrics))
    if figure.trend:
        return " ".join(filter(None, [*parts, note]))
    if metrics[0] in ONLINE and chosen["round"].n_unique() > MAX_ONLINE_POINTS:
        parts.append(f"Online values jump from round to round: each run is averaged in {MAX_ONLINE_POINTS} bins.")
    if figure.published and figure.metric == metrics[0]:
        parts.append("Hollow markers: values published in the paper.")
    return " ".join(filter(None, [*parts, note]))


def headline(name: str, settings: list[SettingRecord]) -> str:
    """ "Offline nDCG@10 on mq2007 (85 % sample)." """
    proud = f"{name[:1].upper()}{name[1:]}" if name.split(" ")[0].islower() else name  # nDCG@10 stays as it is
    return f"{proud} on {data_names(settings)}."


def _runs_and_band(run: Run, chosen: Rows) -> str:
    sizes = chosen.select("setting", "fold", "seed").unique().group_by("setting").len()["len"].to_list()
    largest = max(sizes, default=0)
    if largest == 1:
        return "One run a line: no band."
    folds, seeds = chosen["fold"].n_unique(), chosen["seed"].n_unique()
    design = f" ({folds} folds × {seeds} seeds)" if folds * seeds == largest and min(folds, seeds) > 1 else ""
    trend = figure_of(run.manifest).trend
    mean, spread = ("Point", "bar") if trend else ("Line", "band")
    return f"{mean}: mean over {largest} runs{design}; {spread}: ±\N{NO-BREAK SPACE}1 standard deviation over runs."


TrendPoint = tuple[float | None, float, float]  # x, mean, sd


class TrendLine(NamedTuple):
    """One line: points along x, or a horizontal line where x is missing or infinite."""

    name: str
    points: list[tuple[float, float, float]]  # x, mean, sd
    level: float | None


def trend_lines(run: Run, *metrics: str) -> dict[str, list[TrendLine]]:
    """panel -> its lines."""
    measured, drawn = statistics(run.rows), _settings_with_x(run)
    names = _line_names(figure_of(run.manifest), [setting for setting, _, _ in drawn], metrics)
    found: dict[str, dict[str, list[TrendPoint]]] = {}
    for setting, panel, key in drawn:
        cells = measured.get(setting.index, {})
        for metric in [metric for metric in metrics if metric in cells]:
            point = (_x(setting, key), cells[metric].mean, cells[metric].sd)
            found.setdefault(panel, {}).setdefault(names[setting.index, metric], []).append(point)
    return {panel: [_trend_line(name, points) for name, points in lines.items()] for panel, lines in found.items()}


def _settings_with_x(run: Run) -> list[tuple[SettingRecord, str, str]]:
    """Settings whose panel has an x, with both."""
    figure, found = figure_of(run.manifest), []
    assert figure.trend is not None
    for setting in run.manifest.settings:
        panel = plain(value_of(setting, figure.columns)) if isinstance(figure.columns, str) else ""
        key = of_panel(figure.trend.x, panel)
        if key is not None:
            found.append((setting, panel, key))
    return found


def of_panel(given: str | dict[str, str], panel: str) -> str | None:
    """The value for one panel: the same for all, or its entry of a table."""
    return given.get(panel) if isinstance(given, dict) else given


def x_name(trend: Trend, panel: str) -> str:
    """Words for the panel's x, else its key."""
    return of_panel(trend.name, panel) or of_panel(trend.x, panel) or ""


def _line_names(
    figure: FigureRecord, settings: list[SettingRecord], metrics: tuple[str, ...]
) -> dict[tuple[int, str], str]:
    """(setting, metric) -> the settings' line, the metric drawn with others, or both where both are several."""
    lines = {setting.index: described(setting, figure.lines) for setting in settings}
    if figure.trend is None or not figure.trend.metrics:
        return {(index, metric): line or "all settings" for index, line in lines.items() for metric in metrics}
    full = [metric_name(metric) for metric in metrics]
    short = dict(zip(metrics, (name.removeprefix(shared_start(full)) for name in full), strict=True))
    several = len(set(lines.values())) > 1
    return {
        (index, metric): f"{line}, {short[metric]}" if several and line else short[metric]
        for index, line in lines.items()
        for metric in metrics
    }


def _trend_line(name: str, points: list[TrendPoint]) -> TrendLine:
    levels = [mean for x, mean, _ in points if x is None]
    return TrendLine(
        name, sorted((x, mean, sd) for x, mean, sd in points if x is not None), levels[0] if levels else None
    )


def _x(setting: SettingRecord, key: str) -> float | None:
    place: Any = msgspec.to_builtins(setting)
    for part in key.split("."):
        place = place.get(part) if isinstance(place, dict) else None
    found = value_of(setting, key) if place is None else place
    number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
    return float(found) if number else None


class Cloud(NamedTuple):
    """The points of one setting."""

    title: str
    x: Array  # [points]
    y: Array  # [points]
    relevant: Array  # [points] bool


def clouds(run: Run) -> list[Cloud]:
    """Settings in their order; those without points are left out."""
    figure, settings = figure_of(run.manifest), run.manifest.settings
    rows, found = _scatter_rows(run), []
    for setting in settings:
        if figure.scatter is None:
            break
        points = _scatter_points(rows.filter(pl.col("setting") == setting.index), figure.scatter)
        title = described(setting, figure.lines) or setting_name(setting)
        if len(points):
            x, y, grade = (points[key].to_numpy() for key in ("x", "y", "grade"))
            found.append(Cloud(title if len(settings) > 1 else "", x, y, grade > 0))
    return found


def scatter_caption(run: Run) -> str:
    """Caption: the axes, the data, the marks, and of how many runs this is one."""
    scatter, singles = figure_of(run.manifest).scatter, _scatter_rows(run).select("setting", "fold", "seed").unique()
    runs = max(singles.group_by("setting").len()["len"], default=0)
    return " ".join(
        [
            headline(scatter.name if scatter else "points", run.manifest.settings),
            "Filled circles: relevant (grade above 0); hollow stars: not relevant.",
            "One run a panel." if runs == 1 else f"The first of {runs} runs in each panel.",
            "All panels have the same limits.",
        ]
    )


def _scatter_rows(run: Run) -> Rows:
    return run.rows.filter(pl.col("metric").is_in(scatter_metrics(run.manifest)) & pl.col("value").is_finite())


def _scatter_points(rows: Rows, scatter: Scatter) -> pl.DataFrame:
    """Columns x, y, grade, in the order of rounds; a round that lacks one of them is no point."""
    first = rows.sort("fold", "seed").filter(*(pl.col(key) == pl.col(key).first() for key in ("fold", "seed")))
    x, y, grade = (
        first.filter(pl.col("metric") == getattr(scatter, key)).select("round", pl.col("value").alias(key))
        for key in ("x", "y", "grade")
    )
    return x.join(y, on="round").join(grade, on="round").sort("round")
