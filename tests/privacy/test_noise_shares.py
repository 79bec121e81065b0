"""Noise of one client: the numbers of the compiled cohort, from a stream or from the operating system."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from foltr._kernels.noise import add_gamma_shares
from foltr.privacy.noise import SystemStream, gamma_share, gaussian_share
from foltr.rng import stream


@pytest.mark.parametrize("contributors", [1, 2, 10, 1000])
@pytest.mark.parametrize("size", [1, 46, 5000])
def test_a_share_is_that_of_the_compiled_cohort(contributors, size):
    rows, clients = np.zeros((3, size)), np.array([0, 7, contributors])
    add_gamma_shares(rows, clients, 2.5, 1.0 / contributors, 61, 4)
    shares = [
        gamma_share(
            stream(61, round=4, client=int(c), purpose="noise"), size, scale=2.5, noise_contributors=contributors
        )
        for c in clients
    ]
    assert np.array(shares) == pytest.approx(rows, rel=1e-12, abs=1e-12)


def test_a_gaussian_share_is_a_part_of_the_streams_normal_numbers():
    share = gaussian_share(stream(62, client=3, purpose="noise"), 7, stddev=6.0, noise_contributors=9)
    assert share == pytest.approx(2.0 * stream(62, client=3, purpose="noise").normal(7))


def test_nothing_is_drawn_for_nobody():
    for share in (gamma_share(SystemStream(), 0, scale=1.0, noise_contributors=5),
                  gaussian_share(SystemStream(), 0, stddev=1.0, noise_contributors=5)):  # fmt: skip
        assert share.shape == (0,)


# Numbers of the operating system differ at every run: each test below fails once in a million runs.


def test_the_systems_uniform_numbers_are_uniform():
    numbers = SystemStream().uniform(20_000)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert kstest(numbers, "uniform").pvalue > 1e-6


def test_the_systems_normal_numbers_are_normal():
    assert kstest(SystemStream().normal(20_001), norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize("contributors", [1, 40])
def test_shares_of_the_system_sum_to_laplace_noise(contributors):
    total = sum(
        gamma_share(SystemStream(), 5000, scale=2.5, noise_contributors=contributors) for _ in range(contributors)
    )
    assert kstest(total, laplace(scale=2.5).cdf).pvalue > 1e-6


def test_shares_of_the_system_sum_to_gaussian_noise():
    total = sum(gaussian_share(SystemStream(), 5000, stddev=3.0, noise_contributors=25) for _ in range(25))
    assert kstest(total, norm(scale=3.0).cdf).pvalue > 1e-6


def test_the_system_never_repeats_itself():
    draws = SystemStream()
    assert not np.array_equal(draws.uniform_at(np.arange(4)), draws.uniform_at(np.arange(4)))  # equal once in 2^212
    assert draws.uniform_at(np.zeros((3, 5))).shape == (3, 5)
    assert math.isfinite(draws.skip(10).normal(1)[0])


@pytest.mark.parametrize("module", ["noise", "calibration", "events"])
def test_drawing_and_calibrating_need_numpy_alone(module):
    code = (
        f"import sys, foltr.privacy.{module}; "
        "print([m for m in ('numba', 'llvmlite', 'scipy', 'dp_accounting', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
