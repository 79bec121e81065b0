"""Noise in the ring is worth what docs/explanation-noise-in-the-ring.md proves: exact enumerations, and the whole grid
of targets, of which the ledger admits every planned release.
"""

import math
import subprocess
import sys
from collections import Counter
from itertools import product

import numpy as np
import pytest

from foltr.errors import PrivacyError, SpecError
from foltr.privacy import ledger, release
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_delta, noise_multiplier
from foltr.privacy.events import Event, as_continuous, concentrated, unproved
from foltr.privacy.noise import SMOOTHING, max_log_ratio, smoothing_log_ratio
from foltr.secagg.guarantee import Guarantee, guarantee
from foltr.secagg.ring import Ring

DELTA = 1e-5


def discrete(variance, reach):
    """Probabilities of a discrete Gaussian at -reach ... reach."""
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return weights / weights.sum()


def sum_of_shares(sigma, contributors):
    """Exact distribution of the sum of so many discrete Gaussians, around its middle."""
    one = discrete(sigma**2, math.ceil(12 * sigma))
    total = one
    for _ in range(contributors - 1):
        total = np.convolve(total, one)
    return total


# --- the two steps of the proof ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "contributors"), [(0.5, 2), (0.5, 10), (0.7, 5), (1.0, 3)])
def test_a_sum_of_discrete_gaussians_is_within_the_stated_ratio_of_one(sigma, contributors):
    total = sum_of_shares(sigma, contributors)
    reach = len(total) // 2
    single = discrete(contributors * sigma**2, reach)
    near = slice(reach - math.ceil(3 * sigma), reach + math.ceil(3 * sigma) + 1)  # beyond, rounding is larger
    ratio = np.abs(np.log(total[near] / single[near])).max()
    assert ratio <= max_log_ratio(sigma, contributors) + 1e-12


@pytest.mark.parametrize("smoothing", [0.1, 0.15, 0.25])
def test_a_discrete_gaussian_is_a_smoothed_continuous_one_up_to_the_stated_ratio(smoothing):
    """A continuous Gaussian of variance v - s, rounded by a discrete Gaussian of variance s around it, by quadrature.

    The smoothing is so small that the ratio can be seen: 1.1 to 4e-2.
    """
    variance, points = 2.0, np.arange(-6, 7)
    y = np.linspace(-14, 14, 280_001)
    density = np.exp(-(y**2) / (2 * (variance - smoothing))) / math.sqrt(2 * math.pi * (variance - smoothing))
    normalizer = sum(np.exp(-((y - z) ** 2) / (2 * smoothing)) for z in range(-30, 31))
    rounded = [np.sum(density * np.exp(-((y - x) ** 2) / (2 * smoothing)) / normalizer) * (y[1] - y[0]) for x in points]
    ratio = np.abs(np.log(np.array(rounded) / discrete(variance, 40)[points + 40])).max()
    assert 1e-4 < ratio <= smoothing_log_ratio(smoothing)


def exact_delta(sigma, contributors, shift, releases, target):
    """Delta at epsilon of a sum of shares moved by a vector, composed: the privacy loss as a finite distribution."""
    total = sum_of_shares(sigma, contributors)
    loss = Counter({0.0: 1.0})
    for step in [abs(step) for step in shift if step] * releases:
        x = np.arange(step, len(total))
        moved = total[x] > 1e-18  # the rest is added to delta below
        each = Counter()
        for probability, value in zip(total[x][moved], np.log(total[x][moved] / total[x - step][moved]), strict=True):
            each[round(float(value), 9)] += probability
        loss = _convolved(loss, each)
    outside = 1 - sum(loss.values())
    return sum(p * -math.expm1(target - value) for value, p in loss.items() if value > target) + outside


def _convolved(first, second):
    found = Counter()
    for (a, p), (b, q) in product(first.items(), second.items()):
        if p * q > 1e-16:
            found[round(a + b, 6)] += p * q
    return found


@pytest.mark.parametrize(
    ("sigma", "contributors", "shift", "releases"),
    [(3.0, 4, (5,), 1), (3.0, 4, (3, 4), 1), (3.0, 4, (5,), 2), (4.0, 9, (6, 6, 7), 1), (3.0, 16, (1, 1, 1, 1), 1)],
)
@pytest.mark.parametrize("target", [0.2, 0.5, 1.0, 2.0])
def test_the_exact_delta_of_a_sum_in_the_ring_is_within_the_bound_and_close_to_it(
    sigma, contributors, shift, releases, target
):
    event = Event("discrete-gaussian", "l2", math.hypot(*shift), "l2", sigma * math.sqrt(contributors),
                  noise_contributors=contributors, present=contributors, parameters=len(shift))  # fmt: skip
    squared_mu, rest = as_continuous(event)
    bound = gaussian_delta(math.sqrt(releases * squared_mu), target - releases * rest)
    exact = exact_delta(sigma, contributors, shift, releases, target)
    assert exact <= bound + 1e-9
    if bound > 1e-3:
        assert exact >= 0.5 * bound  # smoothing costs something in so coarse a ring


def test_what_smoothing_leaves_out_is_below_the_margin():
    """mu + margin raises delta by more than the ratio of a release does, at every mu that a budget allows."""
    for mu, target in ((1e-3, 0.0), (0.27, 1.0), (2.0, 1.0), (10.0, 70.0), (1000.0, 6e5)):
        before = gaussian_delta(mu, target)
        after = gaussian_delta(math.sqrt(mu**2 + 1e-6 * mu**2), target)  # 1e-12 is below the last digits
        if 0 < before < 0.3:
            assert math.log(after / before) >= 0.6 * math.log(math.sqrt(1 + 1e-6)) * 0.999
    assert smoothing_log_ratio(SMOOTHING) < 1e-33


# --- calibration and ledger agree -------------------------------------------------------------------------------------


def admitted(event, budget, delta, times):
    return ledger.admits(ledger.begin(1, delta=delta, budget=budget), event, np.zeros(1, np.int64), times)


@pytest.mark.parametrize("releases", [1, 2, 5, 10, 20, 50, 365, 1000])
@pytest.mark.parametrize("target", [0.05, 0.25, 1.0, 1.3, 3.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_ledger_admits_as_many_releases_as_were_planned_and_hardly_more(target, releases, delta):
    ring = Ring(clients=1000)
    for registered, parameters in ((20, 46), (1000, 136)):
        terms = guarantee(registered, dropouts=0.1, corrupt=0.1)
        multiplier = noise_multiplier(target, delta, releases)
        event = release.event_of(clip=0.5, multiplier=multiplier, guarantee=terms, ring=ring, parameters=parameters)
        assert admitted(event, target, delta, releases)
        assert not admitted(event, target, delta, releases + max(1, releases // 200))


def test_twenty_planned_releases_at_epsilon_one_are_admitted_and_cost_one():
    """By concentrated privacy alone they would cost 1.09, and the ledger would stop after 17."""
    terms = guarantee(1000, dropouts=0.1, corrupt=0.1)
    multiplier = noise_multiplier(1.0, DELTA, 20)
    event = release.event_of(clip=1.0, multiplier=multiplier, guarantee=terms, ring=Ring(1000), parameters=46)
    assert (admitted(event, 1.0, DELTA, 20), admitted(event, 1.0, DELTA, 21)) == (True, False)
    spent = epsilon({event: 20}, DELTA, "malicious")
    assert 0.99 < spent.epsilon <= 1.0
    assert spent.rdp == pytest.approx(1.09, abs=0.005)


@pytest.mark.parametrize("fraction", [0, 2, 5, 16])
def test_a_coarse_ring_needs_more_noise_and_then_admits_as_planned(fraction):
    terms, ring = guarantee(20, dropouts=0.1, corrupt=0.1), Ring(20, fraction=fraction)
    about = {"clip": 2.0, "guarantee": terms, "ring": ring, "parameters": 46}
    multiplier = release.calibrated(1.0, DELTA, 20, **about)
    assert admitted(release.event_of(multiplier=multiplier, **about), 1.0, DELTA, 20)
    assert multiplier >= noise_multiplier(1.0, DELTA, 20)
    assert (multiplier < 1.0001 * noise_multiplier(1.0, DELTA, 20)) == (fraction >= 2)


# --- what is not proved, and what would never end ---------------------------------------------------------------------


def test_shares_below_half_a_step_are_refused_as_unproved():
    event = Event("discrete-gaussian", "l2", 1.0, "l2", 0.49 * 3, noise_contributors=9, present=9)
    with pytest.raises(PrivacyError, match=r"nothing is proved of sums of shares below 0\.5"):
        epsilon({event: 1}, DELTA)
    with pytest.raises(PrivacyError, match="nothing is proved"):
        admitted(event, 10.0, DELTA, 1)
    tiny = {"clip": 1.0, "multiplier": 0.49 * 3, "ring": Ring(9, fraction=0)}
    with pytest.raises(SpecError, match="nothing is proved"):
        release.release(np.ones(3), guarantee=Guarantee(9, 9, 0, 9), **tiny)
    half = Event("discrete-gaussian", "l2", 1.0, "l2", 0.5 * 3, noise_contributors=9, present=9)
    alone = Event("discrete-gaussian", "l2", 1.0, "l2", 0.3)  # one discrete Gaussian is proved for every sigma
    assert (unproved(half), unproved(alone)) == ("", "")


def test_the_sum_over_contributors_is_bounded_from_above_and_tight_where_it_is_short():
    for sigma in (0.5, 0.6, 1.0):
        plain = 10 * math.fsum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, 5000))
        assert plain <= max_log_ratio(sigma, 5000) <= plain * 1.01
    assert max_log_ratio(0.7, 3) == pytest.approx(
        10 * (math.exp(-(math.pi**2) * 0.49) + math.exp(-4 / 3 * math.pi**2 * 0.49))
    )


def test_an_admission_with_a_million_million_contributors_ends():
    """Before, it added up a term for each of them."""
    words = (
        "import numpy as np; from foltr.privacy import ledger; from foltr.privacy.events import Event;"
        "event = Event('discrete-gaussian', 'l2', 1.0, 'l2', 1e7, noise_contributors=10**12, present=10**12);"
        "print(ledger.admits(ledger.begin(1, delta=1e-5, budget=1.0), event, np.zeros(1, int)))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in ("True", "False"), done.stderr


@pytest.mark.parametrize("bound", [0.5, 5.0])
@pytest.mark.parametrize("parameters", [1, 46, 1000])
def test_every_parameter_adds_its_log_ratio(bound, parameters):
    """Two shares of sigma s are within 10 e^(-pi^2 s^2) of one discrete draw in a coordinate, .29 for s = .6, and the
    ratios of coordinates add up (Kairouz et al. 2021, theorem 5)."""
    ratio, clean = 10 * math.exp(-(math.pi**2) * 0.6**2), bound / (0.6 * math.sqrt(2))
    event = Event("discrete-gaussian", "l2", bound, "l2", 0.6 * math.sqrt(2), noise_contributors=2, present=2,
                  parameters=parameters)  # fmt: skip
    expected = min(clean**2 + ratio * parameters / 2, (clean + ratio * math.sqrt(parameters)) ** 2) / 2
    assert concentrated(event) == pytest.approx(expected, rel=1e-12)


def test_many_parameters_of_a_ring_that_is_fine_for_one_are_not_accounted_for_as_continuous_noise():
    """With s = 2.25 the ratio of a coordinate is 2e-21 and may be neglected; that of ten is 2e-20 and may not."""
    few, many = (
        Event("discrete-gaussian", "l2", 5.0, "l2", 2.25 * math.sqrt(2), noise_contributors=2, present=2,
              parameters=parameters) for parameters in (1, 10)
    )  # fmt: skip
    assert math.isfinite(as_continuous(few)[0])
    assert as_continuous(few)[1] == pytest.approx(20 * math.exp(-(math.pi**2) * 2.25**2), rel=0.01)
    assert math.isinf(as_continuous(many)[0])
