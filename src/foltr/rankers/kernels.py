"""Scoring in machine code, over a slice of a ragged collection.

Twins of `linear` and `mlp`. `hidden` = 0 means a linear ranker, else an MLP of that width.
"""

import math

import numpy as np

from foltr.intrinsics.elementary import LN2_HIGH, LN2_LOW, LOG2_E
from foltr.intrinsics.products import ROWS, dots
from foltr.kernel import inlined, kernel
from foltr.rankers.scratch import Scratch
from foltr.types import Array


@inlined
def exp_of_nonpositive(x: float) -> float:
    """exp(x) for x <= 0 to the last digit or so, in a form that processors can do several at a time."""
    x = max(x, -708.0)
    k = math.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)  # 2^k by its bits
    return series * power


@kernel
def score_list(features: Array, first: int, count: int, theta: Array, hidden: int, relu: bool, room: Scratch) -> None:
    """Scores of documents first .. first + count."""
    width = features.shape[1]
    flat = features.reshape(-1)
    single = room.single[:width]
    if hidden == 0:
        for j in range(width):
            single[j] = theta[j]
    for document in range(0, count, ROWS):
        at, more = (first + document) * width, count - 1 - document  # past the last document it is scored again
        rows = (at, at + min(1, more) * width, at + min(2, more) * width, at + min(3, more) * width)
        if hidden == 0:
            dots(flat, rows, single, room.scores, document)
            continue
        for h in range(hidden):
            dots(flat, rows, theta[h * width : (h + 1) * width], room.layer, h * ROWS)
        finish_mlp(theta[hidden * width :], hidden, relu, room.layer, room.scores, document)


@kernel
def finish_mlp(upper: Array, hidden: int, relu: bool, layer: Array, scores: Array, document: int) -> None:
    """Scores of ROWS documents from what their units have summed up; `upper`: biases, then weights of the output."""
    for h in range(hidden):
        for row in range(ROWS):
            value = layer[h * ROWS + row] + upper[h]
            layer[h * ROWS + row] = max(value, 0.0) if relu else sigmoid(value)
    for row in range(ROWS):
        total = 0.0
        for h in range(hidden):
            total += layer[h * ROWS + row] * upper[hidden + h]
        scores[document + row] = total


@kernel
def mlp_score(row: Array, theta: Array, hidden: int, relu: bool, units: Array) -> float:
    """Score of one document; leaves the hidden units' outputs in `units`."""
    width = row.size
    biases, output = theta[hidden * width : hidden * (width + 1)], theta[hidden * (width + 1) :]
    for h in range(0, hidden - 1, 2):  # two units at a time read the document once
        one, two = theta[h * width : (h + 1) * width], theta[(h + 1) * width : (h + 2) * width]
        first, second = 0.0, 0.0
        for j in range(width):
            value = np.float64(row[j])
            first += value * one[j]
            second += value * two[j]
        units[h], units[h + 1] = first, second
    if hidden % 2 == 1:
        last = theta[(hidden - 1) * width : hidden * width]
        alone = 0.0
        for j in range(width):
            alone += np.float64(row[j]) * last[j]
        units[hidden - 1] = alone
    total = 0.0
    for h in range(hidden):
        units[h] += biases[h]
        units[h] = max(units[h], 0.0) if relu else sigmoid(units[h])
        total += units[h] * output[h]
    return total


@inlined
def sigmoid(x: float) -> float:
    small = exp_of_nonpositive(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)
