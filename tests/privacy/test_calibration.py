"""Gaussian noise in closed form, against integration, against scipy and against the accountant."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_by_hand import gaussian
from scipy import special
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from foltr.errors import SpecError
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_delta, gaussian_epsilon, laplace_scale, log_ndtr, noise_multiplier


@pytest.mark.parametrize(("mu", "target"), [(0.1, 0.2), (0.5, 1.0), (1.0, 0.0), (2.0, 3.0)])
def test_delta_is_the_mass_that_exceeds_epsilon(mu, target):
    """The integral of max(0, density - e^epsilon * density of the neighbour)."""

    def excess(x):
        return max(0.0, norm.pdf(x, mu) - math.exp(target) * norm.pdf(x))

    threshold = target / mu + mu / 2  # where the two are equal
    assert gaussian_delta(mu, target) == pytest.approx(quad(excess, threshold, threshold + 40)[0], rel=1e-6, abs=1e-12)


def test_the_normal_distribution_is_that_of_scipy_far_into_its_tail():
    points = np.concatenate([-np.geomspace(1e-6, 1e6, 2000), [0.0], np.geomspace(1e-6, 37, 2000)])
    assert [log_ndtr(x) for x in points] == pytest.approx(special.log_ndtr(points), rel=1e-10)


def delta_by_scipy(mu, epsilon):
    first = special.log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("target", [0.05, 1.0, 4.0, 100.0])
def test_roots_are_those_of_scipy(target, delta):
    mu = math.exp(brentq(lambda log: delta_by_scipy(math.exp(log), target) - delta, -12.0, 7.0, xtol=1e-13))
    assert noise_multiplier(target, delta, 4) == pytest.approx(2 / mu * 1.001, rel=1e-9)  # a thousandth is margin
    assert gaussian_epsilon(mu, delta) == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("target", [1e9, 1e15, 1e300])
def test_hardly_any_noise_is_needed_for_a_large_epsilon(target):
    # mu^2 / 2 dominates: everything else grows with mu only
    assert noise_multiplier(target, 1e-5, 1) == pytest.approx(1 / math.sqrt(2 * target), rel=2e-3)


@pytest.mark.parametrize("target", [1e-12, 1e-8])
def test_delta_alone_allows_some_difference(target):
    # at epsilon 0 delta is 2 Phi(mu / 2) - 1, near mu phi(0)
    assert noise_multiplier(target, 1e-5, 1) == pytest.approx(norm.pdf(0) / 1e-5, rel=2e-3)


@given(st.floats(1e-3, 20), st.sampled_from([1e-9, 1e-5, 1e-2]))
def test_epsilon_and_delta_are_each_others_inverse(mu, delta):
    target = gaussian_epsilon(mu, delta)
    if target > 0:
        assert gaussian_delta(mu, target) == pytest.approx(delta, rel=1e-6)
    else:
        assert gaussian_delta(mu, 0.0) <= delta


@given(st.floats(1e-3, 20), st.floats(1.01, 3))
def test_less_noise_costs_more(mu, factor):
    assert gaussian_epsilon(mu * factor, 1e-5) >= gaussian_epsilon(mu, 1e-5)


@pytest.mark.parametrize(("target", "releases"), [(0.5, 1), (1.0, 20), (4.0, 10), (4.0, 200)])
def test_the_noise_that_is_asked_for_meets_the_target_and_hardly_more(target, releases):
    needed = noise_multiplier(target, 1e-5, releases)
    assert epsilon({gaussian(needed): releases}, 1e-5).epsilon <= target
    assert epsilon({gaussian(needed * 0.995): releases}, 1e-5).epsilon > target


@pytest.mark.parametrize(
    ("target", "delta", "releases"),
    [(0.0, 1e-5, 1), (math.inf, 1e-5, 1), (math.nan, 1e-5, 1), (1.0, 0.0, 1), (1.0, 1.0, 1), (1.0, 1e-5, 0)],
)
def test_targetes_that_cannot_be_are_refused(target, delta, releases):
    with pytest.raises(SpecError, match="epsilon must be positive"):
        noise_multiplier(target, delta, releases)


def test_epsilons_of_laplace_releases_add_up():
    assert laplace_scale(2.0, 10, 3.0) == pytest.approx(3.0 / (2.0 / 10))
