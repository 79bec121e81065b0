"""The linear ranker: score = theta . features.

Scores are computed in single precision, the precision of the features, which doubles the width of SIMD products. This
is the reference of `_kernels.simd` products, equal to the last digit but for one case in 2^29.
"""

import msgspec
import numpy as np

from foltr.types import Array

_SUMS = 16  # every 16th product goes into the same sum


class Linear(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="linear"):
    """One weight a feature, zero at the start."""

    def size(self, features: int) -> int:
        return features

    def init(self, features: int, seed: int) -> Array:  # noqa: ARG002  (every ranker starts from a seed)
        return np.zeros(features)

    def score(self, parameters: Array, features: Array) -> Array:
        given = np.asarray(features, dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # float32 overflow is handled by the caller
            weights = np.asarray(parameters, dtype=np.float32)
            sums = np.zeros((len(given), _SUMS), dtype=np.float32)
            for first in range(0, given.shape[1], _SUMS):
                some = slice(first, first + _SUMS)
                products = given[:, some].astype(np.float64) * weights[some]
                sums[:, : products.shape[1]] = sums[:, : products.shape[1]] + products  # rounded once
            return np.add(*np.split(sums, 2, axis=1)).sum(axis=1, dtype=np.float64)

    def gradient(self, parameters: Array, features: Array, weights: Array) -> Array:  # noqa: ARG002
        """Gradient of sum(weights * score) with respect to the parameters."""
        return weights @ np.asarray(features, dtype=np.float64)
