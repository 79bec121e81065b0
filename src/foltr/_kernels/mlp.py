"""Networks of one hidden layer in machine code: the twin of `mlp`.

The units' outputs of a whole list are kept, for the gradient needs those of the documents that are shown.
"""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.exponential import sigmoid
from foltr._kernels.simd.layers import BLOCK, unit_sums, whole_blocks
from foltr._kernels.simd.products import ROWS, add_rows, rows_at
from foltr._kernels.workspace import Workspace
from foltr.types import Array


@kernel
def score_mlp(features: Array, first: int, count: int, theta: Array, hidden: int, relu: bool, room: Workspace) -> None:
    """Scores of documents first .. first + count, and what their units put out."""
    width, every = features.shape[1], whole_blocks(hidden)
    turn(theta, hidden, width, every, room.turned)
    flat, upper = features.reshape(-1), theta[width * hidden :]
    for document in range(0, count, ROWS):
        rows = rows_at(first, document, count, width)
        for unit in range(0, every, BLOCK):
            unit_sums(flat, rows, width, room.turned, every, unit, room.units, document * every)
        put_out(upper, hidden, relu, room.units[document * every :], every, room.scores, document)


@kernel
def turn(theta: Array, hidden: int, width: int, every: int, turned: Array) -> None:
    """Weights by feature instead of by unit, as singles; some units at a time, so that lines are read and written."""
    for block in range(0, hidden, BLOCK):
        for j in range(width):
            for h in range(block, min(block + BLOCK, hidden)):
                turned[j * every + h] = theta[h * width + j]


@kernel
def put_out(upper: Array, hidden: int, relu: bool, units: Array, every: int, scores: Array, document: int) -> None:
    """Outputs of the units of ROWS documents, and their scores; `upper`: biases, then weights of the output."""
    for row in range(ROWS):
        own = units[row * every : row * every + hidden]
        if relu:
            for h in range(hidden):
                own[h] = max(own[h] + upper[h], 0.0)
        else:
            for h in range(hidden):
                own[h] = sigmoid(own[h] + upper[h])
        total = 0.0
        for h in range(hidden):
            total += own[h] * upper[hidden + h]
        scores[document + row] = total


@kernel
def add_mlp_gradient(
    features: Array, shown: int, theta: Array, hidden: int, relu: bool, room: Workspace, out: Array
) -> None:
    """out += gradient of sum(steps * score) at theta, by which the list was scored; `out` may be theta."""
    width, every = features.shape[1], whole_blocks(hidden)
    flat, output = features.reshape(-1), theta[(width + 1) * hidden :]
    for h in range(hidden):
        for_bias, for_output = 0.0, 0.0
        for rank in range(shown):
            unit = room.units[room.ranking[rank] * every + h]
            slope = np.float64(unit > 0.0) if relu else unit * (1.0 - unit)
            room.signal[rank] = room.steps[rank] * output[h] * slope
            for_bias += room.signal[rank]
            for_output += room.steps[rank] * unit
        add_rows(flat, room.rows, room.signal, shown, out[h * width : (h + 1) * width])
        out[width * hidden + h] += for_bias
        out[(width + 1) * hidden + h] += for_output
