"""Centres of the updates: trimmed mean, median, mean of bounded steps.

Sources: S2 section 5.3.2, after Yin et al. 2018 (trimmed mean with beta = m, median); Sun et al. 2019 (norm bounding).

Trimmed mean and median count every client alike; bounded steps are weighted by interactions.

What m < n/2 attackers can do: trimmed mean and median stay, in every coordinate, between the smallest and the largest
honest value. Bounded steps lead no farther from the start than the farthest honest client went.

Differs from the paper: norm bounding clips the difference from the start to the round's median norm (of all clients
alike) instead of a fixed norm, and adds no noise.
"""

import numpy as np

from foltr._kernels.aggregation import add_norm_bounded, fill_trimmed_mean
from foltr.federation.taking_part import taking_part
from foltr.types import Array


def trimmed_mean(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """Coordinate-wise mean after dropping the `bad` lowest and highest values."""
    rows, _, bad = taking_part(updates, weights, bad)
    return _mean_between(rows, min(bad, (len(rows) - 1) // 2), start)


def median(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """Coordinate-wise median; between two middle values their mean."""
    rows, _, _ = taking_part(updates, weights, bad)
    return _mean_between(rows, (len(rows) - 1) // 2, start)


def norm_bounding(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """Start plus the weighted mean of the differences from it, none longer than their median norm."""
    rows, weights, _ = taking_part(updates, weights, bad)
    begin = np.array(start, dtype=np.float64)
    if len(rows) == 0:
        return begin
    result = begin.copy()
    add_norm_bounded(rows, np.asarray(weights, dtype=np.float64), begin, np.empty((2, len(rows))), result)
    return result


def _mean_between(rows: Array, trim: int, start: Array) -> Array:
    if len(rows) == 0:
        return np.array(start, dtype=np.float64)
    centre = np.empty(rows.shape[1])
    fill_trimmed_mean(rows, trim, np.empty(len(rows)), centre)
    return centre
