"""One hidden layer on one flat parameter vector: [weights (hidden x features), biases (hidden), output (hidden)].

Sources: S0 (PDGD: 64 sigmoid units, weights and biases ~ N(0, 1 / fan_in^2)), S1 (FOLtR-ES: 10 ReLU
units with bias, all zero at the start).

Sums over features are computed in single precision, feature by feature, as in `_kernels.simd` layers, so that both draw
the same lists. All else is in double precision.

Differs from the paper: no output bias in either, because it shifts all scores of a list equally and cannot change a
ranking.
"""

from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.rng import stream
from foltr.types import Array


class Mlp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="mlp"):
    """hidden units of one activation; sigmoid starts random, relu at zero, as in the papers."""

    hidden: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    activation: Literal["sigmoid", "relu"] = "sigmoid"

    @property
    def flat_start(self) -> bool:
        """Whether the gradient vanishes at the start: gradient-based learners then never move."""
        return self.activation == "relu"

    def size(self, features: int) -> int:
        return (features + 2) * self.hidden

    def init(self, features: int, seed: int) -> Array:
        if self.activation == "relu":
            return np.zeros(self.size(features))
        draws = stream(seed, purpose="start").normal(self.size(features))
        fan_in = np.full(self.size(features), float(features))
        fan_in[-self.hidden :] = self.hidden  # the output layer reads the hidden units
        return draws / fan_in

    def score(self, parameters: Array, features: Array) -> Array:
        _, hidden, output = self._forward(parameters, features)
        return hidden @ output

    def score_many(self, parameters: Array, features: Array) -> Array:
        """float32 scores by matrix products: faster for many documents, with other last digits than `score`."""
        layer, biases, output = self._parts(np.asarray(parameters, dtype=np.float32))
        return self._activate(features @ layer.T + biases) @ output

    def gradient(self, parameters: Array, features: Array, weights: Array) -> Array:
        """Gradient of sum(weights * score) with respect to the parameters."""
        inputs, hidden, output = self._forward(parameters, features)
        slope = hidden * (1 - hidden) if self.activation == "sigmoid" else (hidden > 0).astype(float)
        signal = np.outer(weights, output) * slope  # [docs, hidden]
        return np.concatenate([(signal.T @ inputs).ravel(), signal.sum(axis=0), weights @ hidden])

    def _forward(self, parameters: Array, features: Array) -> tuple[Array, Array, Array]:
        inputs = np.asarray(features, dtype=np.float32).astype(np.float64)
        layer, biases, output = self._parts(parameters)
        return inputs, self._activate(_rounded_sums(inputs, layer) + biases), output

    def _parts(self, parameters: Array) -> tuple[Array, Array, Array]:
        biases, output = parameters[-2 * self.hidden :].reshape(2, self.hidden)
        return parameters[: -2 * self.hidden].reshape(self.hidden, -1), biases, output

    def _activate(self, sums: Array) -> Array:
        return _sigmoid(sums) if self.activation == "sigmoid" else np.maximum(sums, 0)


def _sigmoid(sums: Array) -> Array:
    small = np.exp(-np.abs(sums))
    return np.where(sums >= 0, 1.0, small) / (1.0 + small)


def _rounded_sums(inputs: Array, layer: Array) -> Array:
    """[documents, hidden] inputs @ layer.T, rounded to singles after every product that is added."""
    with np.errstate(over="ignore", invalid="ignore"):  # float32 overflow is handled by the caller
        weights = layer.T.astype(np.float32)
        sums = np.zeros((len(inputs), layer.shape[0]), dtype=np.float32)
        for values, row in zip(inputs.T, weights, strict=True):
            sums = (sums + np.multiply.outer(values, row)).astype(np.float32)
        return sums.astype(np.float64)
