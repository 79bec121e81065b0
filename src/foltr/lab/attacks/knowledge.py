"""The deltas that attackers know, and their moments."""

import numpy as np

from foltr._kernels.attacks import moments
from foltr.lab.attacks.view import AttackView
from foltr.types import Array


def known_deltas(view: AttackView) -> Array:
    """[k, P] Full: everybody's honest delta. Partial: the attackers' own."""
    known = view.deltas if view.knowledge == "full" else view.deltas[: view.num_attackers]
    return np.ascontiguousarray(known, dtype=np.float64)


def mean_and_stddev(rows: Array) -> tuple[Array, Array]:
    """Per coordinate. The standard deviation is that of these rows (divided by n), so it is 0 for a single one."""
    mean, stddev = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    moments(rows, mean, stddev)
    return mean, stddev


def same_for_all(view: AttackView, row: Array) -> Array:
    """[num_attackers, P] every attacker sends the same row [P]."""
    rows = np.empty((view.num_attackers, len(row)))
    rows[:] = row
    return rows
