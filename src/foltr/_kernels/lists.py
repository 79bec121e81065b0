"""Lists of documents from their scores: Plackett-Luce draws, the best by score, and the normalizers of a given list.

A Plackett-Luce list is drawn from the same numbers as in `rankers.plackett_luce`. The normalizer of a rank is summed
from the last rank upwards, never by subtraction: no digits are lost whatever the scores. Among the best, ties stay in
the order of the documents.
"""

import math

import numpy as np

from foltr._kernels.compile import callee
from foltr._kernels.rng import Stream, uniform_at
from foltr._kernels.simd import exponential_race, highest, mass_above, smallest_k
from foltr._kernels.simd.elementary import exp_of_nonpositive
from foltr._kernels.simd.lanes import BLOCK, GROUP, LANES, PLACE_BITS, SMALLEST
from foltr._kernels.workspace import Ahead, Workspace, fetch
from foltr.types import Array

UNDERFLOW = 1e-100  # of the largest mass: where a listed document has less, ranks get shifts of their own
_LEAST = 1e-290  # how far behind the best a key counts at least: no digit of a place makes it a subnormal


@callee
def draw_list(count: int, k: int, stream: Stream, position: int, workspace: Workspace, coming: Ahead) -> None:
    """A Plackett-Luce list of the scored documents, with the masses and normalizers that pair weights need."""
    scores, mass, keys = workspace.scores, workspace.mass, workspace.keys
    start, stride = stream
    blocks, groups = (count + BLOCK - 1) // BLOCK, (count + GROUP - 1) // GROUP
    for i in range(count, blocks * BLOCK):
        scores[i] = -np.inf
    for i in range(blocks * BLOCK, groups * GROUP):
        keys[i] = np.inf
    shift = highest(scores, (count + LANES - 1) // LANES)
    word = np.uint64(start) + np.uint64(position) * np.uint64(stride)
    for first in range(0, blocks * BLOCK, BLOCK):
        fetch(coming, first // BLOCK)
        exponential_race(
            first, scores, shift, word + np.uint64(first) * np.uint64(stride), np.uint64(stride), mass, keys
        )
    fetch(coming, blocks)
    last = find_smallest(keys, groups, k, workspace)
    remaining = mass_above(mass, keys, (count + LANES - 1) // LANES, last)
    digits, underflow = workspace.smallest.view(np.int64), False
    for rank in range(k - 1, -1, -1):
        document = digits[rank] & PLACE_BITS
        workspace.ranking[rank] = document
        workspace.chosen[rank] = mass[document]
        underflow |= not mass[document] > UNDERFLOW
        remaining += mass[document]
        workspace.normalizers[rank] = remaining
        workspace.shifts[rank] = shift
    if underflow:
        draw_across_scales(count, k, stream, position, workspace)


@callee
def find_smallest(keys: Array, groups: int, k: int, workspace: Workspace) -> float:
    """Fills the k smallest keys in order; returns the last of them."""
    last = -1.0
    for rank in range(0, k, SMALLEST):
        smallest_k(keys, groups, last, workspace.smallest[rank:])
        last = workspace.smallest[min(rank + SMALLEST, k) - 1]
    return last


@callee
def draw_across_scales(count: int, k: int, stream: Stream, position: int, workspace: Workspace) -> None:
    """Draws the list by logarithms, where the mass of a listed document underflows beside the best.

    If a score is NaN or infinite, all documents count alike, so that drawing ends.
    """
    scores, keys = workspace.scores, workspace.keys
    finite = True
    for i in range(count):
        finite &= math.isfinite(scores[i])
    if not finite:
        for i in range(count):
            scores[i] = 0.0
    for i in range(count):
        keys[i] = scores[i] - math.log(-math.log1p(-uniform_at(stream[0], stream[1], position + i)))
    top_list(keys, count, k, workspace.ranking)
    weigh_across_scales(count, k, workspace)


@callee
def best_list(count: int, k: int, workspace: Workspace) -> None:
    """The best of the scored documents, selected without branches and checked; lists that fail the check are sorted.

    Keys are distances to the best score with the document's place in the last digits: those digits are lost.
    """
    scores, keys, ranking = workspace.scores, workspace.keys, workspace.ranking
    vectors, groups = (count + LANES - 1) // LANES, (count + GROUP - 1) // GROUP
    for i in range(count, vectors * LANES):
        scores[i] = -np.inf
    best = highest(scores, vectors)
    digits = keys.view(np.int64)
    for i in range(count):
        keys[i] = max(best - scores[i], _LEAST)
        digits[i] = (digits[i] & ~np.int64(PLACE_BITS)) | i
    for i in range(count, groups * GROUP):
        keys[i] = np.inf
    last = find_smallest(keys, groups, k, workspace)
    if not (last < np.inf and _in_order(count, k, workspace)):
        top_list(scores, count, k, ranking)


@callee
def _in_order(count: int, k: int, workspace: Workspace) -> bool:
    """Ranks the selected; false if their scores are not in order, or if one that was left out is above the last."""
    scores, ranking, digits = workspace.scores, workspace.ranking, workspace.smallest.view(np.int64)
    before, falling = math.inf, True
    for rank in range(k):
        ranking[rank] = digits[rank] & PLACE_BITS
        score = scores[ranking[rank]]
        falling &= score <= before
        before = score
    above, listed_above = 0, 0
    for i in range(count):
        above += scores[i] > before
    for rank in range(k):
        listed_above += scores[ranking[rank]] > before
    return falling and above == listed_above


@callee
def top_list(scores: Array, count: int, k: int, ranking: Array) -> None:
    """The best documents by score; ties stay in the order of the documents."""
    filled = 0
    for document in range(count):
        score = scores[document]
        if filled == k and not score > scores[ranking[k - 1]]:
            continue
        at = filled if filled < k else k - 1
        while at > 0 and score > scores[ranking[at - 1]]:
            ranking[at] = ranking[at - 1]
            at -= 1
        ranking[at] = document
        filled = min(filled + 1, k)


@callee
def weigh_list(count: int, k: int, workspace: Workspace) -> None:
    """For a given list what `draw_list` leaves for a drawn one.

    Summed from the last rank upwards, so that nothing is ever subtracted.
    """
    scores, ranking, listed = workspace.scores, workspace.ranking, workspace.listed  # none is listed between lists
    for rank in range(k):
        listed[ranking[rank]] = True
    top = -np.inf
    for i in range(count):
        top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        mass = exp_of_nonpositive(scores[i] - top)
        remaining += 0.0 if listed[i] else mass
    underflow = False
    for rank in range(k - 1, -1, -1):
        workspace.chosen[rank] = exp_of_nonpositive(scores[ranking[rank]] - top)
        underflow |= workspace.chosen[rank] < UNDERFLOW
        remaining += workspace.chosen[rank]
        workspace.normalizers[rank] = remaining
        workspace.shifts[rank] = top
    for rank in range(k):
        listed[ranking[rank]] = False
    if underflow:
        weigh_across_scales(count, k, workspace)


@callee
def weigh_across_scales(count: int, k: int, workspace: Workspace) -> None:
    """Weighs a list in which the mass of a document underflows: a list that was drawn once need not be likely now.

    A rank's shift is the best score that remains there, less the rank: no two are alike, so that `pair_weights`
    compares scores and not masses.
    """
    scores, ranking, listed = workspace.scores, workspace.ranking, workspace.listed  # none is listed between lists
    for rank in range(k):
        listed[ranking[rank]] = True
    top = scores[ranking[k - 1]]
    for i in range(count):
        if not listed[i]:
            top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        if not listed[i]:
            remaining += exp_of_nonpositive(scores[i] - top)
    for rank in range(k):
        listed[ranking[rank]] = False
    for rank in range(k - 1, -1, -1):
        score = scores[ranking[rank]]
        if score > top:
            remaining *= exp_of_nonpositive(top - score)
            top = score
        mass, stretch = exp_of_nonpositive(score - top), math.exp(rank)
        remaining += mass
        workspace.chosen[rank] = mass * stretch
        workspace.normalizers[rank] = remaining * stretch
        workspace.shifts[rank] = top - rank
