"""Smoothed Weiszfeld steps; see `federation.geometric_median`."""

import math

import numpy as np

from foltr._kernels.compile import callee, kernel
from foltr._kernels.sorting import weighted_middle
from foltr.types import Array

_SMOOTHING = 1e-6  # of the typical distance; nearer clients pull no harder than from there
_TOLERANCE = 1e-8
_STEPS = 1000


@callee
def fill_weighted_median(rows: Array, weights: Array, room: Array, point: Array) -> float:
    """Fills point with the weighted coordinate-wise median; returns the typical distance of a client to it."""
    count, column, pull = weights.size, room[1], room[2]
    for p in range(point.size):
        for i in range(count):
            column[i], pull[i] = rows[i, p], weights[i]
        point[p] = weighted_middle(column, pull, count)
    for i in range(count):
        column[i], pull[i] = distance(rows[i], point), weights[i]
    return weighted_middle(column, pull, count)


@kernel
def weiszfeld(rows: Array, weights: Array, room: Array, coming: Array, point: Array) -> None:
    count, gaps, pull = weights.size, room[0], room[2]
    typical = fill_weighted_median(rows, weights, room, point)
    if typical == 0.0 or typical == np.inf:  # half of the weight is here, which is the end; or nothing can be compared
        return
    moved = np.inf
    for _ in range(_STEPS):
        if moved <= _TOLERANCE * typical:
            break
        nearest, total = np.inf, 0.0
        for i in range(count):
            gaps[i] = max(distance(rows[i], point), _SMOOTHING * typical)
            nearest = min(nearest, gaps[i])
        for i in range(count):
            pull[i] = weights[i] * (nearest / gaps[i])
            total += pull[i]
        for p in range(point.size):
            coming[p] = 0.0
        for i in range(count):
            share, row = pull[i] / total, rows[i]
            for p in range(point.size):
                coming[p] += share * row[p]
        moved = distance(coming, point)
        for p in range(point.size):
            point[p] = coming[p]
    settle(rows, weights, gaps, coming, point)


@callee
def settle(rows: Array, weights: Array, gaps: Array, force: Array, point: Array) -> None:
    """Onto the nearest client, if all others together pull less than it holds (Kuhn 1973): steps only creep there."""
    nearest = 0
    for i in range(weights.size):
        if gaps[i] < gaps[nearest]:
            nearest = i
    for p in range(point.size):
        force[p] = 0.0
    held = 0.0
    for i in range(weights.size):
        row, away = rows[i], distance(rows[i], rows[nearest])
        if away == 0.0:
            held += weights[i]
        elif away < np.inf:
            for p in range(point.size):
                force[p] += weights[i] * (row[p] - rows[nearest, p]) / away
        else:
            held -= weights[i]  # too far for a direction: the worst one
    pulled = 0.0
    for p in range(point.size):
        pulled += force[p] ** 2
    if math.sqrt(pulled) <= held:
        for p in range(point.size):
            point[p] = rows[nearest, p]


@callee
def distance(one: Array, other: Array) -> float:
    total = 0.0
    for p in range(one.size):
        total += (one[p] - other[p]) ** 2
    return math.sqrt(total)
