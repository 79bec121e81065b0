"""The linear ranker: score = theta . features."""

import msgspec
import numpy as np

from foltr.types import Array


class Linear(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="linear"):
    """One weight a feature, zero at the start."""

    def size(self, features: int) -> int:
        return features

    def start(self, features: int, seed: int) -> Array:  # noqa: ARG002  (every ranker starts from a seed)
        return np.zeros(features)

    def score(self, parameters: Array, features: Array) -> Array:
        return np.asarray(features, dtype=np.float64) @ parameters

    def backward(self, parameters: Array, features: Array, weights: Array) -> Array:  # noqa: ARG002
        """Gradient of sum(weights * score) with respect to the parameters."""
        return weights @ np.asarray(features, dtype=np.float64)
