"""A ranker: squares of the features beside the features themselves."""

import msgspec
import numpy as np

import foltr


class Quadratic(msgspec.Struct, frozen=True, tag_field="kind", tag="quadratic"):
    """score = theta . [x, x^2]; zero at the start."""

    def size(self, features):
        return 2 * features

    def init(self, features, seed):
        return np.zeros(2 * features)

    def score(self, parameters, features):
        return self._expanded(features) @ parameters

    def gradient(self, parameters, features, weights):
        """Of sum(weights * score) with respect to the parameters."""
        return weights @ self._expanded(features)

    def _expanded(self, features):
        x = np.asarray(features, dtype=np.float64)
        return np.hstack([x, x**2])


foltr.register("ranker", Quadratic)
