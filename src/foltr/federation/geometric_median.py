"""Geometric median: the point with the least weighted sum of Euclidean distances to the updates.

Source: Pillutta, Kakade and Harchaoui 2022: smoothed Weiszfeld steps, clients weighted by their interactions.

What attackers with a share a < 1/2 of the weight can do: the result is at most 2 (1 - a) / (1 - 2 a) times as far from
any point as the farthest honest client.

Differs from the paper: the steps start from the weighted coordinate-wise median instead of the mean (one huge update
cannot lead them astray), are smoothed relative to the typical distance instead of by 1e-6, so that scaling the updates
scales the result, stop when a step is below 1e-8 of that distance or after 1,000 (the paper: after 3 or so), and then
settle on the nearest client where that is the exact minimum.
"""

import numpy as np

from foltr._kernels.geometric_median import weiszfeld
from foltr.federation.taking_part import taking_part
from foltr.types import Array


def geometric_median(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """The point with the least weighted sum of Euclidean distances to the updates."""
    rows, weights, _ = taking_part(updates, weights, bad)
    if len(rows) == 0:
        return np.array(start, dtype=np.float64)
    point, room = np.empty(rows.shape[1]), np.empty((3, len(rows)))
    weiszfeld(rows, np.asarray(weights, dtype=np.float64), room, np.empty(rows.shape[1]), point)
    return point
