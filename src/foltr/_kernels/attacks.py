"""Moments of the known updates, and the largest step of min-max; see `lab.attacks`."""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr.types import Array


@kernel
def fill_moments(rows: Array, mean: Array, sd: Array) -> None:
    count = rows.shape[0]
    for p in range(mean.size):
        mean[p], sd[p] = 0.0, 0.0
    for i in range(count):
        for p in range(mean.size):
            mean[p] += rows[i, p]
    for p in range(mean.size):
        mean[p] /= count
    for i in range(count):
        for p in range(mean.size):
            sd[p] += (rows[i, p] - mean[p]) ** 2
    for p in range(mean.size):
        sd[p] = math.sqrt(sd[p] / count)


@kernel
def largest_root(known: Array, mean: Array, direction: Array, apart: Array) -> float:
    square, diameter, gamma = 0.0, 0.0, np.inf
    for p in range(mean.size):
        square += direction[p] * direction[p]
    if square == 0.0:
        return 0.0
    for i in range(known.shape[0]):
        for j in range(i):
            diameter = max(diameter, apart[i, j])
    for i in range(known.shape[0]):
        half, length = 0.0, 0.0
        for p in range(mean.size):
            gap = mean[p] - known[i, p]
            half += gap * direction[p]
            length += gap * gap
        slack = max(diameter * diameter - length, 0.0)
        root = math.sqrt(half * half + square * slack)
        # by the form that subtracts nothing where half > 0
        gamma = min(gamma, slack / (half + root) if half > 0.0 else (root - half) / square)
    return gamma
