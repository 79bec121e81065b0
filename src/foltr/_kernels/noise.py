"""Gamma shares of a whole cohort in machine code: the same numbers as `privacy.noise.gamma_share` gives each client.

Differs from the paper: see `privacy.noise`.
"""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import NOISE, address, uniform_at
from foltr.types import Array

_NUMBERS = 64  # set aside for one gamma number, as in `privacy.noise`
_NEGLIGIBLE = -80 * math.log(2)


def add_gamma_shares(
    updates: Array, clients: Array, *, scale: float, noise_contributors: int, seed: int, round: int
) -> None:
    """Adds each client's noise share to its row of updates [clients, P], in place."""
    _add_shares(updates, clients, scale, 1.0 / noise_contributors, seed, round)


@kernel
def _add_shares(updates: Array, clients: Array, scale: float, shape: float, seed: int, round: int) -> None:
    # U^(1/shape) < e^t  <=>  U < e^(t * shape): most shares are found to be zero without a logarithm
    nothing = math.exp(_NEGLIGIBLE * shape)
    for c in range(clients.size):
        at = address(seed, round, clients[c], NOISE)
        for p in range(updates.shape[1]):
            plus = gamma_at(at[0], at[1], 2 * p * _NUMBERS, shape, nothing)
            minus = gamma_at(at[0], at[1], (2 * p + 1) * _NUMBERS, shape, nothing)
            updates[c, p] += scale * (plus - minus)


@kernel
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
