"""Scaling of features, in place, on whole queries.

    none          as in the files
    query-minmax  each feature from 0 to 1 over the documents of one query; constant there, it becomes 0
    zscore        (value - mean) / sd with mean and sd of the training set, for validation and test as well;
                  a feature that is constant in the training set becomes 0

Means and squares are gathered block by block and merged as in Chan, Golub and LeVeque (1979), so that large
values with a small spread keep their digits.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.letor import scale_queries, standardise
from foltr.errors import SpecError
from foltr.types import Array

KINDS = ("none", "query-minmax", "zscore")


class Moments(NamedTuple):
    """Statistics of each feature over a set of rows."""

    rows: int
    mean: Array  # [d] float64
    squares: Array  # [d] float64: sum of squared distances from the mean


def check_scaling(kind: str) -> str:
    """The kind itself, or an error that lists what there is."""
    if kind not in KINDS:
        raise SpecError(f"normalize={kind!r} is unknown; there are {', '.join(KINDS)}")
    return kind


def no_moments(features: int) -> Moments:
    return Moments(0, np.zeros(features), np.zeros(features))


def add_rows(known: Moments, features: Array) -> Moments:
    """The moments of the known rows and these together."""
    rows = known.rows + len(features)
    mean = features.mean(axis=0, dtype=np.float64)
    squares = np.square(features - mean).sum(axis=0)
    step = mean - known.mean
    return Moments(
        rows,
        known.mean + step * (len(features) / rows),
        known.squares + squares + np.square(step) * (known.rows * len(features) / rows),
    )


def centre_and_scale(moments: Moments) -> Array:
    """[2, d]: what to subtract and what to multiply by, as `standardise` takes it."""
    spread = np.sqrt(moments.squares / moments.rows)
    varies = spread > 1e-12 * np.abs(moments.mean)  # rounding leaves a constant a tiny spread
    return np.stack([moments.mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)])


def query_minmax(features: Array, offsets: Array) -> None:
    """Scale the documents offsets[q] .. offsets[q + 1] of each query among themselves."""
    scale_queries(features, offsets, np.empty(features.shape[1]), np.empty(features.shape[1]))


def apply(kind: str, features: Array, offsets: Array, zscore: Array | None = None) -> None:
    """Scale whole queries in place; `zscore` is the result of `centre_and_scale` over the training set."""
    if check_scaling(kind) == "query-minmax":
        query_minmax(features, offsets)
    elif kind == "zscore":
        if zscore is None:
            raise SpecError("zscore needs the mean and sd of a training set: load a fold, not a single part")
        standardise(features, zscore[0], zscore[1])
