"""Drawing a Plackett-Luce list in machine code: the twin of `plackett_luce`.

The masses that remain at a rank are summed from the last rank upwards, never found by subtraction: no digits are lost
whatever the scores.
"""

import math

import numpy as np

from foltr._kernels.best_list import top_list
from foltr._kernels.compile import kernel
from foltr._kernels.normalizers import FADED, weigh_across_scales
from foltr._kernels.prefetching import Ahead, fetch
from foltr._kernels.rng import uniform_at
from foltr._kernels.simd.lanes import LANES
from foltr._kernels.simd.leaders import GROUP, LEADERS, leaders
from foltr._kernels.simd.masses import highest, mass_behind
from foltr._kernels.simd.race import HEAT, PLACES, race
from foltr._kernels.workspace import Workspace


@kernel
def draw_list(
    count: int, shown: int, start: np.uint64, stride: np.uint64, position: int, room: Workspace, coming: Ahead
) -> None:
    """A Plackett-Luce list of the scored documents, with what pair weights need to know of each rank."""
    scores, mass, keys = room.scores, room.mass, room.keys
    heats, groups = (count + HEAT - 1) // HEAT, (count + GROUP - 1) // GROUP
    for i in range(count, heats * HEAT):
        scores[i] = -np.inf
    for i in range(heats * HEAT, groups * GROUP):
        keys[i] = np.inf
    shift = highest(scores, (count + LANES - 1) // LANES)
    word = np.uint64(start) + np.uint64(position) * np.uint64(stride)
    for first in range(0, heats * HEAT, HEAT):
        fetch(coming, first // HEAT)
        race(first, scores, shift, word + np.uint64(first) * np.uint64(stride), np.uint64(stride), mass, keys)
    fetch(coming, heats)
    last = -1.0
    for rank in range(0, shown, LEADERS):
        leaders(keys, groups, last, room.leading[rank:])
        last = room.leading[min(rank + LEADERS, shown) - 1]
    remaining = mass_behind(mass, keys, (count + LANES - 1) // LANES, last)
    digits, faded = room.leading.view(np.int64), False
    for rank in range(shown - 1, -1, -1):
        document = digits[rank] & PLACES
        room.ranking[rank] = document
        room.chosen[rank] = mass[document]
        faded |= not mass[document] > FADED
        remaining += mass[document]
        room.masses[rank] = remaining
        room.shifts[rank] = shift
    if faded:
        draw_across_scales(count, shown, start, stride, position, room)


@kernel
def draw_across_scales(
    count: int, shown: int, start: np.uint64, stride: np.uint64, position: int, room: Workspace
) -> None:
    """The same list where documents are shown that have next to no mass beside the best: by logarithms.

    Where scores are no numbers all documents are alike: a list must come to an end.
    """
    scores, keys = room.scores, room.keys
    numbers = True
    for i in range(count):
        numbers &= math.isfinite(scores[i])
    if not numbers:
        for i in range(count):
            scores[i] = 0.0
    for i in range(count):
        keys[i] = scores[i] - math.log(-math.log1p(-uniform_at(start, stride, position + i)))
    top_list(keys, count, shown, room.ranking)
    weigh_across_scales(count, shown, room)
