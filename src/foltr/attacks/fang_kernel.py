"""Fang's search for lambda in machine code: distances between honest updates are computed once, for all lambdas.

A crafted update start + lambda s is at sqrt(|moved|^2 - 2 lambda s.moved + lambda^2 |s|^2) from an honest one.
"""

import math

import numpy as np

from foltr.kernel import kernel
from foltr.types import Array

SMALLEST = 1e-5  # of lambda; where the paper's search gives up


@kernel
def largest_step(
    gaps: Array, lengths: Array, along: Array, square: float, crafted: int, nearest: int, any_place: bool,
    bound: float, room: Array,
) -> float:  # fmt: skip
    """The first of bound, bound / 2, ... with which a crafted update is picked; minus the last where none is.

    gaps [k, k] between honest updates, each row sorted; lengths [k] squared and along [k] of their moves.
    """
    step = bound
    while not picked(gaps, lengths, along, square, crafted, nearest, any_place, step, room):
        if step < SMALLEST:
            return -step
        step *= 0.5
    return step


@kernel
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


@kernel
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
