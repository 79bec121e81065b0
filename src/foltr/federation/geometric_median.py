"""Geometric median: the point with the smallest weighted sum of Euclidean distances to the updates.

Source: Pillutla, Kakade and Harchaoui 2022: smoothed Weiszfeld steps, clients weighted by their interactions.

What attackers with a share a < 1/2 of the weight can do: the result is at most 2 (1 - a) / (1 - 2 a) times as far from
any point as the farthest honest client.

Differs from the paper: the steps start from the weighted coordinate-wise median instead of the mean (one huge update
cannot lead them astray), are smoothed relative to the typical distance instead of by 1e-6, so that scaling the updates
scales the result, stop when a step is below 1e-8 of that distance or after 1,000 (the paper: after 3 or so), and end
on the nearest client where that is the exact minimum.
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from foltr._kernels import aggregation
from foltr.federation.aggregators import finite_rows, minority
from foltr.types import Array


class GeometricMedian(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="geometric_median"
):
    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, weights, _ = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        point = np.zeros(rows.shape[1])
        if len(rows):
            weights = np.asarray(weights, dtype=np.float64)
            aggregation.weiszfeld(rows, weights, np.empty((3, len(rows))), np.empty(rows.shape[1]), point)
        return point

    def max_byzantine(self, n: int) -> int:
        return minority(n)
