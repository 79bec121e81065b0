"""The best documents of a list by score, in machine code; ties keep the order of the documents."""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.simd.lanes import LANES
from foltr._kernels.simd.leaders import GROUP, LEADERS, leaders
from foltr._kernels.simd.masses import highest
from foltr._kernels.simd.race import PLACES
from foltr._kernels.workspace import Workspace
from foltr.types import Array

_LEAST = 1e-290  # how far behind the best a key counts at least: no digit of a place makes it a subnormal


@kernel
def best_list(count: int, shown: int, room: Workspace) -> None:
    """The best of the scored documents, found without branches and checked; what is in doubt is sorted plainly.

    Keys are how far documents are behind the best, with the place in the last digits: those digits are lost.
    """
    scores, keys, ranking = room.scores, room.keys, room.ranking
    vectors, groups = (count + LANES - 1) // LANES, (count + GROUP - 1) // GROUP
    for i in range(count, vectors * LANES):
        scores[i] = -np.inf
    best = highest(scores, vectors)
    digits = keys.view(np.int64)
    for i in range(count):
        keys[i] = max(best - scores[i], _LEAST)
        digits[i] = (digits[i] & ~np.int64(PLACES)) | i
    for i in range(count, groups * GROUP):
        keys[i] = np.inf
    last = -1.0
    for rank in range(0, shown, LEADERS):
        leaders(keys, groups, last, room.leading[rank:])
        last = room.leading[min(rank + LEADERS, shown) - 1]
    if not (last < np.inf and _in_order(count, shown, room)):
        top_list(scores, count, shown, ranking)


@kernel
def _in_order(count: int, shown: int, room: Workspace) -> bool:
    """Ranks the leaders; false if their scores are not in order, or if one that was left out is above the last."""
    scores, ranking, digits = room.scores, room.ranking, room.leading.view(np.int64)
    before, falling = math.inf, True
    for rank in range(shown):
        ranking[rank] = digits[rank] & PLACES
        score = scores[ranking[rank]]
        falling &= score <= before
        before = score
    above, listed_above = 0, 0
    for i in range(count):
        above += scores[i] > before
    for rank in range(shown):
        listed_above += scores[ranking[rank]] > before
    return falling and above == listed_above


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
