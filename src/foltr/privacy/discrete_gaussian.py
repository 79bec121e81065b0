"""Gaussian noise on the integers, drawn exactly: no floating point, so no digits that give the noise away.

Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), algorithms 1-3. An integer
x has probability proportional to exp(-x^2 / (2 variance)); the variance is a fraction. All coins are integers from the
operating system; another source of bits may be given to check known answers, never for use.

`share_gap`: Kairouz, Liu and Steinke, "The distributed discrete Gaussian mechanism for federated learning with secure
aggregation" (2021), the tau of their privacy theorem. A sum of discrete Gaussians is not quite one: its density differs
from that of one discrete Gaussian by a factor of at most exp(tau).

Differs from the paper: nothing.
"""

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from foltr.errors import SpecError
from foltr.types import Array

Bits: TypeAlias = Callable[[int], int]  # how many -> a uniform integer of so many bits
_SHARE_STEPS = 2**20  # a share's variance is a multiple of 1 / this


def sample(variance: Fraction, size: int, bits: Bits = secrets.randbits) -> Array:
    """`size` exact draws, int64."""
    if variance <= 0:
        raise SpecError(f"variance={variance}; use a fraction above 0")
    above, below = variance.numerator, variance.denominator
    return np.array([_gaussian(above, below, bits) for _ in range(size)], np.int64)


def noise_in_ring(encoded: Array, *, variance: Fraction, holders: int, bits: Bits = secrets.randbits) -> Array:
    """An encoded vector [P] and one holder's share of noise; all shares have this variance, in steps of the ring."""
    noise = sample(share_variance(variance, holders), encoded.size, bits)
    return encoded + noise.astype(encoded.dtype)  # both wrap around: that is the ring


def share_variance(variance: Fraction, holders: int) -> Fraction:
    """What each of the holders must draw; rounded up, never down."""
    if holders < 1:
        raise SpecError(f"holders={holders}; at least one must draw noise")
    return Fraction(math.ceil(variance * _SHARE_STEPS / holders), _SHARE_STEPS)


def share_gap(sigma: float, holders: int) -> float:
    """Largest log ratio between the sum of the holders' draws of this sigma each and one discrete Gaussian."""
    worst = -2 * math.pi**2 * sigma**2
    return 10 * math.fsum(math.exp(worst * k / (k + 1)) for k in range(1, holders))


def _gaussian(above: int, below: int, bits: Bits) -> int:
    """Algorithm 3, variance above / below: a discrete Laplace draw of scale t, kept with the right odds."""
    t = math.isqrt(above // below) + 1
    while True:
        draw = _laplace(t, bits)
        # (|draw| - variance / t)^2 / (2 variance), as a ratio of integers
        gap = abs(draw) * t * below - above
        if _exp_coin(gap * gap, 2 * above * below * t * t, bits):
            return draw


def _laplace(t: int, bits: Bits) -> int:
    """Algorithm 2: probability proportional to exp(-|x| / t)."""
    while True:
        rest = _below(t, bits)
        if not _exp_coin(rest, t, bits):
            continue
        size = rest
        while _exp_coin(1, 1, bits):
            size += t
        negative = bits(1)
        if size or not negative:  # zero has one sign
            return -size if negative else size


def _exp_coin(above: int, below: int, bits: Bits) -> bool:
    """Algorithm 1: true with probability exp(-above / below)."""
    while above > below:
        if not _small_exp_coin(1, 1, bits):
            return False
        above -= below
    return _small_exp_coin(above, below, bits)


def _small_exp_coin(above: int, below: int, bits: Bits) -> bool:
    """For a ratio of at most 1: the length of a run of ever rarer coins is odd with these odds."""
    run = 1
    while _below(below * run, bits) < above:
        run += 1
    return run % 2 == 1


def _below(limit: int, bits: Bits) -> int:
    """A uniform integer from 0 to limit - 1."""
    size = (limit - 1).bit_length()
    while True:
        drawn = bits(size) if size else 0
        if drawn < limit:
            return drawn
