"""Slopes of the pairwise logistic loss; see `silo.train`."""

import math

from foltr._kernels.compile import kernel
from foltr.types import Array


@kernel
def add_pairwise_slopes(scores: Array, grades: Array, slopes: Array) -> None:
    pairs = 0
    for better in range(scores.size):
        for worse in range(scores.size):
            if grades[better] > grades[worse]:
                pull = 1.0 / (1.0 + math.exp(scores[better] - scores[worse]))
                slopes[better] -= pull
                slopes[worse] += pull
                pairs += 1
    for place in range(slopes.size):
        slopes[place] /= max(pairs, 1)
