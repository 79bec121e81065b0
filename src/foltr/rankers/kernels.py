"""Scoring and list making in machine code, over a slice of a ragged collection.

Twins of `linear`, `mlp` and `plackett_luce`. `hidden` = 0 means a linear ranker, else an MLP of that width.

Drawing a list: each next document is drawn from all of them in proportion to its mass exp(score), again if it was
drawn before: the same as drawing from those that remain. When the ones drawn hold most of the mass they are taken out
and what remains is summed anew, never found by subtraction alone: no digits are lost whatever the scores.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr.intrinsics import dot, prefetch
from foltr.kernel import inlined, kernel
from foltr.rng import uniform_at
from foltr.types import Array

BLOCK = 8  # documents whose masses are compared at once
# share of the mass that must remain, else the documents drawn are taken out; a little below a half, so that it does not
# hang on the last digit where all documents are alike
CROWDED = 0.5 - 1e-9
_FADED = 1e-100  # of the largest mass at the last shift; far above where doubles lose digits
_LINE = 16  # features in a line of the processor's cache
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10


class Scratch(NamedTuple):
    """Room to work in; one for each thread, made once."""

    scores: Array  # [longest list]
    mass: Array  # [blocks, BLOCK] of the documents in their order
    reach: Array  # [blocks, BLOCK] mass up to and with each document
    ends: Array  # [groups, BLOCK] reach of the last document of each block, infinite for those past the last
    taken: Array  # [longest list] bool, false between lists
    ranking: Array  # [shown]
    clicks: Array  # [shown] bool
    chosen: Array  # [shown] mass of the document at each rank
    masses: Array  # [shown] mass that remained before each rank
    shares: Array  # [shown] 1 / masses
    shifts: Array  # [shown] the score by which the masses at a rank are shifted
    weights: Array  # [shown]
    winners: Array  # [shown] clicked ranks
    losers: Array  # [shown] ranks preferred less
    units: Array  # [hidden]
    signal: Array  # [hidden]
    change: Array  # [P]
    drift: Array  # [P] how far a client has come since the start of the round


def scratch(longest: int, shown: int, hidden: int, size: int) -> Scratch:
    blocks = -(-longest // BLOCK)
    groups = -(-blocks // BLOCK)

    def ranks() -> Array:
        return np.zeros(shown)

    return Scratch(
        scores=np.zeros(longest),
        mass=np.zeros((blocks, BLOCK)),
        reach=np.zeros((blocks, BLOCK)),
        ends=np.zeros((groups, BLOCK)),
        taken=np.zeros(longest, dtype=bool),
        ranking=np.zeros(shown, dtype=np.int64),
        clicks=np.zeros(shown, dtype=bool),
        chosen=ranks(),
        masses=ranks(),
        shares=ranks(),
        shifts=ranks(),
        weights=ranks(),
        winners=np.zeros(shown, dtype=np.int64),
        losers=np.zeros(shown, dtype=np.int64),
        units=np.zeros(max(hidden, 1)),
        signal=np.zeros(max(hidden, 1)),
        change=np.zeros(size),
        drift=np.zeros(size),
    )


@inlined
def exp_of_nonpositive(x: float) -> float:
    """exp(x) for x <= 0 to the last digit or so, in a form that processors can do several at a time."""
    x = max(x, -708.0)
    k = math.floor(x * _LOG2_E + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)  # 2^k by its bits
    return series * power


@kernel
def score_list(
    features: Array, first: int, count: int, theta: Array, hidden: int, relu: bool, room: Scratch, next_first: int
) -> None:
    """Scores of documents first .. first + count; meanwhile the list that comes next is fetched from memory."""
    if hidden > 0:
        for document in range(count):
            room.scores[document] = mlp_score(features[first + document], theta, hidden, relu, room.units)
        return
    width = features.shape[1]
    flat = features.reshape(-1)
    for document in range(count):
        row = features[first + document]
        coming = (next_first + document) * width
        for line in range(coming, coming + width, _LINE):
            prefetch(flat, line)
        room.scores[document] = dot(row, theta)


@kernel
def mlp_score(row: Array, theta: Array, hidden: int, relu: bool, units: Array) -> float:
    """Score of one document; leaves the hidden units' outputs in `units`."""
    width = row.size
    biases, output = theta[hidden * width : hidden * (width + 1)], theta[hidden * (width + 1) :]
    for h in range(0, hidden - 1, 2):  # two units at a time read the document once
        one, two = theta[h * width : (h + 1) * width], theta[(h + 1) * width : (h + 2) * width]
        first, second = 0.0, 0.0
        for j in range(width):
            value = np.float64(row[j])
            first += value * one[j]
            second += value * two[j]
        units[h], units[h + 1] = first, second
    if hidden % 2 == 1:
        last = theta[(hidden - 1) * width : hidden * width]
        alone = 0.0
        for j in range(width):
            alone += np.float64(row[j]) * last[j]
        units[hidden - 1] = alone
    total = 0.0
    for h in range(hidden):
        units[h] += biases[h]
        units[h] = max(units[h], 0.0) if relu else sigmoid(units[h])
        total += units[h] * output[h]
    return total


@inlined
def sigmoid(x: float) -> float:
    small = exp_of_nonpositive(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@kernel
def top_list(scores: Array, count: int, shown: int, ranking: Array) -> None:
    """The best documents by score; ties keep the order of the documents."""
    filled = 0
    for document in range(count):
        score = scores[document]
        if filled == shown and not score > scores[ranking[shown - 1]]:
            continue
        at = filled if filled < shown else shown - 1
        while at > 0 and score > scores[ranking[at - 1]]:
            ranking[at] = ranking[at - 1]
            at -= 1
        ranking[at] = document
        filled = min(filled + 1, shown)


@kernel
def draw_list(count: int, shown: int, start: np.uint64, stride: np.uint64, position: int, room: Scratch) -> None:
    """A Plackett-Luce list of the scored documents, with what pair weights need to know of each rank."""
    scores, taken, ranking = room.scores, room.taken, room.ranking
    mass = room.mass.reshape(-1)
    shift = highest(scores, count)
    for i in range(count):
        mass[i] = exp_of_nonpositive(scores[i] - shift)
    blocks = (count + BLOCK - 1) // BLOCK
    for i in range(count, blocks * BLOCK):
        mass[i] = 0.0
    groups = (blocks + BLOCK - 1) // BLOCK
    ends = room.ends.reshape(-1)
    for b in range(blocks, groups * BLOCK):
        ends[b] = np.inf
    whole = stack(room.mass, blocks, room.reach, ends)
    remaining = whole
    for rank in range(shown):
        if remaining < CROWDED * whole:
            for above in range(rank):
                mass[ranking[above]] = 0.0
            whole = stack(room.mass, blocks, room.reach, ends)
            if whole < _FADED:
                shift = shift_to_remaining(scores, count, taken, mass)
                whole = stack(room.mass, blocks, room.reach, ends)
            remaining = whole
        document = find(room.reach, room.ends, groups, count, uniform_at(start, stride, position) * whole)
        position += 1
        while taken[document]:
            document = find(room.reach, room.ends, groups, count, uniform_at(start, stride, position) * whole)
            position += 1
        taken[document] = True
        ranking[rank] = document
        room.chosen[rank] = mass[document]
        room.masses[rank] = remaining
        room.shifts[rank] = shift
        remaining -= mass[document]
    for rank in range(shown):
        taken[ranking[rank]] = False


@kernel
def stack(mass: Array, blocks: int, reach: Array, ends: Array) -> float:
    """reach = mass of all documents up to each; ends = reach of the last one of each block. Returns the whole."""
    passed = 0.0
    for b in range(blocks):
        within = 0.0
        for i in range(BLOCK):
            within += mass[b, i]
            reach[b, i] = passed + within
        passed += within
        ends[b] = passed
    ends[blocks - 1] = np.inf  # the last block takes what rounding leaves over
    return passed


@kernel
def highest(scores: Array, count: int) -> float:
    """The largest score; four at a time, because each comparison waits for the one before."""
    a = b = c = d = scores[0]
    for i in range(0, count - 3, 4):
        a, b, c, d = max(a, scores[i]), max(b, scores[i + 1]), max(c, scores[i + 2]), max(d, scores[i + 3])
    for i in range(count - count % 4, count):
        a = max(a, scores[i])
    return max(max(a, b), max(c, d))


@kernel
def find(reach: Array, ends: Array, groups: int, count: int, target: float) -> int:
    """The document whose stretch of the mass covers `target`.

    Counts the stretches passed instead of stopping at the right one: the processor need not guess where that is.
    """
    block = 0
    for g in range(groups):
        for i in range(BLOCK):
            block += ends[g, i] <= target
    within = 0
    for i in range(BLOCK):
        within += reach[block, i] <= target
    return min(block * BLOCK + within, count - 1)


@kernel
def shift_to_remaining(scores: Array, count: int, taken: Array, mass: Array) -> float:
    """Masses of the documents not yet taken, relative to the best of them."""
    shift = -np.inf
    for i in range(count):
        if not taken[i]:
            shift = max(shift, scores[i])
    for i in range(count):
        mass[i] = 0.0 if taken[i] else exp_of_nonpositive(scores[i] - shift)
    return shift
