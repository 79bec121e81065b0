"""One hidden layer on one flat parameter vector: [weights (hidden x features), biases (hidden), output (hidden)].

Sources: S0 (PDGD: 64 sigmoid units, weights and biases ~ N(0, 1 / fan_in^2)), S1 (FOLtR-ES: 10 ReLU
units with bias, all zero at the start).

Differs from the paper: no output bias in either, because it shifts all scores of a list alike and cannot change a
ranking.
"""

from typing import Annotated, Literal

import msgspec
import numpy as np
from scipy.special import expit

from foltr.rng import stream
from foltr.types import Array


class Mlp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="mlp"):
    """hidden units of one activation; sigmoid starts random, relu at zero, as in the papers."""

    hidden: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    activation: Literal["sigmoid", "relu"] = "sigmoid"

    def size(self, features: int) -> int:
        return (features + 2) * self.hidden

    def start(self, features: int, seed: int) -> Array:
        if self.activation == "relu":
            return np.zeros(self.size(features))
        draws = stream(seed, purpose="start").normal(self.size(features))
        fan_in = np.full(self.size(features), float(features))
        fan_in[-self.hidden :] = self.hidden  # the output layer reads the hidden units
        return draws / fan_in

    def score(self, parameters: Array, features: Array) -> Array:
        _, hidden, output = self._forward(parameters, features)
        return hidden @ output

    def backward(self, parameters: Array, features: Array, weights: Array) -> Array:
        """Gradient of sum(weights * score) with respect to the parameters."""
        inputs, hidden, output = self._forward(parameters, features)
        slope = hidden * (1 - hidden) if self.activation == "sigmoid" else (hidden > 0).astype(float)
        signal = np.outer(weights, output) * slope  # [docs, hidden]
        return np.concatenate([(signal.T @ inputs).ravel(), signal.sum(axis=0), weights @ hidden])

    def _forward(self, parameters: Array, features: Array) -> tuple[Array, Array, Array]:
        inputs = np.asarray(features, dtype=np.float64)
        layer = parameters[: -2 * self.hidden].reshape(self.hidden, -1)
        biases, output = parameters[-2 * self.hidden :].reshape(2, self.hidden)
        sums = inputs @ layer.T + biases
        hidden = expit(sums) if self.activation == "sigmoid" else np.maximum(sums, 0)
        return inputs, hidden, output
