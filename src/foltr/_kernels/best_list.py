"""The best documents of a list by score; ties stay in the order of the documents."""

import math

import numpy as np

from foltr._kernels.compile import callee
from foltr._kernels.simd import highest, smallest_k
from foltr._kernels.simd.sizes import GROUP, LANES, PLACE_BITS, SMALLEST
from foltr._kernels.workspace import Workspace
from foltr.types import Array

_LEAST = 1e-290  # how far behind the best a key counts at least: no digit of a place makes it a subnormal


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
    last = -1.0
    for rank in range(0, k, SMALLEST):
        smallest_k(keys, groups, last, workspace.smallest[rank:])
        last = workspace.smallest[min(rank + SMALLEST, k) - 1]
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
