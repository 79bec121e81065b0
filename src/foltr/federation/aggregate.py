"""Rules that turn the updates of a round into one vector: same first arguments for all, the rest keyword-only.

Sums run over the clients in their order, never in an order that depends on threads.
"""

import numpy as np

from foltr.kernel import kernel
from foltr.types import Array


def fedavg(updates: Array, weights: Array) -> Array:
    """Mean of updates [n, P], weighted by the interactions behind each."""
    return weighted_sum(updates, weights) / np.sum(weights)


def weighted_sum(rows: Array, weights: Array) -> Array:
    """[P] sum of weights * rows [n, P]."""
    total = np.zeros(rows.shape[1])
    _add_rows(rows, np.asarray(weights, dtype=np.float64), total)
    return total


@kernel
def _add_rows(rows: Array, weights: Array, total: Array) -> None:
    for i in range(weights.size):
        row, weight = rows[i], weights[i]
        for p in range(total.size):
            total[p] += weight * row[p]


RULES = {"fedavg": fedavg}
