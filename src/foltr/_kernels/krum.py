"""Distances between updates, Krum's scores and Bulyan's choices; see `federation.krum`."""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.sorting import sort
from foltr.types import Array


@kernel
def fill_distances(rows: Array, gaps: Array) -> None:
    for i in range(rows.shape[0]):
        gaps[i, i] = 0.0
        for j in range(i):
            one, other, total = rows[i], rows[j], 0.0
            for p in range(one.size):
                total += (one[p] - other[p]) ** 2
            gaps[i, j] = math.sqrt(total)
            gaps[j, i] = gaps[i, j]


@kernel
def sum_nearest(gaps: Array, nearest: int, room: Array, scores: Array) -> None:
    others = room.size - 1
    for i in range(room.size):
        for j in range(others):
            room[j] = gaps[i, j if j < i else j + 1]
        sort(room, others)
        scores[i] = 0.0
        for j in range(nearest):
            scores[i] += room[j]


@kernel
def add_mean(rows: Array, chosen: Array, mean: Array) -> None:
    for k in range(chosen.size):
        row = rows[chosen[k]]
        for p in range(mean.size):
            mean[p] += row[p] / chosen.size


@kernel
def pick_in_turn(gaps: Array, order: Array, bad: int, remains: Array, chosen: Array) -> None:
    """Fills chosen: Krum's choice among those that remain, again and again. order [n, n]: everybody's others by gap."""
    clients = remains.size
    for pick in range(chosen.size):
        nearest = min(max(1, clients - pick - bad - 2), clients - pick - 1)
        best, lowest = -1, np.inf
        for i in range(clients):
            if not remains[i]:
                continue
            score, seen, k = 0.0, 0, 0
            while seen < nearest:
                j = order[i, k]
                k += 1
                if remains[j] and j != i:
                    score += gaps[i, j]
                    seen += 1
            if best < 0 or score < lowest:
                best, lowest = i, score
        chosen[pick] = best
        remains[best] = False


@kernel
def mean_near_median(rows: Array, chosen: Array, kept: int, column: Array, centre: Array) -> None:
    count = chosen.size
    for p in range(centre.size):
        for k in range(count):
            column[k] = rows[chosen[k], p]
        sort(column, count)
        middle = 0.5 * (column[(count - 1) // 2] + column[count // 2])
        low, high = 0, count
        while high - low > kept:  # the values nearest to the median lie side by side
            if middle - column[low] > column[high - 1] - middle:
                low += 1
            else:
                high -= 1
        total = 0.0
        for k in range(low, high):
            total += column[k]
        centre[p] = total / kept
