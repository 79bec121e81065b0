"""Drawing a Plackett-Luce list in machine code: the twin of `plackett_luce`.

Each next document is drawn from all of them in proportion to its mass exp(score), again if it was drawn before: the
same as drawing from those that remain. When the ones drawn hold most of the mass they are taken out and what remains is
summed anew, never found by subtraction alone: no digits are lost whatever the scores.
"""

import numpy as np

from foltr.intrinsics.lists import passed
from foltr.intrinsics.masses import fill_masses, highest, stack
from foltr.kernel import kernel
from foltr.rankers.kernels import AT_A_RANK, Ahead, exp_of_nonpositive, fetch
from foltr.rankers.scratch import BLOCK, GROUP, Scratch
from foltr.rng import uniform_at
from foltr.types import Array

# share of the mass that must remain, else the documents drawn are taken out; a little below a half, so that it does not
# hang on the last digit where all documents are alike
CROWDED = 0.5 - 1e-9
_FADED = 1e-100  # of the largest mass at the last shift; far above where doubles lose digits


@kernel
def draw_list(
    count: int, shown: int, start: np.uint64, stride: np.uint64, position: int, room: Scratch, coming: Ahead
) -> None:
    """A Plackett-Luce list of the scored documents, with what pair weights need to know of each rank."""
    scores, taken, ranking = room.scores, room.taken, room.ranking
    blocks, groups = (count + BLOCK - 1) // BLOCK, (count + GROUP - 1) // GROUP
    mass = room.mass.reshape(-1)
    for i in range(count, blocks * BLOCK):
        scores[i] = -np.inf
    for i in range(blocks * BLOCK, groups * GROUP):
        mass[i] = 0.0
    shift = highest(scores, blocks)
    fill_masses(scores, blocks, shift, mass)
    whole = stacked(count, groups, room)
    remaining = whole
    for rank in range(shown):
        if remaining < CROWDED * whole:
            whole = stack(room.mass, groups, room.reach, room.ends)
            if whole < _FADED:
                shift = shift_to_remaining(scores, count, taken, mass)
                whole = stacked(count, groups, room)
            remaining = whole
        fetch(coming.flat, coming.middle + rank * AT_A_RANK, min(coming.middle + (rank + 1) * AT_A_RANK, coming.end))
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
        mass[document] = 0.0
    for rank in range(shown):
        taken[ranking[rank]] = False


@kernel
def stacked(count: int, groups: int, room: Scratch) -> float:
    """Running sums of the masses. Where scores are no numbers all documents are alike: a list must come to an end."""
    whole: float = stack(room.mass, groups, room.reach, room.ends)
    if not 0.0 < whole < np.inf:
        mass = room.mass.reshape(-1)
        for i in range(count):
            mass[i] = not room.taken[i]
        whole = stack(room.mass, groups, room.reach, room.ends)
    return whole


@kernel
def find(reach: Array, ends: Array, groups: int, count: int, target: float) -> int:
    """The document whose stretch of the mass covers `target`.

    Counts the stretches passed instead of stopping at the right one: the processor need not guess where that is.
    """
    block = 0
    for g in range(groups):
        block += passed(ends, g, target)
    return min(block * BLOCK + passed(reach, block, target), count - 1)


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
