"""Noise shares of a cohort, from addressed streams; see `privacy.noise`."""

import math

import numpy as np

from foltr._kernels.compile import callee, kernel
from foltr._kernels.rng import NOISE, address, uniform_at
from foltr.types import Array

_NUMBERS = 64  # set aside for one gamma number; more than a few are needed once in a blue moon
_NEGLIGIBLE = -80 * math.log(2)


@kernel
def add_gaussian_shares(rows: Array, clients: Array, stddev: float, seed: int, round: int) -> None:
    """Adds N(0, stddev^2) of each client's noise stream to its row of rows [clients, P]."""
    for c in range(clients.size):
        at = address(seed, round, clients[c], NOISE)
        for p in range(0, rows.shape[1], 2):
            radius = stddev * math.sqrt(-2.0 * math.log(1.0 - uniform_at(at[0], at[1], p)))
            angle = 2.0 * math.pi * uniform_at(at[0], at[1], p + 1)
            rows[c, p] += radius * math.cos(angle)
            if p + 1 < rows.shape[1]:
                rows[c, p + 1] += radius * math.sin(angle)


@kernel
def add_gamma_shares(rows: Array, clients: Array, scale: float, shape: float, seed: int, round: int) -> None:
    """Adds scale * (Gamma(shape) - Gamma(shape)) of each client's noise stream to its row of rows [clients, P]."""
    # U^(1/shape) < e^t  <=>  U < e^(t * shape): most shares need no logarithm to be found to be nothing
    nothing = math.exp(_NEGLIGIBLE * shape)
    for c in range(clients.size):
        at = address(seed, round, clients[c], NOISE)
        for p in range(rows.shape[1]):
            plus = gamma_at(at[0], at[1], 2 * p * _NUMBERS, shape, nothing)
            minus = gamma_at(at[0], at[1], (2 * p + 1) * _NUMBERS, shape, nothing)
            rows[c, p] += scale * (plus - minus)


@callee
def gamma_at(start: np.uint64, stride: np.uint64, position: int, shape: float, nothing: float) -> float:
    """Gamma(shape, 1) for shape <= 1: Gamma(shape + 1) * U^(1/shape), the first as Marsaglia and Tsang (2000) do it."""
    first = uniform_at(start, stride, position)
    if first <= nothing:
        return 0.0
    fall = math.log(first) / shape
    d = shape + 1.0 - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(start, stride, position + 1)))
        normal = radius * math.cos(2.0 * math.pi * uniform_at(start, stride, position + 2))
        last = uniform_at(start, stride, position + 3)
        position += 3
        v = 1.0 + c * normal
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(last) < 0.5 * normal * normal + d - d * v + d * math.log(v):
            return d * v * math.exp(fall)
