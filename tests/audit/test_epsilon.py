"""A lower bound on epsilon: it stays below the truth, comes near it, and sees nothing where there is nothing."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from foltr.errors import SpecError
from foltr.lab.audit.epsilon import Trials, clopper_pearson_lower, clopper_pearson_upper, lower_bound
from foltr.rng import stream


def laplace(seed, shift, trials=10_000):
    uniforms = stream(seed, purpose="choice").uniform(2 * trials)
    return shift - np.log(uniforms[:trials]) + np.log(uniforms[trials:])


def test_equal_worlds_have_epsilon_zero():
    assert lower_bound(Trials(laplace(1, 0), laplace(2, 0))) < 0.1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_laplace_noise_is_found_to_have_nearly_its_epsilon(epsilon):
    found = lower_bound(Trials(laplace(3, epsilon), laplace(4, 0)))
    assert 0.75 * epsilon < found <= epsilon


def test_the_bound_is_exceeded_as_rarely_as_it_claims():
    """Small trials of two coins whose epsilon is known, hundreds of times: at most 5 % above the truth.

    A share beyond 5 % by more than chance explains would be an error: false alarm below 1 in 1,000.
    """
    truth, often = math.log(0.6 / 0.3), 400
    coins = stream(5, purpose="choice").uniform(often * 400).reshape(often, 2, 200)
    above = sum(lower_bound(Trials((a < 0.6).astype(int), (b < 0.3).astype(int))) > truth for a, b in coins)
    assert above <= binom.isf(1e-3, often, 0.05)


def test_delta_explains_rare_outcomes():
    """An outcome that only one dataset has, with chance .01: infinite epsilon at delta 0, none at delta .05."""
    betrayed = (stream(6, purpose="choice").uniform(10_000) < 0.01).astype(int)
    nothing = np.zeros(10_000)
    assert lower_bound(Trials(betrayed, nothing)) > 2
    assert lower_bound(Trials(betrayed, nothing), delta=0.05) < 0.1


def test_either_world_may_be_the_one_that_betrays():
    # the second dataset is seen below every threshold that the first ever falls below
    low, high = laplace(7, -3), laplace(8, 0)
    assert lower_bound(Trials(high, low)) > 2
    assert lower_bound(Trials(-low, -high)) > 2


def test_certainty_is_limited_by_the_number_of_trials():
    found = lower_bound(Trials(np.ones(10_000), np.zeros(10_000)))
    # 5,000 of 5,000 and 0 of 5,000 at .025 each: chances of .025^(1/5000) and 1 - .025^(1/5000)
    assert found == pytest.approx(math.log(0.025 ** (1 / 5000) / (1 - 0.025 ** (1 / 5000))))
    assert found == pytest.approx(math.log(10_000 / 7.4), abs=0.02)


def test_intervals_are_those_of_clopper_and_pearson():
    low, high = (
        float(clopper_pearson_lower(np.array(7), 20, 0.025)),
        float(clopper_pearson_upper(np.array(7), 20, 0.025)),
    )
    assert binom.sf(6, 20, low) == pytest.approx(0.025)
    assert binom.cdf(7, 20, high) == pytest.approx(0.025)
    assert clopper_pearson_lower(np.array(0), 20, 0.025) == 0
    assert clopper_pearson_upper(np.array(20), 20, 0.025) == 1


def test_too_few_trials_are_refused():
    with pytest.raises(SpecError, match="at least 4"):
        lower_bound(Trials(np.ones(3), np.ones(10)))
