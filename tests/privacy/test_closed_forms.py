"""Gaussian noise in closed form, against integration and against the accountant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_by_hand import gaussian
from scipy.integrate import quad
from scipy.stats import norm

from foltr.errors import SpecError
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_delta, gaussian_epsilon, laplace_scale, noise_multiplier


@pytest.mark.parametrize(("mu", "wish"), [(0.1, 0.2), (0.5, 1.0), (1.0, 0.0), (2.0, 3.0)])
def test_delta_is_the_mass_that_exceeds_epsilon(mu, wish):
    """The integral of max(0, density - e^epsilon * density of the neighbour)."""

    def excess(x):
        return max(0.0, norm.pdf(x, mu) - math.exp(wish) * norm.pdf(x))

    threshold = wish / mu + mu / 2  # where the two are equal
    assert gaussian_delta(mu, wish) == pytest.approx(quad(excess, threshold, threshold + 40)[0], rel=1e-6, abs=1e-12)


@given(st.floats(1e-3, 20), st.sampled_from([1e-9, 1e-5, 1e-2]))
def test_epsilon_and_delta_are_each_others_inverse(mu, delta):
    wish = gaussian_epsilon(mu, delta)
    if wish > 0:
        assert gaussian_delta(mu, wish) == pytest.approx(delta, rel=1e-6)
    else:
        assert gaussian_delta(mu, 0.0) <= delta


@given(st.floats(1e-3, 20), st.floats(1.01, 3))
def test_less_noise_costs_more(mu, factor):
    assert gaussian_epsilon(mu * factor, 1e-5) >= gaussian_epsilon(mu, 1e-5)


@pytest.mark.parametrize(("wish", "releases"), [(0.5, 1), (1.0, 20), (4.0, 10), (4.0, 200)])
def test_the_noise_that_is_asked_for_meets_the_wish_and_hardly_more(wish, releases):
    needed = noise_multiplier(wish, 1e-5, releases)
    assert epsilon({gaussian(needed): releases}, 1e-5).epsilon <= wish
    assert epsilon({gaussian(needed * 0.995): releases}, 1e-5).epsilon > wish


@pytest.mark.parametrize(("wish", "delta", "releases"), [(0.0, 1e-5, 1), (1.0, 0.0, 1), (1.0, 1.0, 1), (1.0, 1e-5, 0)])
def test_wishes_that_cannot_be_are_refused(wish, delta, releases):
    with pytest.raises(SpecError, match="epsilon must be positive"):
        noise_multiplier(wish, delta, releases)


def test_epsilons_of_laplace_releases_add_up():
    assert laplace_scale(2.0, 10, 3.0) == pytest.approx(3.0 / (2.0 / 10))
