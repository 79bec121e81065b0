"""Is the noise of a release what the event says? Its variance, its shape, its independence, and who can repeat it.

All tests look at `noise` [releases, V]: what is released where every update is zero, one release after the other, over
the claimed standard deviation of each coordinate. Each states the odds of a false alarm under exact Gaussian noise.

    variance      sum of squares ~ chi-square: of all coordinates together within `WITHIN` of the claim; as many
                  releases are drawn as this needs (`draws_needed`)
    coordinates   the same for every coordinate, with the interval that the number of releases allows
    shape         Kolmogorov and Smirnov: variance could hide in a few large numbers
    independence  correlations between coordinates, and with the next release: equal or related noise cancels
    reuse         no two releases have the same noise
    replay        the noise of two copies of one state, such as a restored client: equal noise can be subtracted

Differs from the paper: nothing.
"""

import math
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, kstest, norm

from foltr.errors import FoltrError
from foltr.types import Array

WITHIN = 0.02  # of the claimed variance
ODDS = 1e-3  # of a false alarm, for each test


class Check(NamedTuple):
    """One test of a claim."""

    what: str
    claimed: str
    measured: str
    false_alarm: float  # odds that an honest implementation fails, at most
    passed: bool


def draws_needed(within: float = WITHIN, odds: float = ODDS) -> int:
    """Fewest numbers whose mean square is within so much of the true variance, but for these odds."""
    low, high = 1, 2
    while _misses(high, within) > odds:
        low, high = high, 2 * high
    while high - low > 1:
        half = (low + high) // 2
        low, high = (half, high) if _misses(half, within) > odds else (low, half)
    return high


def _misses(draws: int, within: float) -> float:
    return float(chi2.sf((1 + within) * draws, draws) + chi2.cdf((1 - within) * draws, draws))


def acceptance_odds(ratio: float, draws: int, within: float = WITHIN) -> float:
    """Probability that noise with `ratio` times the claimed standard deviation passes the test of the variance."""
    limits = np.array([1 - within, 1 + within]) * draws / ratio**2
    return float(np.diff(chi2.cdf(limits, draws))[0])


def check_noise(noise: Array, *, step: float) -> list[Check]:
    """Every test of noise [releases, V] in claimed standard deviations; `step`: distance of neighbouring numbers."""
    return [_variance(noise), _coordinates(noise), _shape(noise), _independence(noise), _reuse(noise, step)]


def _variance(noise: Array) -> Check:
    found = float(np.square(noise).mean())
    odds = _misses(noise.size, WITHIN)
    return Check("variance", f"1 within {WITHIN:.0%}", f"{found:.3f}", odds, abs(found - 1) <= WITHIN)


def _coordinates(noise: Array) -> Check:
    releases, size = noise.shape
    found = np.square(noise).mean(axis=0)
    low, high = chi2.ppf([ODDS / size / 2, 1 - ODDS / size / 2], releases) / releases
    worst = float(found[np.abs(found - 1).argmax()])
    claimed = f"1, from {low:.3f} to {high:.3f}"
    return Check(
        "variance of each coordinate", claimed, f"{worst:.3f}", ODDS, bool(((found > low) & (found < high)).all())
    )


def _shape(noise: Array) -> Check:
    pvalue = float(kstest(noise.ravel(), norm.cdf).pvalue)
    return Check("shape", "Gaussian", f"p = {pvalue:.2g}", ODDS, pvalue > ODDS)


def _independence(noise: Array) -> Check:
    """The correlation coefficient of independent Gaussian numbers is nearly normal with variance 1 / releases."""
    scaled = noise / np.maximum(np.sqrt(np.square(noise).sum(axis=0)), np.finfo(float).tiny)
    between = (scaled.T @ scaled)[np.triu_indices(noise.shape[1], 1)]
    following = (scaled[:-1].T @ scaled[1:]).ravel()
    correlations = np.abs(np.concatenate([between, following]))
    limit = float(norm.isf(ODDS / len(correlations) / 2) / math.sqrt(len(noise) - 1))
    largest = float(correlations.max())
    return Check("independence", f"correlations below {limit:.3f}", f"{largest:.3f}", ODDS, largest < limit)


def _reuse(noise: Array, step: float) -> Check:
    """Two draws are equal with probability step / (2 sqrt(pi)) in one coordinate."""
    releases, size = noise.shape
    again = releases - len(np.unique(noise, axis=0))
    odds = min(1.0, math.comb(releases, 2) * (step / (2 * math.sqrt(math.pi))) ** size)
    return Check("reuse", "no noise twice", f"{again:,} of {releases:,} again", odds, again == 0)


def check_replay(draws: tuple[Array, Array]) -> Check:
    """Two draws from copies of one state; equal ones follow from it, and whoever has the state subtracts them."""
    same = bool(np.array_equal(*draws))
    return Check("replay", "other noise", "same noise" if same else "other noise", 0.0, not same)


def in_two_copies(draw: Callable[[], Array]) -> tuple[Array, Array]:
    """Noise of two copies of this process; both have the memory, the seeds and the counters of this moment."""
    return _in_a_copy(draw), _in_a_copy(draw)


def _in_a_copy(draw: Callable[[], Array]) -> Array:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(np.asarray(draw(), np.float64).tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        drawn = np.frombuffer(pipe.read())
    os.waitpid(child, 0)
    if not drawn.size:
        raise FoltrError("a copy of the process ended before it drew noise; nothing is known of its noise")
    return drawn
