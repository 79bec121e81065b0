"""Curves as numbers: few enough points to draw, the spread over runs, and a caption that says what was done.

OnlineMetrics metrics jump from round to round, so each run is averaged in up to 100 bins before runs are compared;
all other metrics are levels and keep the last value of each of up to 200 bins.
"""

from typing import Any, NamedTuple

import polars as pl

from foltr.lab.records import OFFLINE, ONLINE, Rows, Run
from foltr.lab.reporting.labels import Setting, data_names, figure_metrics, picture_name, scatter_metrics
from foltr.types import Array

MOST_ONLINE, MOST_OTHER = 100, 200


class Curve(NamedTuple):
    rounds: Array  # [points]
    mean: Array  # [points]
    sd: Array  # [points] over runs; 0 where a single run exists


def curve_metrics(run: Run) -> list[str]:
    """Metrics to draw: the figure's, else offline and online nDCG@10; only those with rows of a setting.

    Where tables or a scatter show the end of the run, a metric of a single round needs no curve beside them.
    """
    figure = run.manifest.get("figure") or {}
    settings = [setting["index"] for setting in run.manifest.get("settings") or []]
    rounds = run.rows.filter(pl.col("setting").is_in(settings)).group_by("metric").agg(pl.col("round").n_unique())
    least = 2 if ("tables" in figure or "scatter" in figure) and not figure.get("trend") else 1
    there = {metric for metric, count in rounds.iter_rows() if count >= least} - scatter_metrics(run.manifest)
    return [metric for metric in figure_metrics(run.manifest) or [OFFLINE[0], ONLINE[0]] if metric in there]


def curves_of(rows: Rows, metric: str) -> dict[int, Curve]:
    """setting -> its curve; values that are not numbers are left out."""
    binned = _binned(rows, metric)
    by_round = pl.all().sort_by("round").last()  # a level is that of the bin's end, an average that of its middle
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
    kept = rows.filter((pl.col("metric") == metric) & pl.col("value").is_finite())
    place = pl.col("round").rank("dense").over("setting").cast(pl.Int64) - 1
    count = pl.col("round").n_unique().over("setting").cast(pl.Int64)
    bins = pl.min_horizontal(pl.lit(_most(metric), dtype=pl.Int64), count)
    return kept.with_columns(bin=place * bins // count)


def _most(metric: str) -> int:
    return MOST_ONLINE if metric in ONLINE else MOST_OTHER


def interactions_a_round(setting: dict[str, Any]) -> float:
    """For an x axis in interactions; 1 where the manifest does not say."""
    interactions, rounds = setting.get("interactions"), setting.get("rounds")
    return interactions / rounds if interactions and rounds else 1.0


def caption(run: Run, *metrics: str) -> str:
    """What is drawn: metrics, data, runs, the band, the smoothing and the published points."""
    figure, kept = run.manifest.get("figure") or {}, run.rows.filter(pl.col("metric").is_in(metrics))
    parts = [headline(picture_name(run.manifest, metrics), run.manifest.get("settings") or [])]
    parts.append(_runs_and_band(run, kept))
    if figure.get("trend"):
        return " ".join(parts)
    if metrics[0] in ONLINE and kept["round"].n_unique() > MOST_ONLINE:
        parts.append(f"OnlineMetrics values jump from round to round: each run is averaged in {MOST_ONLINE} bins.")
    if figure.get("published") and figure.get("metric") == metrics[0]:
        parts.append("Hollow markers: values published in the paper.")
    return " ".join(parts)


def headline(name: str, settings: list[Setting]) -> str:
    """ "Offline nDCG@10 on mq2007 (85 % sample)." """
    proud = f"{name[:1].upper()}{name[1:]}" if name.split(" ")[0].islower() else name  # nDCG@10 stays as it is
    return f"{proud} on {data_names(settings)}."


def _runs_and_band(run: Run, kept: Rows) -> str:
    sizes = kept.select("setting", "fold", "seed").unique().group_by("setting").len()["len"].to_list()
    most = max(sizes, default=0)
    if most == 1:
        return "One run a line: no band."
    folds, seeds = kept["fold"].n_unique(), kept["seed"].n_unique()
    made = f" ({folds} folds × {seeds} seeds)" if folds * seeds == most and min(folds, seeds) > 1 else ""
    trend = (run.manifest.get("figure") or {}).get("trend")
    mean, spread = ("Point", "bar") if trend else ("Line", "band")
    return f"{mean}: mean over {most} runs{made}; {spread}: ±\N{NO-BREAK SPACE}1 standard deviation over runs."
