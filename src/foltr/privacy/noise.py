"""Noise in shares: each of n holders adds a little, and only the sum of all n is noisy as it should be.

Gaussian shares have 1/n of the variance. Laplace noise of scale b is the sum of n differences
Gamma(1/n, b) - Gamma(1/n, b). For the lab: noise comes from addressed streams, so that runs can be repeated; what is
deployed draws from the operating system (`discrete_gaussian`).

Differs from the paper: a gamma share below 2^-80 of its scale is sent as zero: that is below the last digit of the
parameter it would be added to.
"""

import math

from foltr._kernels import noise as kernels
from foltr.types import Array


def add_gaussian_shares(
    updates: Array, clients: Array, *, deviation: float, holders: int, seed: int, round: int
) -> None:
    """Adds each client's share to its row of updates [clients, P], in place: `holders` of them have `deviation`."""
    kernels.add_gaussian_shares(updates, clients, deviation / math.sqrt(holders), seed, round)


def add_gamma_shares(updates: Array, clients: Array, *, scale: float, holders: int, seed: int, round: int) -> None:
    """Adds each client's noise share to its row of updates [clients, P], in place."""
    kernels.add_gamma_shares(updates, clients, scale, 1.0 / holders, seed, round)
