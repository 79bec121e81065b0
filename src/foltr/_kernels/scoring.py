"""Scoring in machine code, over a slice of a ragged collection.

Twin of `linear`, and by way of `mlp_kernel` of `mlp`. `hidden` = 0 means a linear ranker, else an MLP of that width.
"""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.mlp import score_mlp
from foltr._kernels.simd.products import ROWS, dots, rows_at
from foltr._kernels.workspace import Workspace
from foltr.types import Array


@kernel
def score_list(features: Array, first: int, count: int, theta: Array, hidden: int, relu: bool, room: Workspace) -> None:
    """Scores of documents first .. first + count."""
    if hidden > 0:
        score_mlp(features, first, count, theta, hidden, relu, room)
        return
    width = features.shape[1]
    flat = features.reshape(-1)
    single = room.single[:width]
    for j in range(width):
        single[j] = theta[j]
    for document in range(0, count, ROWS):
        dots(flat, rows_at(first, document, count, width), single, room.scores, document)


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
