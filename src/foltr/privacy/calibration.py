"""Gaussian noise in closed form: what it hides at which delta, and how much of it a wish needs.

k releases of noise multiplier s are worth one of mu = sqrt(k) / s; its delta at epsilon is exact (Balle and Wang 2018,
theorem 8). `accounting` says the same by numerical composition; calibration starts from here, since it is instant.

Differs from the paper: nothing.
"""

import math
from functools import cache

from scipy.optimize import brentq
from scipy.special import log_ndtr

from foltr.errors import SpecError

_MARGIN = 1e-3  # numerical composition rounds upwards; with this much more noise it agrees that the wish is met


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta of Gaussian noise at an epsilon; mu: bound / standard deviation."""
    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first) * -math.expm1(min(second - first, 0.0)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon of Gaussian noise at a delta."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9  # of concentrated privacy: never below
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high, xtol=1e-12, rtol=1e-12))


@cache
def noise_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """Standard deviation of the noise over the clip so that `releases` of them stay within epsilon at delta."""
    if not (epsilon > 0 and 0 < delta < 1 and releases >= 1):
        raise SpecError(
            f"epsilon {epsilon:g}, delta {delta:g}, {releases} releases: epsilon must be positive, delta between 0 "
            f"and 1 (a usual choice is 1e-5), and there must be one release at least"
        )

    def missing(log_mu: float) -> float:
        return gaussian_epsilon(math.exp(log_mu), delta) - epsilon

    mu = math.exp(brentq(missing, math.log(1e-9), math.log(1e4), xtol=1e-12))
    return math.sqrt(releases) / mu * (1 + _MARGIN)


def laplace_scale(epsilon: float, releases: int, clip: float) -> float:
    """Scale of Laplace noise on what is clipped in L1, so that epsilons simply add up to the wish; delta is 0."""
    return clip * releases / epsilon
