"""What a list leaves for its pairs: the mass of each document shown, and the mass that remained before its rank."""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.exponential import exp_of_nonpositive
from foltr._kernels.workspace import Workspace

FADED = 1e-100  # of the largest mass: where a shown document has less, ranks get scales of their own


@kernel
def weigh_list(count: int, shown: int, room: Workspace) -> None:
    """What `draw_list` leaves for a drawn list, for one that is given: masses at each rank under the current scores.

    Summed from the last rank upwards, so that nothing is ever subtracted.
    """
    scores, ranking, listed = room.scores, room.ranking, room.listed
    mark(shown, True, room)
    top = -np.inf
    for i in range(count):
        top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        mass = exp_of_nonpositive(scores[i] - top)
        remaining += 0.0 if listed[i] else mass
    faded = False
    for rank in range(shown - 1, -1, -1):
        room.chosen[rank] = exp_of_nonpositive(scores[ranking[rank]] - top)
        faded |= room.chosen[rank] < FADED
        remaining += room.chosen[rank]
        room.masses[rank] = remaining
        room.shifts[rank] = top
    mark(shown, False, room)
    if faded:
        weigh_across_scales(count, shown, room)


@kernel
def weigh_across_scales(count: int, shown: int, room: Workspace) -> None:
    """The same where a shown document has next to no mass beside the others: a list that was drawn once need not be
    likely now. A rank's shift is the best score that remains there, less the rank: no two are alike, so that
    `pair_weights` compares scores and not masses that have faded.
    """
    scores, ranking, listed = room.scores, room.ranking, room.listed
    mark(shown, True, room)
    top = scores[ranking[shown - 1]]
    for i in range(count):
        if not listed[i]:
            top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        if not listed[i]:
            remaining += exp_of_nonpositive(scores[i] - top)
    mark(shown, False, room)
    for rank in range(shown - 1, -1, -1):
        score = scores[ranking[rank]]
        if score > top:
            remaining *= exp_of_nonpositive(top - score)
            top = score
        mass, stretch = exp_of_nonpositive(score - top), math.exp(rank)
        remaining += mass
        room.chosen[rank] = mass * stretch
        room.masses[rank] = remaining * stretch
        room.shifts[rank] = top - rank


@kernel
def mark(shown: int, listed: bool, room: Workspace) -> None:
    """Which documents are in the list; none is marked between lists."""
    for rank in range(shown):
        room.listed[room.ranking[rank]] = listed
