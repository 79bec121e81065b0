"""Drawing a Plackett-Luce list from the same numbers as `rankers.plackett_luce`.

The normalizer of a rank is summed from the last rank upwards, never by subtraction: no digits are lost whatever the
scores.
"""

import math

import numpy as np

from foltr._kernels.best_list import top_list
from foltr._kernels.compile import callee
from foltr._kernels.normalizers import UNDERFLOW, weigh_across_scales
from foltr._kernels.prefetching import Ahead, fetch
from foltr._kernels.rng import Stream, uniform_at
from foltr._kernels.simd import exponential_race, highest, mass_above, smallest_k
from foltr._kernels.simd.sizes import BLOCK, GROUP, LANES, PLACE_BITS, SMALLEST
from foltr._kernels.workspace import Workspace


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
    last = -1.0
    for rank in range(0, k, SMALLEST):
        smallest_k(keys, groups, last, workspace.smallest[rank:])
        last = workspace.smallest[min(rank + SMALLEST, k) - 1]
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
def draw_across_scales(count: int, k: int, stream: Stream, position: int, workspace: Workspace) -> None:
    """The same list by logarithms, where the mass of a listed document underflows beside the best.

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
