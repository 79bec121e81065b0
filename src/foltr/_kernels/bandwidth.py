"""A pass over lists that only scores them: what memory allows, for the benchmark of training."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr.types import Array


@kernel
def dot_products(features: Array, offsets: Array, order: Array, theta: Array, scores: Array) -> float:
    total = 0.0
    for k in range(order.size):
        first = offsets[order[k]]
        count = offsets[order[k] + 1] - first
        for document in range(count):
            row = features[first + document]
            score = 0.0
            for j in range(row.size):
                score += np.float64(row[j]) * theta[j]
            scores[document] = score
        total += scores[0]
    return total
