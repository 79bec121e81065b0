"""Mechanisms with their two worst neighbouring datasets: user-level DP stays below its figure, FPDGD exceeds its own.

Bounds hold with 95 % confidence each; seeds are fixed.
"""

import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from foltr.lab.audit import epsilon as datasets
from foltr.lab.audit.epsilon import lower_bound
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, RandomizedResponse
from foltr.privacy.noise import discrete_gaussian, share_variance
from foltr.rng import stream

TRIALS = 10_000
DELTA = 1e-5


def gaussian_event(multiplier, *, clip=2.0, contributors=3, size=4):
    return Event(
        "gaussian",
        "l2",
        clip,
        "l2",
        multiplier * clip,
        noise_contributors=contributors,
        present=contributors,
        parameters=size,
    )


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 4.0])
def test_gaussian_shares_hide_what_the_closed_form_says(multiplier):
    found = lower_bound(
        datasets.user_level(Gaussian(clip=2.0), gaussian_event(multiplier), trials=TRIALS, seed=1), delta=DELTA
    )
    truth = gaussian_epsilon(1 / multiplier, DELTA)
    assert 0.15 * truth < found <= truth  # rare outcomes, which carry the rest, are not seen in so few trials


def test_more_releases_tell_more():
    event = gaussian_event(4.0)
    once, often = (
        lower_bound(datasets.user_level(Gaussian(clip=2.0), event, trials=4000, seed=2, releases=k), delta=DELTA)
        for k in (1, 16)
    )
    assert once < often <= gaussian_epsilon(math.sqrt(16) / 4, DELTA)


@pytest.mark.parametrize(("contributors", "truth"), [(1, 1.0), (3, 2.0)])
def test_laplace_noise_hides_its_bound_over_its_scale(contributors, truth):
    event = Event(
        "laplace", "l1", 2.0, "l1", 2.0 / truth, noise_contributors=contributors, present=contributors, parameters=5
    )
    found = lower_bound(datasets.user_level(Laplace(clip=2.0), event, trials=TRIALS, seed=3))
    assert 0.75 * truth < found <= truth


def test_noise_of_half_the_scale_would_be_noticed():
    """The audit has teeth: a mechanism that forgot half of its noise exceeds its figure."""
    event = gaussian_event(1.0)
    half = msgspec.structs.replace(event, noise=event.noise / 4)
    found = lower_bound(datasets.user_level(Gaussian(clip=2.0), half, trials=TRIALS, seed=4), delta=DELTA)
    assert found > gaussian_epsilon(1.0, DELTA)


@pytest.mark.parametrize(("nominal", "clip"), [(1.2, "half-delta"), (1.2, "delta"), (2.3, "delta")])
def test_a_sum_of_fpdgd_tells_more_than_its_nominal_epsilon(nominal, clip):
    privacy = Fpdgd(nominal, 3.0, clip)
    found = lower_bound(datasets.fpdgd_sum(privacy, size=46, trials=TRIALS, seed=5), delta=DELTA)
    truth = 2 * privacy.radius * math.sqrt(46) / (3.0 / nominal)  # difference in L1 over the scale
    assert nominal < found <= truth


def test_half_delta_makes_a_round_worth_the_root_of_p_times_its_epsilon():
    privacy = Fpdgd(1.2, 3.0, "half-delta")
    assert 2 * privacy.radius * math.sqrt(46) / 2.5 == pytest.approx(math.sqrt(46) * 1.2)


def test_in_one_dimension_fpdgd_is_what_it_says():
    """With a single parameter and the paper's clip the nominal figure is right, and the audit agrees."""
    found = lower_bound(datasets.fpdgd_sum(Fpdgd(1.2, 3.0, "half-delta"), size=1, trials=TRIALS, seed=6))
    assert 0.8 < found <= 1.2


def test_the_last_digits_of_doubles_would_give_more_away(monkeypatch):
    """Why statistics are rounded here, and why deployed noise is drawn in the integers."""
    monkeypatch.setattr(datasets, "_DIGITS", 1e-17)
    found = lower_bound(datasets.fpdgd_sum(Fpdgd(1.2, 3.0, "half-delta"), size=1, trials=TRIALS, seed=6))
    assert found > 1.2


def test_one_message_of_fpdgd_hides_nothing():
    tried = datasets.fpdgd_message(Fpdgd(1.2, 3.0), size=46, trials=TRIALS, seed=7)
    assert lower_bound(tried, delta=DELTA) > 7  # as much as so many trials can say


@pytest.mark.parametrize(("p", "count"), [(0.5, 11), (0.9, 11), (0.25, 2)])
def test_randomised_response_tells_what_its_odds_say(p, count):
    mechanism = RandomizedResponse(p)

    def report(truth, draws):
        return np.array([mechanism.protect(truth, count, None, draws.skip(2 * trial)) for trial in range(TRIALS)])

    tried = datasets.randomised_response(report, seed=8)
    truth = abs(math.log(p * (count - 1) / (1 - p)))
    assert 0.75 * truth < lower_bound(tried) <= truth


def seeded_bits(seed):
    """Bits for the exact sampler, the same in every run of the tests."""
    numbers = iter(stream(seed, purpose="noise").uniform(4_000_000).tolist())
    return lambda count: int(next(numbers) * 2**count)


@pytest.mark.parametrize("contributors", [1, 3])
def test_noise_in_the_integers_stays_below_the_ledger(contributors):
    bits, variance = seeded_bits(9), Fraction(40**2)

    def total(size):
        return sum(discrete_gaussian(share_variance(variance, contributors), size, bits) for _ in range(contributors))

    event = Event("discrete-gaussian", "l2", 40.0, "l2", 40.0, noise_contributors=contributors, present=contributors)
    trials = datasets.two_datasets(
        lambda update, _: update + np.asarray(total(TRIALS), dtype=np.float64)[:, None], np.array([40.0]), np.zeros(1),
        datasets.along,
    )  # fmt: skip
    found = lower_bound(trials, delta=DELTA)
    assert 1 < found <= epsilon({event: 1}, DELTA).epsilon
