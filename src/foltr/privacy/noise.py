"""Distributed noise: each of n contributors adds a share, and the sum of all n has the requested distribution.

Gaussian shares have 1/n of the variance. Laplace noise of scale b is the sum of n differences
Gamma(1/n, b) - Gamma(1/n, b); a gamma number is Gamma(1/n + 1) * U^n, the first by Marsaglia and Tsang (2000).
`gaussian_share` and `gamma_share` take the share of ONE client from a source of numbers: an addressed stream in the lab
(`rng.Stream`), so that runs can be repeated, or `SystemStream` on a node.

`discrete_gaussian` draws Gaussian noise on the integers exactly, without floating point, whose last digits would reveal
the noise: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), algorithms 1-3. An
integer x has probability proportional to exp(-x^2 / (2 variance)); the variance is a fraction. All random bits
come from the operating system; tests may pass another source.

`max_log_ratio`: Kairouz, Liu and Steinke, "The distributed discrete Gaussian mechanism for federated learning with
secure aggregation" (2021), the tau of their privacy theorem: the density of a sum of discrete Gaussians differs from
that of one discrete Gaussian by a factor of at most exp(tau). Their proof needs shares of sigma >= 1/2.
`smoothing_log_ratio`: a discrete Gaussian of variance v differs by a factor of at most exp(this) from a post-processed
continuous Gaussian of variance v - SMOOTHING; proof in docs/explanation-noise-in-the-ring.md.

Differs from the papers: a gamma number below 2^-80 of its scale is zero: that is below the last digit of the parameter
it would be added to.
"""

import math
import os
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np

from foltr.errors import SpecError
from foltr.types import Array

_NUMBERS = 64  # uniforms set aside for one gamma number; it needs four, and more than ten once in 10,000
_NEGLIGIBLE = -80 * math.log(2)
_TO_UNIT = 2.0**-53
SMALLEST_SHARE = 0.5  # sigma of a share, in steps of the ring: nothing is proved of sums of smaller ones
SMOOTHING = 4.0  # variance, in squared steps, that is given up to compare discrete noise with continuous noise
_TERMS = 1000  # of a sum over contributors; further ones are bounded by the first of them


class Draws(Protocol):
    """A source of random numbers; no number of it is used twice."""

    def uniform_at(self, indices: Array) -> Array: ...

    def uniform(self, size: int) -> Array: ...

    def normal(self, size: int) -> Array: ...


class SystemStream:
    """Numbers of the operating system with the methods of `rng.Stream`; they cannot be reproduced.

    An index does not name a number here: every call gives fresh ones.
    """

    def skip(self, _numbers: int) -> "SystemStream":
        return self

    def uniform_at(self, indices: Array) -> Array:
        shape = np.shape(indices)
        words = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64).reshape(shape)
        return (words >> np.uint64(11)).astype(np.float64) * _TO_UNIT

    def uniform(self, size: int) -> Array:
        return self.uniform_at(np.empty(size))

    def normal(self, size: int) -> Array:
        """Standard normal numbers (Box and Muller)."""
        radius = np.sqrt(-2.0 * np.log(1.0 - self.uniform(size)))
        return radius * np.cos(2.0 * np.pi * self.uniform(size))


def gaussian_share(draws: Draws, size: int, *, stddev: float, noise_contributors: int) -> Array:
    """One client's share [size]; the sum of `noise_contributors` of them has this standard deviation."""
    return stddev / math.sqrt(noise_contributors) * draws.normal(size)


def gamma_share(draws: Draws, size: int, *, scale: float, noise_contributors: int) -> Array:
    """One client's share [size]; the sum of `noise_contributors` of them is Laplace noise of this scale."""
    both = _gamma(draws, 2 * size, 1.0 / noise_contributors).reshape(size, 2)
    return scale * (both[:, 0] - both[:, 1])


def _gamma(draws: Draws, size: int, shape: float) -> Array:
    """Gamma(shape, 1) for shape <= 1, [size]: number i uses the uniforms from i * 64 on."""
    found = np.zeros(size)
    first = draws.uniform_at(np.arange(size) * _NUMBERS)
    # U^(1/shape) < e^t  <=>  U < e^(t * shape): most shares are found to be zero without a logarithm
    waiting = np.flatnonzero(first > math.exp(_NEGLIGIBLE * shape))
    fall = np.exp(np.log(first[waiting]) / shape)
    d = shape + 1.0 - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    position = 1
    while waiting.size:
        three = draws.uniform_at(waiting * _NUMBERS + position + np.arange(3)[:, None])  # [3, waiting]
        normal = np.sqrt(-2.0 * np.log(1.0 - three[0])) * np.cos(2.0 * np.pi * three[1])
        v = np.maximum(1.0 + c * normal, 0.0) ** 3
        with np.errstate(divide="ignore"):  # log(0) = -inf rejects v = 0 and accepts a uniform of 0, rightly
            accepted = (v > 0) & (np.log(three[2]) < 0.5 * normal * normal + d - d * v + d * np.log(v))
        found[waiting[accepted]] = d * v[accepted] * fall[accepted]
        waiting, fall = waiting[~accepted], fall[~accepted]
        position += 3
    return found


# --- noise on the integers ------------------------------------------------------------------------------------------

Bits: TypeAlias = Callable[[int], int]  # how many -> a uniform integer of so many bits
_SHARE_STEPS = 2**20  # a share's variance is a multiple of 1 / this


def discrete_gaussian(variance: Fraction, size: int, bits: Bits = secrets.randbits) -> Array:
    """`size` exact draws, int64."""
    if variance <= 0:
        raise SpecError(f"variance={variance}; use a fraction above 0")
    above, below = variance.numerator, variance.denominator
    return np.array([_gaussian(above, below, bits) for _ in range(size)], np.int64)


def noise_in_ring(
    encoded: Array, *, variance: Fraction, noise_contributors: int, bits: Bits = secrets.randbits
) -> Array:
    """An encoded vector [P] plus one contributor's share of noise; all shares have this variance, in ring steps."""
    noise = discrete_gaussian(share_variance(variance, noise_contributors), encoded.size, bits)
    return encoded + noise.astype(encoded.dtype)  # both wrap around: that is the ring


def share_variance(variance: Fraction, noise_contributors: int) -> Fraction:
    """The variance of each contributor's share; rounded up."""
    if noise_contributors < 1:
        raise SpecError(f"noise_contributors={noise_contributors}; at least one must draw noise")
    return Fraction(math.ceil(variance * _SHARE_STEPS / noise_contributors), _SHARE_STEPS)


def max_log_ratio(sigma: float, noise_contributors: int) -> float:
    """Largest log ratio between the sum of all contributors' draws of this sigma each and one discrete Gaussian.

    Terms fall with k: those beyond `_TERMS` are replaced by the first of them, so that the time is bounded.
    """
    worst = -2 * math.pi**2 * sigma**2
    terms = min(noise_contributors, _TERMS)
    first = math.fsum(math.exp(worst * k / (k + 1)) for k in range(1, terms))
    return 10 * (first + (noise_contributors - terms) * math.exp(worst * terms / (terms + 1)))


def smoothing_log_ratio(variance: float = SMOOTHING) -> float:
    """log((1 + eta) / (1 - eta)), eta = 2 sum over k >= 1 of exp(-2 pi^2 variance k^2)."""
    first = math.exp(-2 * math.pi**2 * variance)
    eta = 2 * first / (1 - first**3)  # k^2 >= 3 k - 2: a geometric series bounds the sum
    return math.log1p(eta) - math.log1p(-eta)


def _gaussian(above: int, below: int, bits: Bits) -> int:
    """Algorithm 3, variance above / below: a discrete Laplace draw of scale t, accepted with the right probability."""
    t = math.isqrt(above // below) + 1
    while True:
        draw = _laplace(t, bits)
        # (|draw| - variance / t)^2 / (2 variance), as a ratio of integers
        distance = abs(draw) * t * below - above
        if _exp_coin(distance * distance, 2 * above * below * t * t, bits):
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
    """Algorithm 1 for a ratio of at most 1."""
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
