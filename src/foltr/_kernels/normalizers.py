"""Masses and normalizers of a list under the current scores, as pair weights need them."""

import math

import numpy as np

from foltr._kernels.compile import callee
from foltr._kernels.exponential import exp_of_nonpositive
from foltr._kernels.workspace import Workspace

UNDERFLOW = 1e-100  # of the largest mass: where a listed document has less, ranks get shifts of their own


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
    """The same where the mass of a listed document underflows: a list that was drawn once need not be likely now.

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
