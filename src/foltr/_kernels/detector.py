"""One round of the detector in machine code: compares deltas with the median delta and moves the averages on."""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.sorting import median
from foltr.types import Array


class Workspace(NamedTuple):
    deltas: Array  # [n, P] zero for whoever sent NaN or infinity
    finite: Array  # [n] bool
    lengths: Array  # [n] of deltas
    column: Array  # [n]
    common: Array  # [P] the median delta
    agreement: Array  # [n] cosine with the median delta
    stretch: Array  # [n] log length over the median length


def workspace_for(clients: int, parameters: int) -> Workspace:
    each = np.empty((4, clients))
    deltas, finite = np.empty((clients, parameters)), np.empty(clients, dtype=np.bool_)
    return Workspace(deltas, finite, each[0], each[1], np.empty(parameters), each[2], each[3])


@kernel
def follow(
    deltas: Array, newest: float, memory: float, workspace: Workspace, moved: Array, habits: Array, average: Array
) -> None:
    """Fills the workspace, and moves `moved` [n], `habits` [n, 2] and `average` [n, P] on by one round.

    newest: weight of this round in the average delta; memory: the smallest weight of a round in a habit.
    """
    clients, width = deltas.shape
    for i in range(clients):
        broken = 0
        for p in range(width):
            broken += not np.isfinite(deltas[i, p])
        workspace.finite[i] = broken == 0
        for p in range(width):
            workspace.deltas[i, p] = deltas[i, p] if broken == 0 else 0.0
    compared = compare(workspace.deltas, workspace)
    for i in range(clients):
        if compared and workspace.lengths[i] > 0.0:
            moved[i] += 1.0
            fresh = max(1.0 / moved[i], memory)
            habits[i, 0] += fresh * (workspace.agreement[i] - habits[i, 0])
            habits[i, 1] += fresh * (workspace.stretch[i] - habits[i, 1])
        for p in range(width):
            average[i, p] += newest * (workspace.deltas[i, p] - average[i, p])


@kernel
def compare(deltas: Array, workspace: Workspace) -> bool:
    """Fills agreement and stretch of deltas; False where the median delta is zero and nobody can be compared."""
    clients, width = deltas.shape
    lengths, column, common = workspace.lengths, workspace.column, workspace.common
    size, moving = 0.0, 0
    for p in range(width):
        for i in range(clients):
            column[i] = deltas[i, p]
        common[p] = median(column, clients)
        size += common[p] * common[p]
    for i in range(clients):
        square, along = 0.0, 0.0
        for p in range(width):
            square += deltas[i, p] * deltas[i, p]
            along += deltas[i, p] * common[p]
        lengths[i] = math.sqrt(square)
        workspace.agreement[i] = along / (lengths[i] * math.sqrt(size)) if square > 0.0 and size > 0.0 else 0.0
        if square > 0.0:
            column[moving] = lengths[i]
            moving += 1
    typical = median(column, moving) if moving > 0 else 1.0
    for i in range(clients):
        workspace.stretch[i] = math.log(lengths[i] / typical) if lengths[i] > 0.0 else 0.0
    return size > 0.0
