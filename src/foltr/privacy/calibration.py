"""Gaussian noise in closed form: its epsilon at a delta, and how much noise a target needs. Standard library only.

k releases of noise multiplier s compose to one of mu = sqrt(k) / s. Its delta at epsilon is exact (Balle and Wang 2018,
theorem 8):

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

Far in the tail both terms are computed from the Mills ratio Phi(-x) / phi(x), in which e^epsilon cancels exactly, so
the result is accurate for every epsilon. `accounting` computes the same by numerical composition.

Adaptive clipping (Andrew et al. 2021, algorithm 1): beside its update every client sends one bit, whether the norm of
the update was within the clip, as 1/2 or -1/2, with a share of noise. Both together are one Gaussian release of the
multiplier that was asked for, so the update gets a little more noise: 1 / update^2 + 1 / (2 bits)^2 = 1 / multiplier^2.

Differs from the papers: nothing.
"""

import math
from collections.abc import Callable
from functools import cache

from foltr.errors import SpecError

CLIP_LEARNING_RATE = 0.2  # the largest change of the clip's logarithm in a round
_BIT_NOISE = 1 / 20  # standard deviation of the noise on the sum of bits, over the clients: the paper's choice
_MARGIN = 1e-3  # numerical composition rounds upwards; with this much more noise it meets the target too
_TAIL, _TERMS = 4.0, 60  # from here on a continued fraction of so many terms is exact to the last digits


def log_ndtr(x: float) -> float:
    """Logarithm of the standard normal distribution function."""
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x / math.sqrt(2)))
    return -0.5 * x * x + _log_scaled_tail(-x)


def _log_scaled_tail(x: float) -> float:
    """log(Phi(-x) e^(x^2 / 2)) for x >= 0."""
    if x < _TAIL:
        return math.log(0.5 * math.erfc(x / math.sqrt(2))) + 0.5 * x * x
    below = x
    for term in range(_TERMS, 0, -1):  # Laplace: 1 / (x + 1 / (x + 2 / (x + 3 / ...)))
        below = x + term / below
    return -math.log(below) - 0.5 * math.log(2 * math.pi)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta of Gaussian noise at an epsilon; mu: bound / standard deviation."""
    near, far = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    if math.isinf(far):
        return 0.0
    first = log_ndtr(near)
    # far^2 - near^2 = 2 epsilon: the second term is e^(-near^2 / 2) times the scaled tail
    beside = _log_scaled_tail(-near) if near <= 0 else first + 0.5 * near * near
    difference = _log_scaled_tail(far) - beside
    return math.exp(first) * -math.expm1(min(difference, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon of Gaussian noise at a delta."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9  # of concentrated privacy: never below
    return _first(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, 0.0, high)


@cache
def noise_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """Standard deviation of the noise over the clip so that `releases` of them stay within epsilon at delta."""
    if not (0 < epsilon < math.inf and 0 < delta < 1 and releases >= 1):
        raise SpecError(
            f"epsilon {epsilon:g}, delta {delta:g}, {releases} releases: epsilon must be positive and finite, delta "
            f"between 0 and 1 (a usual choice is 1e-5), and releases at least 1"
        )

    def exceeds(mu: float) -> bool:
        return gaussian_delta(mu, epsilon) > delta

    low = high = 1.0
    while exceeds(low):
        low /= 2
    while not exceeds(high):
        high *= 2
    return math.sqrt(releases) / _first(exceeds, low, high) * (1 + _MARGIN)


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number at which a monotone condition holds; it holds at `high`. Bisection to the last digit."""
    while low < (mid := low + (high - low) / 2) < high:
        low, high = (low, mid) if holds(mid) else (mid, high)
    return high


def laplace_scale(epsilon: float, releases: int, clip: float) -> float:
    """Scale of Laplace noise on what is clipped in L1, so that epsilons add up to the target; delta is 0."""
    return clip * releases / epsilon


def split_multiplier(multiplier: float, clients: int) -> tuple[float, float]:
    """Noise multiplier of the update, and the standard deviation of the noise on the sum of bits."""
    bits = max(clients * _BIT_NOISE, multiplier)  # never so little that the update would need infinite noise
    return (multiplier**-2 - (2 * bits) ** -2) ** -0.5, bits


def next_clip(noisy_bit_sum: float, clients: int, clip: float, *, quantile: float) -> float:
    """The clip of the next round from the noisy sum of the clients' bits, each 1/2 (within the clip) or -1/2."""
    if not 0 < quantile < 1:
        raise SpecError(f"quantile {quantile:g} of the norms: use a number between 0 and 1, such as 0.5")
    within = noisy_bit_sum / clients + 0.5
    return clip * math.exp(-CLIP_LEARNING_RATE * (within - quantile))
