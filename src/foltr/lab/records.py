"""What a run leaves, and the only thing that reporting reads.

    runs/<hash>/manifest.json   what ran: spec, settings, data, versions, machine, times, verdicts
    runs/<hash>/rows.parquet    setting, fold, seed, round, metric, value
    runs/<hash>/ranker.npz      final parameters, one array [folds * seeds, P] a setting
    runs/<hash>/privacy.json    the privacy card of every setting
    runs/<hash>/ledger.json     which releases hold something of whom, where there is a mechanism

Rows are kept for at most about a thousand rounds of a run. A row of an online metric is the mean over the rounds
since the row before; `online_discounted` is the sum so far; offline metrics are those of the ranker after that round.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from foltr.errors import StorageError

ONLINE = ("online_ndcg@10", "online_max_rr")
OFFLINE = ("offline_ndcg@10", "offline_mrr@10")
DISCOUNTED = "online_discounted"

Rows = pl.DataFrame  # setting: i32, fold: i32, seed: i64, round: i64, metric: str, value: f64


class Run(NamedTuple):
    dir: Path
    manifest: dict[str, Any]
    rows: Rows


def read(folder: Path) -> Run:
    """A finished run, as it lies on disk."""
    manifest, rows = folder / "manifest.json", folder / "rows.parquet"
    if not manifest.is_file() or not rows.is_file():
        raise StorageError(
            f"{folder}: not a finished run (manifest.json or rows.parquet is missing); run it to its end"
        )
    try:
        run = Run(folder, json.loads(manifest.read_text(encoding="utf-8")), pl.read_parquet(rows))
    except (ValueError, OSError, pl.exceptions.PolarsError) as problem:
        raise StorageError(f"{folder}: damaged ({problem}); run it again with the same command") from None
    if not isinstance(run.manifest, dict) or not set(_COLUMNS) < set(run.rows.columns):
        raise StorageError(f"{folder}: not a run of foltr (manifest.json or rows.parquet holds something else)")
    return run


def curves(rows: Rows, metric: str) -> Rows:
    """Mean, sd and number of runs of a metric by setting and round."""
    return (
        rows.filter(pl.col("metric") == metric)
        .group_by("setting", "round")
        .agg(mean=pl.col("value").mean(), sd=pl.col("value").std(), runs=pl.len())
        .sort("setting", "round")
    )


def all_curves(rows: Rows) -> Rows:
    """`curves` of every metric, with its name."""
    parts = [curves(rows, metric).with_columns(metric=pl.lit(metric)) for metric in rows["metric"].unique()]
    return pl.concat(parts).sort("setting", "metric", "round")


def summary(rows: Rows) -> Rows:
    """One value a metric and single run: setting, fold, seed, metric, value; metric names as in `foltr run --json`."""
    if not (_latest and _latest[0] is rows):  # a page asks many times for the same rows, which may be millions
        _latest[:] = rows, pl.concat([_last(rows), _means(rows), _ends(rows)]).sort("setting", "metric", "fold", "seed")
    return _latest[1]


_latest: list[Rows] = []  # rows, and their summary


_KEY = ["setting", "fold", "seed"]
_COLUMNS = [*_KEY, "metric", "value"]


def _last(rows: Rows) -> Rows:
    """Of the final ranker, the whole discounted sum, and what else is known of the end."""
    kept = rows.filter(~pl.col("metric").is_in(ONLINE))
    return kept.sort("round").group_by([*_KEY, "metric"]).agg(pl.col("value").last()).select(_COLUMNS)


def _weighted(rows: Rows) -> Rows:
    """Online rows with the number of rounds each stands for."""
    online = rows.filter(pl.col("metric").is_in(ONLINE)).sort("round")
    gap = pl.col("round") - pl.col("round").shift(1, fill_value=0).over([*_KEY, "metric"])
    return online.with_columns(rounds=gap)


def _mean_of(rows: Rows) -> Rows:
    value = (pl.col("value") * pl.col("rounds")).sum() / pl.col("rounds").sum()
    return rows.group_by([*_KEY, "metric"]).agg(value=value).select(_COLUMNS)


def _means(rows: Rows) -> Rows:
    return _mean_of(_weighted(rows))


def _ends(rows: Rows) -> Rows:
    """MaxRR of the first round, and of the last tenth of the rounds."""
    max_rr = _weighted(rows).filter(pl.col("metric") == "online_max_rr")
    last = pl.col("round").max().over(_KEY)
    first = max_rr.filter(pl.col("round") == 1).with_columns(metric=pl.lit("online_max_rr_first"))
    tenth = max_rr.filter(pl.col("round") > last * 0.9).with_columns(metric=pl.lit("online_max_rr_last_tenth"))
    return pl.concat([first.select(_COLUMNS), _mean_of(tenth)])


def statistics(rows: Rows) -> dict[int, dict[str, dict[str, float]]]:
    """setting -> metric -> mean, sd (over folds and seeds), runs."""
    table: dict[int, dict[str, dict[str, float]]] = {}
    grouped = summary(rows).group_by("setting", "metric", maintain_order=True)
    for (setting, metric), part in grouped:
        values = part["value"].to_numpy()
        sd = float(np.std(values, ddof=1)) if values.size > 1 else 0.0
        cell = {"mean": float(values.mean()), "sd": sd, "runs": int(values.size)}
        table.setdefault(int(str(setting)), {})[str(metric)] = cell
    return table
