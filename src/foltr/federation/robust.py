"""Robust means: trimmed mean, coordinate-wise median, mean of norm-bounded deltas.

Sources: S2 section 5.3.2, after Yin et al. 2018 (trimmed mean with beta = m, median); Sun et al. 2019 (norm bounding).

Trimmed mean and median count every client alike; norm bounding weighs clients by their interactions.

What m < n/2 attackers can do: trimmed mean and median stay, in every coordinate, between the smallest and the largest
honest value. The mean of bounded deltas is no longer than the longest honest delta.

Differs from the paper: norm bounding clips deltas to the round's median norm (of all clients alike) instead of a fixed
norm, and adds no noise.
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from foltr._kernels import aggregation
from foltr.federation.aggregators import finite_rows, minority
from foltr.types import Array


class TrimmedMean(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="trimmed_mean"):
    """Coordinate-wise mean after dropping the `num_byzantine` lowest and highest values."""

    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, _, num_byzantine = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        return _trimmed_mean(rows, min(num_byzantine, minority(len(rows))))

    def max_byzantine(self, n: int) -> int:
        return minority(n)


class Median(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="median"):
    """Coordinate-wise median; of an even number of clients the mean of the two central values."""

    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, _, _ = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        return _trimmed_mean(rows, minority(len(rows)))

    def max_byzantine(self, n: int) -> int:
        return minority(n)


class NormBounding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="norm_bounding"):
    """Weighted mean of the deltas, each scaled down to their median norm where it is longer."""

    sees: ClassVar[Literal["sum", "single"]] = "single"

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, weights, _ = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        mean = np.zeros(rows.shape[1])
        if len(rows):
            weights = np.asarray(weights, dtype=np.float64)
            aggregation.bounded_mean(rows, weights, np.empty((2, len(rows))), mean)
        return mean

    def max_byzantine(self, n: int) -> int:
        return minority(n)


def _trimmed_mean(rows: Array, trim: int) -> Array:
    mean = np.zeros(rows.shape[1])
    if len(rows):
        aggregation.trimmed_mean(rows, trim, np.empty(len(rows)), mean)
    return mean
