"""Synthetic documents: features and grades (`lab.data.synthetic`) and words (`lab.silo.tasks`)."""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import callee, kernel
from foltr._kernels.rng import DATA, address, fill_normal, mix, uniform_at
from foltr.types import Array

_QUARTER = 2**16 - 1
_TO_UNIT_VARIANCE = math.sqrt(3.0) / 2.0**16  # four even numbers up to 2^16 have variance 4 * 2^32 / 12


@callee
def bell(word: np.uint64) -> float:
    """Mean 0, variance 1, a bell good enough for noise: the sum of the four quarters of a random word."""
    quarter = np.uint64(_QUARTER)
    total = (word & quarter) + ((word >> np.uint64(16)) & quarter)
    total += ((word >> np.uint64(32)) & quarter) + (word >> np.uint64(48))
    return (float(total) - 2.0 * _QUARTER) * _TO_UNIT_VARIANCE


class Spread(NamedTuple):
    """Differences between queries; see `lab.data.synthetic.Shape`."""

    empty: float
    mood: float
    rigour: float
    blur: float


class Truth(NamedTuple):
    """Hidden model that generates the features of a shape."""

    mixing: Array  # [d, 1 + factors] weights of relevance and of the nuisance factors
    own: Array  # [d] weight of the feature's own noise
    cut: Array  # [d] below this, a feature is 0
    grades: Array  # [grades - 1] what a document must be worth for grade 1, 2, ...


@kernel
def make_documents(
    seed: int,
    first: int,
    lengths: Array,
    spread: Spread,
    truth: Truth,
    factors: Array,  # [1 + factors + 1] the numbers of one document
    features: Array,  # [documents, d]
    labels: Array,  # [documents]
) -> None:
    """Fills the documents of queries first .. first + len(lengths)."""
    width, hidden = truth.mixing.shape
    thresholds, known, unknown = truth.grades, np.sqrt(1.0 - spread.blur), np.sqrt(spread.blur)
    row = 0
    for query in range(lengths.size):
        start, stride = address(seed, 1, first + query, DATA)
        barren = uniform_at(start, stride, 1) < spread.empty
        fill_normal(start, stride, 2, factors[:2])
        level, demand = spread.mood * factors[0], spread.rigour * factors[1]
        for document in range(lengths[query]):
            start, stride = address(seed, 2 + document, first + query, DATA)
            fill_normal(start, stride, 0, factors)
            worth = known * factors[0] + unknown * factors[hidden] + level
            grade = 0
            while not barren and grade < thresholds.size and worth > thresholds[grade] + demand * (grade > 0):
                grade += 1
            labels[row] = grade
            word = start
            for feature in range(width):
                word += stride
                value = truth.own[feature] * bell(mix(word ^ np.uint64(0x5851F42D4C957F2D))) - truth.cut[feature]
                for factor in range(hidden):
                    value += truth.mixing[feature, factor] * factors[factor]
                features[row, feature] = max(value, 0.0)
            row += 1


@kernel
def first_numbers(seed: int, first: int, out: Array) -> None:
    """One number a query, in [0, 1), that decides its length."""
    for query in range(out.size):
        start, stride = address(seed, 1, first + query, DATA)
        out[query] = uniform_at(start, stride, 0)
