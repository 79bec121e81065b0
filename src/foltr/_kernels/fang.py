"""Fang's search for lambda, and his draws beyond the honest extremes, in machine code.

Distances between honest updates are computed once, for all lambdas: a crafted update start + lambda s is at
sqrt(|moved|^2 - 2 lambda s.moved + lambda^2 |s|^2) from an honest one.
"""

import math

import numpy as np

from foltr._kernels.compile import callee, kernel
from foltr._kernels.sorting import sort
from foltr.types import Array

SMALLEST = 1e-5  # of lambda; where the paper's search gives up
STRETCH = 2.0  # b


@kernel
def draw_beyond(rows: Array, others: Array, start: Array, mean: Array, sd: Array, full: bool) -> None:
    """Turns rows [attackers, P] of even numbers in [0, 1) into values past the honest ones, against the mean's move."""
    for p in range(start.size):
        up = mean[p] < start[p]
        if full:
            near = others[0, p]
            for i in range(others.shape[0]):
                near = max(near, others[i, p]) if up else min(near, others[i, p])
            far = STRETCH * near if (near > 0.0) == up else near / STRETCH
        else:
            side = 1.0 if up else -1.0
            near, far = mean[p] + 3.0 * side * sd[p], mean[p] + 4.0 * side * sd[p]
        for i in range(rows.shape[0]):
            rows[i, p] = start[p] if mean[p] == start[p] else near + rows[i, p] * (far - near)


@kernel
def search_step(
    others: Array, start: Array, against: Array, gaps: Array, fewest: int, attackers: int, any_place: bool, room: Array
) -> float:
    """lambda: the first of bound, bound / 2, ... with which a crafted update is picked, else the last.

    Played with `fewest` crafted updates, then with one more, until it is found. gaps [k, k] between honest updates;
    their rows get sorted.
    """
    honest, lengths, along = others.shape[0], room[0], room[1]
    nearest = max(1, honest - 2)
    square, farthest, least, step = 0.0, 0.0, np.inf, 0.0
    for p in range(start.size):
        square += against[p] * against[p]
    if square == 0.0:
        return 0.0
    for i in range(honest):
        lengths[i], along[i], score = 0.0, 0.0, 0.0
        for p in range(start.size):
            moved = others[i, p] - start[p]
            lengths[i] += moved * moved
            along[i] += moved * against[p]
        sort(gaps[i], honest)  # first the distance to itself
        for j in range(1, min(nearest + 1, honest)):
            score += gaps[i, j]
        farthest, least = max(farthest, math.sqrt(lengths[i])), min(least, score)
    for crafted in range(fewest, attackers + 1):
        # no crafted update can be farther from the start and still have the least score
        step = (least / max(1, nearest - crafted + 1) + farthest) / math.sqrt(square)
        while True:
            if picked(gaps, lengths, along, square, crafted, nearest, any_place, step, room[2:]):
                return step
            if step < SMALLEST:
                break
            step *= 0.5
    return step


@callee
def picked(
    gaps: Array, lengths: Array, along: Array, square: float, crafted: int, nearest: int, any_place: bool,
    step: float, room: Array,
) -> bool:  # fmt: skip
    """Whether the crafted updates, which come first, beat the best honest one (or the worst, for any place)."""
    honest, away, ordered = lengths.size, room[0], room[1]
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
        score = honest_score(gaps[i], away[i], crafted, nearest)
        rival = max(rival, score) if any_place else min(rival, score)
    return own <= rival


@callee
def honest_score(gaps: Array, away: float, crafted: int, nearest: int) -> float:
    """Sum of the nearest among sorted gaps (the first is to itself) and so many crafted updates at `away`."""
    score, others, left = 0.0, 1, crafted
    for _ in range(min(nearest, gaps.size - 1 + crafted)):
        if left > 0 and (others == gaps.size or away <= gaps[others]):
            score += away
            left -= 1
        else:
            score += gaps[others]
            others += 1
    return score
