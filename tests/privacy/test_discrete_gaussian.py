"""Exact Gaussian noise on the integers."""

import ast
import hashlib
import inspect
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from foltr.errors import SpecError
from foltr.privacy import noise

VARIANCES = [Fraction(1, 3), Fraction(4), Fraction(25, 2), Fraction(10**4, 7)]


def counted(name):
    """Bits of a hashed counter: the same at every run."""
    calls = iter(range(10**9))

    def bits(size):
        digest = hashlib.shake_256(f"{name} {next(calls)}".encode()).digest(size // 8 + 1)
        return int.from_bytes(digest, "big") >> (8 * (size // 8 + 1) - size)

    return bits


def probabilities(variance, reach):
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(variance)))
    return weights / weights.sum()


class Exhausted(Exception):
    pass


def odds_of(draw, depth):
    """Mass of each answer over all strings of bits, and the mass that `depth` bits leave open."""
    found, left = Counter(), Fraction(0)
    waiting = [()]
    while waiting:
        given_bits = waiting.pop()
        try:
            found[draw(reader(given_bits))] += Fraction(1, 2 ** len(given_bits))
        except Exhausted:
            if len(given_bits) == depth:
                left += Fraction(1, 2**depth)
            else:
                waiting += [(*given_bits, 0), (*given_bits, 1)]
    return found, left


def reader(given_bits):
    rest = list(given_bits)

    def bits(size):
        if size > len(rest):
            raise Exhausted
        return int("".join(str(rest.pop(0)) for _ in range(size)), 2)

    return bits


@pytest.mark.parametrize(("above", "below"), [(0, 1), (1, 1), (1, 2), (2, 3), (3, 2), (2, 1)])
def test_a_coin_falls_with_the_odds_of_the_exponential(above, below):
    """By enumeration of all strings of 12 bits: what is decided bounds the odds from both sides."""
    found, left = odds_of(lambda bits: noise._exp_coin(above, below, bits), 12)
    assert found[True] <= math.exp(-above / below) + 1e-12
    assert math.exp(-above / below) <= found[True] + left + 1e-12
    assert left < 0.2


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_integers_below_a_limit_are_equally_likely(limit):
    found, _ = odds_of(lambda bits: noise._below(limit, bits), 9)
    assert set(found) == set(range(limit))
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_draws_follow_the_discrete_gaussian(variance):  # false alarm 1 in 1,000, bits fixed
    draws = noise.discrete_gaussian(variance, 4000, counted("chi"))
    reach = math.ceil(12 * math.sqrt(variance)) + 3
    expected = 4000 * probabilities(variance, reach)
    observed = np.bincount(draws + reach, minlength=2 * reach + 1)
    bins = np.minimum(np.cumsum(expected) // 20, 4000 // 20 - 2).astype(int)  # some 20 expected in each
    counts, sizes = np.bincount(bins, observed), np.bincount(bins, expected)
    full = sizes > 0
    assert chisquare(counts[full], sizes[full] * counts.sum() / sizes.sum()).pvalue > 1e-3


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_draws_have_mean_zero_and_their_variance(variance):  # each false alarm 1 in 10,000, bits fixed
    draws = noise.discrete_gaussian(variance, 4000, counted("moments"))
    reach = math.ceil(12 * math.sqrt(variance)) + 3
    squares = np.arange(-reach, reach + 1.0) ** 2
    second, fourth = (probabilities(variance, reach) @ squares**power for power in (1, 2))
    assert abs(draws.mean()) < 3.9 * math.sqrt(second / 4000)
    assert abs((draws**2).mean() - second) < 3.9 * math.sqrt((fourth - second**2) / 4000)
    assert abs((draws > 0).sum() - (draws < 0).sum()) < 3.9 * math.sqrt((draws != 0).sum())


def test_huge_variances_are_drawn_exactly_too():
    draws = noise.discrete_gaussian(Fraction(2**60), 400, counted("huge"))
    assert draws.dtype == np.int64
    assert 0.8 < (draws.astype(float) ** 2).mean() / 2**60 < 1.25  # 3 standard deviations of the mean square


def test_the_same_bits_give_the_same_noise_and_the_system_gives_other():
    assert (
        noise.discrete_gaussian(Fraction(100), 50, counted("a")).tolist()
        == noise.discrete_gaussian(Fraction(100), 50, counted("a")).tolist()
    )
    assert (
        noise.discrete_gaussian(Fraction(100), 50).tolist() != noise.discrete_gaussian(Fraction(100), 50).tolist()
    )  # equal once in 10^70


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1)])
def test_a_variance_must_be_positive(variance):
    with pytest.raises(SpecError, match="above 0"):
        noise.discrete_gaussian(variance, 1)


def test_drawing_uses_no_floating_point():
    drawing = [noise.discrete_gaussian, noise.share_variance, noise._gaussian, noise._laplace, noise._exp_coin]
    for function in [*drawing, noise._small_exp_coin, noise._below, noise.noise_in_ring]:
        for node in ast.walk(ast.parse(inspect.getsource(function))):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
            assert not (isinstance(node, ast.Name) and node.id == "float")
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                assert function is noise.share_variance  # a fraction by an integer is a fraction


# shares


@given(variance=st.fractions(Fraction(1, 100), 10**12), contributors=st.integers(1, 10**5))
def test_shares_add_up_to_the_wanted_variance_and_hardly_more(variance, contributors):
    share = noise.share_variance(variance, contributors)
    assert share * contributors >= variance
    assert share - variance / contributors < Fraction(1, 2**20)


def test_somebody_must_contribute_noise():
    with pytest.raises(SpecError, match="at least one"):
        noise.share_variance(Fraction(1), 0)


@pytest.mark.parametrize("dtype", ["<u4", "<u8"])
def test_noise_wraps_around_like_the_ring(dtype):
    encoded = np.array([0, np.iinfo(dtype).max, 5] * 20, dtype)
    noisy = noise.noise_in_ring(encoded, variance=Fraction(900), noise_contributors=9, bits=counted("ring"))
    draws = noise.discrete_gaussian(Fraction(100), 60, counted("ring"))
    assert noisy.dtype == encoded.dtype
    assert (noisy - encoded).view(dtype.replace("u", "i")).tolist() == draws.tolist()
    assert (draws < 0).any()


def test_one_contributor_has_no_distance_and_two_have_the_first_term():
    assert noise.max_log_ratio(1.0, 1) == 0
    assert noise.max_log_ratio(0.8, 2) == pytest.approx(10 * math.exp(-(math.pi**2) * 0.64))
    assert noise.max_log_ratio(0.8, 3) == pytest.approx(
        10 * (math.exp(-(math.pi**2) * 0.64) + math.exp(-4 / 3 * math.pi**2 * 0.64))
    )


@pytest.mark.parametrize("sigma", [0.6, 0.8, 1.0])
@pytest.mark.parametrize("contributors", [2, 3, 5])
def test_the_bound_is_above_the_true_distance(sigma, contributors):
    """The sum's exact distribution against one discrete Gaussian of the summed variance, out to six deviations."""
    total = one = probabilities(sigma**2, 40)
    for _ in range(contributors - 1):
        total = np.convolve(total, one)
    reach = len(total) // 2
    whole = probabilities(contributors * sigma**2, reach)
    near = np.abs(np.arange(-reach, reach + 1)) < 6 * sigma * math.sqrt(contributors)
    assert np.abs(np.log(total[near] / whole[near])).max() <= noise.max_log_ratio(sigma, contributors)
