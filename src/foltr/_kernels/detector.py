"""Moving averages of the detector; see `federation.detector`."""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.sorting import middle
from foltr.types import Array

MEMORY = 0.01  # weight of a new round in an average, once there were 100


class DetectorWorkspace(NamedTuple):
    lengths: Array  # [n] of steps
    column: Array  # [n]
    common: Array  # [P] the median step
    agreement: Array  # [n] cosine with the median step
    stretch: Array  # [n] log length over the median length


@kernel
def follow(
    updates: Array, start: Array, rounds: int, room: DetectorWorkspace, steps: Array, finite: Array, moved: Array,
    habits: Array, step: Array,
) -> None:  # fmt: skip
    """Fills steps [n, P] (nothing for whoever sends no numbers) and finite [n], and moves the averages on."""
    clients, width = updates.shape
    for i in range(clients):
        broken = 0
        for p in range(width):
            broken += not np.isfinite(updates[i, p])
        finite[i] = broken == 0
        for p in range(width):
            steps[i, p] = updates[i, p] - start[p] if finite[i] else 0.0
    compared = compare(steps, room)
    newest = max(1.0 / rounds, MEMORY)  # a plain mean at first, later one that forgets
    for i in range(clients):
        if compared and room.lengths[i] > 0.0:
            moved[i] += 1.0
            fresh = max(1.0 / moved[i], MEMORY)
            habits[i, 0] += fresh * (room.agreement[i] - habits[i, 0])
            habits[i, 1] += fresh * (room.stretch[i] - habits[i, 1])
        for p in range(width):
            step[i, p] += newest * (steps[i, p] - step[i, p])


@kernel
def compare(steps: Array, room: DetectorWorkspace) -> bool:
    """Fills what tells steps from the median step; False where that is nothing, so that nobody can be compared."""
    clients, width = steps.shape
    lengths, column, common = room.lengths, room.column, room.common
    size, moving = 0.0, 0
    for p in range(width):
        for i in range(clients):
            column[i] = steps[i, p]
        common[p] = middle(column, clients)
        size += common[p] * common[p]
    for i in range(clients):
        square, along = 0.0, 0.0
        for p in range(width):
            square += steps[i, p] * steps[i, p]
            along += steps[i, p] * common[p]
        lengths[i] = math.sqrt(square)
        room.agreement[i] = along / (lengths[i] * math.sqrt(size)) if square > 0.0 and size > 0.0 else 0.0
        if square > 0.0:
            column[moving] = lengths[i]
            moving += 1
    typical = middle(column, moving) if moving > 0 else 1.0
    for i in range(clients):
        room.stretch[i] = math.log(lengths[i] / typical) if lengths[i] > 0.0 else 0.0
    return size > 0.0
