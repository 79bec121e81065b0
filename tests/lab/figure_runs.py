"""Runs made by hand, for tests of what a figure says about a paper."""

import msgspec
import polars as pl

from foltr.lab.records import Manifest, Run

SCHEMA = {
    "setting": pl.Int32,
    "fold": pl.Int32,
    "seed": pl.Int64,
    "round": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
}
DATA = {"name": "mq2007", "note": "85 % sample"}
CURVE = [t / 100 for t in range(1, 101)]  # the value of round t is t / 100


def run_of(tmp_path, *settings, **manifest):
    """settings: (resolved, {(fold, seed): [value of round 1, 2, ...]}) of online_max_rr, and offline nDCG likewise."""
    rows, listed = [], []
    for index, (resolved, curves) in enumerate(settings):
        rounds = max(len(curve) for curve in curves.values())
        listed.append({"index": index, "resolved": resolved, "rounds": rounds, "data": DATA})
        for (fold, seed), curve in curves.items():
            for round, value in enumerate(curve, 1):
                for metric in ("online_max_rr", "online_ndcg@10", "discounted_online_ndcg", "offline_ndcg@10"):
                    rows.append((index, fold, seed, round, metric, float(value)))
    rows = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    about = msgspec.convert({"settings": listed, **manifest}, Manifest)
    return Run(tmp_path, about, rows.with_columns(client=pl.lit("")))


def users(name, **more):
    return {"data": {"name": "mq2007"}, "users": {"clicks": name}, "part": "", **more}


def final(*numbers):
    """Runs that end at these numbers, one a fold."""
    return {(fold, 1): [0.0, number] for fold, number in enumerate(numbers, 1)}
