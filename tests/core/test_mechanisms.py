"""What is done to an update before it leaves: noise in shares, clipping, randomised response."""

import math

import numpy as np
import pytest
from by_hand import far, fit, ragged, trained
from scipy.stats import gamma, kstest, kstwo, laplace

from foltr._kernels.foltr_es import outcome_number
from foltr._kernels.noise import add_gamma_shares, gamma_at
from foltr.clicks import Users, behaviour
from foltr.federation.round import Federated, Task, run
from foltr.lab.simulation import compiled
from foltr.lab.simulation import plain as loop
from foltr.learners.foltr_es import nominal_epsilon, outcome_of, outcomes, randomised
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, NoPrivacy, RandomizedResponse, clip_radius
from foltr.rankers import Linear
from foltr.rng import stream


def shares(holders, coordinates, *, scale=2.5, clients=None, round=1):
    noise = np.zeros((holders if clients is None else len(clients), coordinates))
    add_gamma_shares(
        noise,
        np.arange(holders) if clients is None else clients,
        scale=scale,
        noise_contributors=holders,
        seed=41,
        round=round,
    )
    return noise


@pytest.mark.parametrize("holders", [1, 3, 10, 1000])
def test_shares_of_all_holders_sum_to_laplace_noise(holders):
    total = shares(holders, 3000).sum(axis=0)
    assert kstest(total, laplace(scale=2.5).cdf).pvalue > 1e-3  # false alarm 1 in 1,000 for each of the four


def test_shares_of_half_the_holders_are_not_yet_laplace_noise():
    total = shares(10, 3000)[:5].sum(axis=0)
    assert kstest(total, laplace(scale=2.5).cdf).pvalue < 1e-6


@pytest.mark.parametrize("shape", [1.0, 0.5, 0.1, 0.001])
def test_a_gamma_number_has_its_distribution(shape):
    """Compared from 2^-60 upwards: what is below 2^-80 or so is zero by intent, and below 2^-60 nobody can see it.

    The largest gap over a part of the axis is at most the one over all of it, so the Kolmogorov-Smirnov bound holds.
    """
    draws, many = stream(42, purpose="noise"), 40_000
    nothing = math.exp(-80 * math.log(2) * shape)
    numbers = np.array(
        [gamma_at(np.uint64(draws.start), np.uint64(draws.stride), 64 * i, shape, nothing) for i in range(many)]
    )
    assert (numbers >= 0).all()
    points = np.sort(np.concatenate([numbers[numbers > 2.0**-60], np.geomspace(2.0**-60, 20, 200)]))
    expected = gamma(shape).cdf(points)
    upto, below = (np.searchsorted(np.sort(numbers), points, side=side) / many for side in ("right", "left"))
    gap = max((upto - expected).max(), (expected - below).max())
    assert gap < kstwo.isf(1e-3, many)  # false alarm 1 in 1,000 for each of the four


def test_shares_below_2_to_the_minus_80_are_zero():
    # a share is cut where U^(1/shape) < 2^-80, so with probability 2^(-80 shape); both of a pair: its square
    share = shares(1000, 50)
    cut = 2.0 ** (-80 / 1000)
    zero = (share == 0).mean()
    assert abs(zero - cut**2) < far(1e-3) * math.sqrt(cut**2 * (1 - cut**2) / share.size)  # false alarm 1 in 1,000
    assert np.abs(share[share != 0]).min() < 2.5 * 2.0**-60  # nothing is cut much higher


def test_a_share_belongs_to_its_client_and_round():
    all_of_them = shares(7, 5)
    assert np.array_equal(shares(7, 5, clients=np.array([4, 2])), all_of_them[[4, 2]])
    assert not np.array_equal(shares(7, 5, round=2), all_of_them)
    assert len(np.unique(all_of_them)) == all_of_them.size  # no two alike


def test_noise_is_added_to_what_is_there_and_grows_with_the_scale():
    updates = np.full((3, 4), 10.0)
    add_gamma_shares(updates, np.arange(3), scale=5.0, noise_contributors=3, seed=41, round=1)
    assert updates - 10 == pytest.approx(2 * shares(3, 4), abs=1e-14)


def test_clip_radii():
    assert clip_radius(NoPrivacy()) == 0
    assert clip_radius(RandomizedResponse()) == 0
    assert clip_radius(Fpdgd(1.2, 3.0)) == 3.0  # the authors' program
    assert clip_radius(Fpdgd(1.2, 3.0, "half-delta")) == 1.5  # the paper's text


@pytest.mark.parametrize("make_engine", [loop.engine, compiled.engine], ids=["loop", "compiled"])
@pytest.mark.parametrize("clip", ["delta", "half-delta"])
def test_parameters_leave_a_client_within_the_radius(make_engine, clip):
    users = (behaviour(Users("informational"), grades=3),)
    privacy = Fpdgd(1.2, 0.02, clip)
    task = Task(ragged([12, 30], width=4, grades=3), 3, users, Linear(), Pdgd(), Federated(5, 4, 1), privacy, seed=1)
    updates, _ = trained(make_engine(task), np.zeros(4), np.arange(5), np.full(5, 4), round=1)
    norms = np.linalg.norm(updates, axis=1)
    assert (norms <= privacy.radius * (1 + 1e-12)).all()
    assert norms.max() == pytest.approx(privacy.radius)  # the bound was at work


def test_the_noise_of_a_round_has_the_scale_of_the_paper():
    """With one interaction on one document nothing is learnt: what the server gets is the noise over n."""
    users = (behaviour(Users("perfect", k=1), grades=3),)
    privacy = Fpdgd(epsilon=0.5, sensitivity=3.0)
    data = ragged([1], width=2000, grades=3)
    task = Task(data, 3, users, Linear(), Pdgd(), Federated(20, 1, 1), privacy, seed=6)
    (only,) = run(task, compiled.engine(task))
    # Laplace(Delta / epsilon) over the sum of 20 clients, averaged; false alarm 1 in 1,000
    assert kstest(20 * only.parameters, laplace(scale=3.0 / 0.5).cdf).pvalue > 1e-3


def test_possible_outcomes_of_max_rr():
    tenths = [0, 1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6, 1 / 7, 1 / 8, 1 / 9, 1 / 10]
    assert outcomes("max_rr", 10).tolist() == tenths
    assert outcomes("max_rr", 20).tolist() == tenths  # it looks no further than ten
    assert outcomes("max_rr", 3).tolist() == tenths[:4]


def test_possible_outcomes_of_dcg():
    # clicks at ranks 1 and 3 are the binary number 101: 1 / log2(2) + 1 / log2(4)
    possible = outcomes("dcg", 10)
    assert len(possible) == 2**10
    assert possible[0] == 0
    assert possible[0b101] == pytest.approx(1 / 1 + 1 / 2)
    assert possible[0b110] == pytest.approx(1 / math.log2(3) + 1 / 2)
    assert possible[-1] == pytest.approx(sum(1 / math.log2(rank + 1) for rank in range(1, 11)))


@pytest.mark.parametrize(
    ("clicks", "max_rr", "dcg"),
    [
        ([], 0.0, 0.0),
        ([1], 1.0, 1.0),
        ([3, 7], 1 / 3, 1 / 2 + 1 / 3),  # log2(4) = 2, log2(8) = 3
        ([10], 1 / 10, 1 / math.log2(11)),
        ([11], 0.0, 0.0),  # below the tenth rank nobody looks
    ],
)
def test_clicks_have_the_value_of_their_outcome(clicks, max_rr, dcg):
    hits = np.isin(np.arange(1, 13), clicks)
    for objective, value in (("max_rr", max_rr), ("dcg", dcg)):
        number = outcome_of(hits, objective)
        assert outcomes(objective, 12)[number] == pytest.approx(value)
        assert outcome_number(hits, 12, objective == "dcg") == number


@pytest.mark.parametrize(("objective", "shown", "count"), [("max_rr", 10, 11), ("max_rr", 4, 5), ("dcg", 3, 8)])
@pytest.mark.parametrize("p", [1.0, 0.9, 0.3])
def test_randomised_outcomes_come_as_often_as_stated(objective, shown, count, p):
    assert len(outcomes(objective, shown)) == count
    uniforms = stream(43, purpose="privatise").uniform(20_000).reshape(-1, 2)
    for truth in (0, 2, count - 1):
        told = [randomised(truth, count, p, first, second) for first, second in uniforms]
        stated = {outcome: p if outcome == truth else (1 - p) / (count - 1) for outcome in range(count)}
        if p == 1:
            assert set(told) == {truth}
        else:
            assert fit(told, stated) > 1e-3  # false alarm 1 in 1,000 for each of the eighteen


def test_nominal_epsilon_is_the_largest_log_ratio_of_two_truths():
    # an outcome is told with p by whoever saw it, with (1 - p) / (m - 1) by whoever saw another
    assert nominal_epsilon(0.9, 11) == pytest.approx(math.log(0.9 * 10 / 0.1))
    assert nominal_epsilon(0.5, 11) == pytest.approx(math.log(10))
    assert nominal_epsilon(1 / 11, 11) == pytest.approx(0, abs=1e-12)  # told at random
    assert nominal_epsilon(1.0, 11) == math.inf
