"""Whose updates a rule looks at: the finite ones.

A row with NaN or infinity is dropped as if that client had not taken part, and one attacker less is assumed, since no
honest client sends it. This keeps every requirement of `check_aggregator`: while no more rows are dropped than
attackers were assumed, n - 1 clients with m - 1 attackers satisfy whatever n clients with m did.
"""

import numpy as np

from foltr._kernels.aggregation import mark_finite
from foltr.types import Array


def taking_part(updates: Array, weights: Array, bad: int) -> tuple[Array, Array, int]:
    """Finite rows [k, P] with their weights [k], and how many attackers may be among them."""
    rows = np.ascontiguousarray(updates, dtype=np.float64)
    finite = np.empty(len(rows), dtype=np.bool_)
    left = mark_finite(rows, finite)
    if left == len(rows):
        return rows, weights, bad
    return rows[finite], np.asarray(weights)[finite], max(0, bad - (len(rows) - left))
