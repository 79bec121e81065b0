"""Noise in shares: each of n holders adds a little, and only the sum of all n is noisy as it should be.

Gaussian shares have 1/n of the variance. Laplace noise of scale b is the sum of n differences
Gamma(1/n, b) - Gamma(1/n, b). For the lab: noise comes from addressed streams, so that runs can be repeated; what is
deployed draws from the operating system (`discrete_gaussian`).

Differs from the paper: a gamma share below 2^-80 of its scale is sent as zero: that is below the last digit of the
parameter it would be added to.
"""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import NOISE, address, uniform_at
from foltr.rng import stream
from foltr.types import Array


def add_gaussian_shares(
    updates: Array, clients: Array, *, deviation: float, holders: int, seed: int, round: int
) -> None:
    """Adds each client's share to its row of updates [clients, P], in place: `holders` of them have `deviation`."""
    share = deviation / math.sqrt(holders)
    for row, client in zip(updates, clients, strict=True):
        row += share * stream(seed, round=round, client=int(client), purpose="noise").normal(len(row))


def add_gamma_shares(updates: Array, clients: Array, *, scale: float, holders: int, seed: int, round: int) -> None:
    """Adds each client's noise share to its row of updates [clients, P], in place."""
    _add_shares(updates, clients, scale, 1.0 / holders, seed, round)


_NUMBERS = 64  # set aside for one gamma number; more than a few are needed once in a blue moon
_NEGLIGIBLE = -80 * math.log(2)


@kernel
def _add_shares(updates: Array, clients: Array, scale: float, shape: float, seed: int, round: int) -> None:
    # U^(1/shape) < e^t  <=>  U < e^(t * shape): most shares need no logarithm to be found to be nothing
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
