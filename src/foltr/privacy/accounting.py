"""From events to epsilon: the composition of all releases about one person, at a delta.

Two methods of dp-accounting: privacy loss distributions (`pld`, nearly exact) and Renyi divergences (`rdp`, an upper
bound, some percent above). Where both exist they must agree, else an error is raised. Refused are a
mechanism without an entry here, noise whose norm is not the one that is clipped, events of different units.

RDP only, because a distribution is not known or too large: `fpdgd`, `discrete-gaussian` in a coarse ring, thousands of
responses.

fpdgd   Laplace noise on every coordinate of what is clipped in L2 only. A difference of L2 norm b spread evenly over P
        coordinates is the worst for every order (the divergence is concave in the square of the shift), so a release
        is P Laplace releases of b / sqrt(P). The pure epsilon of one release is sqrt(P) b / scale.
discrete-gaussian   accounted for as Gaussian noise of a little less variance (proof:
        docs/explanation-noise-in-the-ring.md). In a coarse ring, where that costs something, Kairouz, Liu and Steinke
        (2021), theorem 5, bounds the distance of the sum of n shares to one discrete Gaussian: concentrated privacy.
removal   `removal_epsilon`: the client is taken out with its noise share, so the two sums have different variances. The
        log ratio is a quadratic form: one coordinate along the update, and a chi-square number of all others. Delta
        grows with the norm of the update (the overlap of two balls falls with their distance), so the clip is the
        worst case.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.errors import PrivacyError
from foltr.privacy.events import (
    Adversary,
    Event,
    as_continuous,
    check_composable,
    concentrated,
    holds,
    multiplier,
    pure_epsilon,
)

_ORDERS = np.concatenate([1 + 2.0 ** np.arange(-9, 1, 0.25), np.arange(2.25, 64, 0.25), 2.0 ** np.arange(6, 14, 0.5)])
_FINEST = 1e-4  # of a privacy loss; coarser where epsilon is large
_LARGEST = 4_000_000  # points of a distribution
_GRID = np.linspace(-10.0, 10.0, 8001)  # of a standard normal number; beyond it lie 2e-23
_WEIGHTS = np.exp(-(_GRID**2) / 2) / np.sqrt(2 * np.pi) * (_GRID[1] - _GRID[0])


class Spent(NamedTuple):
    """Epsilon at a delta by both methods; pld is None where no distribution is known."""

    pld: float | None
    rdp: float
    delta: float

    @property
    def epsilon(self) -> float:
        return self.rdp if self.pld is None else self.pld


def epsilon(events: Mapping[Event, int], delta: float, against: Adversary = "recipients") -> Spent:
    """The composed epsilon of events with their counts, against an adversary."""
    counted = tuple((event, times) for event, times in events.items() if times)
    _check(counted, delta)
    if not counted:
        return Spent(0.0, 0.0, delta)
    if not all(against in event.against and holds(event) for event, _ in counted):
        return Spent(None, math.inf, delta)
    totals: Counter[Event] = Counter()
    for event, times in counted:
        totals[_normalized(event)] += times
    return _composed(tuple(totals.items()), delta)


def removal_epsilon(event: Event, times: int, delta: float) -> float:
    """Epsilon at delta where a client is removed with its share of Gaussian noise.

    The larger of both directions, one more client or one fewer. Infinite without a further share, and above 512.
    """
    shares = min(event.present, event.noise_contributors)
    if "gaussian" not in event.mechanism or shares < 2:
        return math.inf
    share, size = event.noise / event.bound / math.sqrt(event.noise_contributors), times * event.parameters
    more, fewer = share * math.sqrt(shares), share * math.sqrt(shares - 1)

    def excess(epsilon: float) -> float:
        return max(_unequal_delta(epsilon, math.sqrt(times), there, back, size) for there, back in
                   ((more, fewer), (fewer, more))) - delta  # fmt: skip

    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
        if high > 512:
            return math.inf
    while high - low > 1e-6 * high:
        half = (low + high) / 2
        low, high = (half, high) if excess(half) > 0 else (low, half)
    return high


def _unequal_delta(epsilon: float, distance: float, stddev: float, other: float, size: int) -> float:
    """Delta of N(distance e_1, stddev^2 I) against N(0, other^2 I) in `size` dimensions."""
    from scipy.special import gammainc, gammaincc

    bend = 0.5 / other**2 - 0.5 / stddev**2  # coefficient of the other coordinates' squares in the log ratio L
    rest = gammaincc if bend > 0 else gammainc

    def exceeds(mean: float, sd: float) -> float:
        x = mean + sd * _GRID
        along = size * math.log(other / stddev) - (x - distance) ** 2 / (2 * stddev**2) + x**2 / (2 * other**2)
        left = (epsilon - along) / (bend * sd**2)
        if size == 1:  # no other coordinates
            return float(np.sum(_WEIGHTS * (along > epsilon)))
        return float(np.sum(_WEIGHTS * rest((size - 1) / 2, np.maximum(left, 0.0) / 2)))

    return exceeds(distance, stddev) - math.exp(epsilon) * exceeds(0.0, other)


def _check(counted: tuple[tuple[Event, int], ...], delta: float) -> None:
    if not 0 < delta < 1:
        raise PrivacyError(f"delta = {delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")
    check_composable(event for event, _ in counted)
    for event, times in counted:
        if times < 0:
            raise PrivacyError(f"{event.mechanism}: {times} times; a release happens 0 times or more")


def _normalized(event: Event) -> Event:
    """The event normalised by its bound, so that federations of different sizes share one computation."""
    if event.mechanism == "discrete-gaussian" and math.isfinite(squared_mu := as_continuous(event)[0]):
        # its pure epsilon, at most 2e-20 a release, is below the last digit of what numerical composition gives
        return msgspec.structs.replace(
            event, mechanism="gaussian", bound=1.0, noise=squared_mu**-0.5, noise_contributors=1, present=1,
            parameters=1,
        )  # fmt: skip
    if event.mechanism in ("gaussian", "laplace"):
        return msgspec.structs.replace(
            event, bound=1.0, noise=multiplier(event), noise_contributors=1, present=1, parameters=1
        )
    return event


@cache
def _composed(counted: tuple[tuple[Event, int], ...], delta: float) -> Spent:
    import dp_accounting

    rdp = np.sum([times * _renyi(event) for event, times in counted], axis=0)
    upper = float(dp_accounting.rdp.rdp_privacy_accountant.compute_epsilon(_ORDERS, rdp, delta)[0])
    pure = sum(times * pure_epsilon(event) for event, times in counted)
    upper = min(upper, pure)
    if upper == 0.0:
        return Spent(0.0, 0.0, delta)
    exact = _by_distribution(counted, delta, upper, dp_accounting.pld.privacy_loss_distribution)
    if exact is not None and not exact <= upper * 1.001 + 1e-3 <= 1.5 * exact + 0.5:
        raise PrivacyError(f"the two accountants disagree ({exact:g} and {upper:g}); neither result is used")
    return Spent(exact, upper, delta)


def _by_distribution(counted: tuple[tuple[Event, int], ...], delta: float, upper: float, pld: Any) -> float | None:
    known: dict[str, Callable[[Event, float], Any]] = {
        "laplace": lambda event, step: pld.from_laplace_mechanism(
            multiplier(event), value_discretization_interval=step
        ),
        "randomized-response": lambda event, step: pld.from_randomized_response(
            (1 - event.noise) * event.outcomes / (event.outcomes - 1), event.outcomes,
            value_discretization_interval=step,
        ),
    }  # fmt: skip
    others = [(event, times) for event, times in counted if event.mechanism != "gaussian"]
    step = min(_FINEST, upper / 1000 / max(1, sum(times for _, times in others)))
    if not others:
        step = max(_FINEST, upper / _LARGEST * 4)  # one distribution, rounded once
    all_known = all(event.mechanism in known and not _mostly_false(event) for event, _ in others)
    if not all_known or 2 * sum(times * pure_epsilon(event) for event, times in others) / step > _LARGEST:
        return None
    # Gaussian releases are one release whose squared multipliers add up; dp-accounting rounds it once
    squared = sum(times / multiplier(event) ** 2 for event, times in counted if event.mechanism == "gaussian")
    parts = [known[event.mechanism](event, step).self_compose(times) for event, times in others]
    if squared:
        parts.append(pld.from_gaussian_mechanism(squared**-0.5, value_discretization_interval=step))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(delta))


def _mostly_false(event: Event) -> bool:
    """A response that is false more often than true; dp-accounting does not support it."""
    return event.mechanism == "randomized-response" and event.noise < 1 / event.outcomes


def _renyi(event: Event) -> Any:
    """[orders] of one release."""
    if event.mechanism == "gaussian":
        return _ORDERS / (2 * multiplier(event) ** 2)
    if event.mechanism == "discrete-gaussian":
        return _ORDERS * concentrated(event)
    if event.mechanism == "laplace":
        return laplace_divergence(_ORDERS, event.bound / event.noise)
    if event.mechanism == "randomized-response":
        return _response_divergence(event)
    return event.parameters * laplace_divergence(_ORDERS, event.bound / event.noise / math.sqrt(event.parameters))


def laplace_divergence(orders: Any, shift: float) -> Any:
    """Renyi divergence of Laplace noise of scale 1 from itself moved by `shift` (Mironov 2017, table II)."""
    up = np.log(orders / (2 * orders - 1)) + (orders - 1) * shift
    down = np.log((orders - 1) / (2 * orders - 1)) - orders * shift
    return np.logaddexp(up, down) / (orders - 1)


def _response_divergence(event: Event) -> Any:
    """Between two true outcomes of a randomised response: they differ in the probabilities of those two only."""
    truth, false = event.noise, (1 - event.noise) / (event.outcomes - 1)
    there = _ORDERS * math.log(truth) + (1 - _ORDERS) * math.log(false)
    back = _ORDERS * math.log(false) + (1 - _ORDERS) * math.log(truth)
    rest = math.log(false * (event.outcomes - 2)) if event.outcomes > 2 else -math.inf
    return np.logaddexp(np.logaddexp(there, back), rest) / (_ORDERS - 1)
