"""Crafted updates in machine code: moments, Fang's search for lambda and draws beyond the extremes, min-max's gamma.

Distances between honest deltas are computed once, for all lambdas: a crafted delta lambda s is at
sqrt(|delta|^2 - 2 lambda s.delta + lambda^2 |s|^2) from an honest one.
"""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.sorting import sort
from foltr.types import Array

SMALLEST = 1e-5  # of lambda; where the paper's search gives up
STRETCH = 2.0  # b


def mean_and_stddev(rows: Array) -> tuple[Array, Array]:
    """Per coordinate. The standard deviation is that of these rows (divided by n), so it is 0 for a single one."""
    mean, stddev = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    moments(rows, mean, stddev)
    return mean, stddev


@kernel
def moments(rows: Array, mean: Array, stddev: Array) -> None:
    """Fills mean and stddev [P] of rows [k, P]; the standard deviation divides by k."""
    count = rows.shape[0]
    for p in range(mean.size):
        mean[p], stddev[p] = 0.0, 0.0
    for i in range(count):
        for p in range(mean.size):
            mean[p] += rows[i, p]
    for p in range(mean.size):
        mean[p] /= count
    for i in range(count):
        for p in range(mean.size):
            stddev[p] += (rows[i, p] - mean[p]) ** 2
    for p in range(mean.size):
        stddev[p] = math.sqrt(stddev[p] / count)


@kernel
def draw_beyond(rows: Array, others: Array, model: Array, mean: Array, stddev: Array, full: bool) -> None:
    """Turns rows [attackers, P] of uniform numbers in [0, 1) into deltas against the mean delta.

    They lead past the honest models, model + others (full), or lie 3 to 4 standard deviations from the mean.
    """
    for p in range(model.size):
        up = mean[p] < 0.0
        if full:
            near = others[0, p]
            for i in range(others.shape[0]):
                near = max(near, others[i, p]) if up else min(near, others[i, p])
            near += model[p]
            far = STRETCH * near if (near > 0.0) == up else near / STRETCH
            near, far = near - model[p], far - model[p]
        else:
            side = 1.0 if up else -1.0
            near, far = mean[p] + 3.0 * side * stddev[p], mean[p] + 4.0 * side * stddev[p]
        for i in range(rows.shape[0]):
            rows[i, p] = 0.0 if mean[p] == 0.0 else near + rows[i, p] * (far - near)


@kernel
def search_lambda(
    others: Array, against: Array, distances: Array, fewest: int, attackers: int, any_place: bool, workspace: Array
) -> float:
    """lambda: the first of bound, bound / 2, ... whose crafted delta lambda * against is selected, else the last.

    Played with `fewest` crafted deltas, then with one more, until it is found. distances [k, k] between honest deltas;
    their rows get sorted. workspace [4, k].
    """
    honest, lengths, along = others.shape[0], workspace[0], workspace[1]
    nearest = max(1, honest - 2)
    square, farthest, lowest, step = 0.0, 0.0, np.inf, 0.0
    for p in range(against.size):
        square += against[p] * against[p]
    if square == 0.0:
        return 0.0
    for i in range(honest):
        lengths[i], along[i], score = 0.0, 0.0, 0.0
        for p in range(against.size):
            lengths[i] += others[i, p] * others[i, p]
            along[i] += others[i, p] * against[p]
        sort(distances[i], honest)  # first the distance to itself
        for j in range(1, min(nearest + 1, honest)):
            score += distances[i, j]
        farthest, lowest = max(farthest, math.sqrt(lengths[i])), min(lowest, score)
    for crafted in range(fewest, attackers + 1):
        # no crafted delta can be longer and still have the lowest score
        step = (lowest / max(1, nearest - crafted + 1) + farthest) / math.sqrt(square)
        while True:
            if selected(distances, square, crafted, nearest, any_place, step, workspace):
                return step
            if step < SMALLEST:
                break
            step *= 0.5
    return step


@kernel
def selected(
    distances: Array, square: float, crafted: int, nearest: int, any_place: bool, step: float, workspace: Array
) -> bool:
    """Whether the crafted deltas, which come first, beat the best honest one (or the worst, for any place)."""
    lengths, along, away, ordered = workspace[0], workspace[1], workspace[2], workspace[3]
    honest = lengths.size
    for i in range(honest):
        away[i] = math.sqrt(max(0.0, lengths[i] - 2.0 * step * along[i] + step * step * square))
        at = i
        while at > 0 and ordered[at - 1] > away[i]:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = away[i]
    own = 0.0
    for i in range(min(honest, max(0, nearest - crafted + 1))):  # the other crafted ones are at distance 0
        own += ordered[i]
    rival = -np.inf if any_place else np.inf
    for i in range(honest):
        score = honest_score(distances[i], away[i], crafted, nearest)
        rival = max(rival, score) if any_place else min(rival, score)
    return own <= rival


@kernel
def honest_score(distances: Array, away: float, crafted: int, nearest: int) -> float:
    """Sum of the nearest among sorted distances (the first is to itself) and so many crafted deltas at `away`."""
    score, others, left = 0.0, 1, crafted
    for _ in range(min(nearest, distances.size - 1 + crafted)):
        if left > 0 and (others == distances.size or away <= distances[others]):
            score += away
            left -= 1
        else:
            score += distances[others]
            others += 1
    return score


@kernel
def largest_gamma(known: Array, mean: Array, direction: Array, distances: Array) -> float:
    """The largest gamma for which mean + gamma * direction is within the known deltas' diameter of all of them.

    ||mean + gamma direction - delta||^2 = diameter^2 is a quadratic in gamma; its larger root is not negative, because
    the mean itself is within the diameter.
    """
    square, diameter, gamma = 0.0, 0.0, np.inf
    for p in range(mean.size):
        square += direction[p] * direction[p]
    if square == 0.0:
        return 0.0
    for i in range(known.shape[0]):
        for j in range(i):
            diameter = max(diameter, distances[i, j])
    for i in range(known.shape[0]):
        half, length = 0.0, 0.0
        for p in range(mean.size):
            apart = mean[p] - known[i, p]
            half += apart * direction[p]
            length += apart * apart
        slack = max(diameter * diameter - length, 0.0)
        root = math.sqrt(half * half + square * slack)
        # by the form that subtracts nothing where half > 0
        gamma = min(gamma, slack / (half + root) if half > 0.0 else (root - half) / square)
    return gamma
