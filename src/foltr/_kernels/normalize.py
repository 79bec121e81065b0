"""Scaling of features in place; see `lab.data.normalize`."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr.types import Array


@kernel
def standardise(features: Array, centre: Array, scale: Array) -> None:
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            features[row, column] = (features[row, column] - centre[column]) * scale[column]


@kernel
def scale_queries(features: Array, offsets: Array, low: Array, high: Array) -> None:
    width = features.shape[1]
    for query in range(offsets.size - 1):
        first, last = offsets[query], offsets[query + 1]
        for column in range(width):
            low[column], high[column] = np.inf, -np.inf
        for row in range(first, last):
            for column in range(width):
                low[column] = min(low[column], features[row, column])
                high[column] = max(high[column], features[row, column])
        for row in range(first, last):
            for column in range(width):
                span = high[column] - low[column]
                features[row, column] = (features[row, column] - low[column]) / span if span > 0.0 else 0.0
