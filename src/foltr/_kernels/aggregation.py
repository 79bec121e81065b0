"""Sums and coordinate-wise centres of a cohort's updates."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.geometric_median import distance
from foltr._kernels.sorting import middle, sort
from foltr.types import Array


@kernel
def mark_finite(rows: Array, finite: Array) -> int:
    """Fills finite [n] and returns how many rows are."""
    left = 0
    for i in range(rows.shape[0]):
        broken = 0
        for p in range(rows.shape[1]):
            broken += not np.isfinite(rows[i, p])
        finite[i] = broken == 0
        left += broken == 0
    return left


@kernel
def weighted_sum_rows(rows: Array, weights: Array, total: Array) -> float:
    """Fills total; returns the sum of the weights."""
    together = 0.0
    for p in range(total.size):
        total[p] = 0.0
    for i in range(weights.size):
        row, weight = rows[i], np.float64(weights[i])
        together += weight
        for p in range(total.size):
            total[p] += weight * row[p]
    return together


@kernel
def fill_trimmed_mean(rows: Array, trim: int, column: Array, centre: Array) -> None:
    count = column.size
    for p in range(centre.size):
        for i in range(count):
            column[i] = rows[i, p]
        sort(column, count)
        total = 0.0
        for i in range(trim, count - trim):
            total += column[i]
        centre[p] = total / (count - 2 * trim)


@kernel
def add_norm_bounded(rows: Array, weights: Array, start: Array, room: Array, result: Array) -> None:
    count, norms, ordered, total = weights.size, room[0], room[1], 0.0
    for i in range(count):
        norms[i] = distance(rows[i], start)
        ordered[i] = norms[i]
        total += weights[i]
    bound = middle(ordered, count)
    for i in range(count):
        row = rows[i]
        share = weights[i] / total
        if norms[i] > bound:
            share *= bound / norms[i]
        if share > 0.0:
            for p in range(result.size):
                result[p] += share * (row[p] - start[p])
