"""What is done to an update before it leaves: noise in shares, clipping, randomised response."""

import math

import numpy as np
import pytest
from by_hand import far, fit, ragged, updates_of
from scipy.stats import gamma, kstest, kstwo, laplace

from foltr._kernels.foltr_es import outcome_number
from foltr._kernels.noise import add_gamma_shares, gamma_at
from foltr.clicks import Users, click_model
from foltr.federation.round import Release
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.foltr_es import outcome_of, outcomes
from foltr.learners.pdgd import Pdgd
from foltr.privacy.events import pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, RandomizedResponse, ReleaseContext
from foltr.rankers import Linear
from foltr.rng import stream


def shares(contributors, coordinates, *, scale=2.5, clients=None, round=1):
    """[clients, coordinates] noise shares of the kernel; of every contributor, if nobody is named."""
    clients = np.arange(contributors) if clients is None else clients
    noise = np.zeros((len(clients), coordinates))
    add_gamma_shares(noise, clients, scale, 1 / contributors, 41, round)
    return noise


@pytest.mark.parametrize("contributors", [1, 3, 10, 1000])
def test_shares_of_all_contributors_sum_to_laplace_noise(contributors):
    total = shares(contributors, 3000).sum(axis=0)
    assert kstest(total, laplace(scale=2.5).cdf).pvalue > 1e-3  # false alarm 1 in 1,000 for each of the four


def test_shares_of_half_the_contributors_are_not_yet_laplace_noise():
    total = shares(10, 3000)[:5].sum(axis=0)
    assert kstest(total, laplace(scale=2.5).cdf).pvalue < 1e-6


@pytest.mark.parametrize("shape", [1.0, 0.5, 0.1, 0.001])
def test_a_gamma_number_has_its_distribution(shape):
    """Compared from 2^-60 upwards: what is below 2^-80 or so is zero by intent, and below 2^-60 nobody can see it.

    The largest distance over a part of the axis is at most that over all of it: the Kolmogorov-Smirnov bound holds.
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
    distance = max((upto - expected).max(), (expected - below).max())
    assert distance < kstwo.isf(1e-3, many)  # false alarm 1 in 1,000 for each of the four


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
    add_gamma_shares(updates, np.arange(3), 5.0, 1 / 3, 41, 1)
    assert updates - 10 == pytest.approx(2 * shares(3, 4), abs=1e-14)


def test_projections():
    parameters = np.array([3.0, 4.0])  # of length 5
    for mechanism in (NoPrivacy(), RandomizedResponse(), Gaussian(), Laplace()):
        assert mechanism.project(parameters).tolist() == [3.0, 4.0]
    assert Fpdgd(1.2, 2.5).project(parameters) == pytest.approx([1.5, 2.0])  # the authors' program: Delta
    assert Fpdgd(1.2, 2.5, "half-delta").project(parameters) == pytest.approx(
        [0.75, 1.0]
    )  # the paper's text: Delta / 2
    assert Fpdgd(1.2, 6.0).project(parameters).tolist() == [3.0, 4.0]  # within the ball nothing changes


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("clip", ["delta", "half-delta"])
def test_parameters_leave_a_client_within_the_radius(make_engine, clip):
    users = (click_model(Users("informational"), grades=3),)
    privacy = Fpdgd(1.2, 0.02, clip)
    task = Task(ragged([12, 30], width=4, grades=3), 3, users, Linear(), Pdgd(), Federated(5, 4, 1), privacy, seed=1)
    # noise is a matter of its own: an event for an endless crowd leaves next to none of it to each
    event = privacy.event(ReleaseContext(10**9, 1, 4))
    updates, _ = updates_of(make_engine(task), np.zeros(4), np.arange(5), np.full(5, 4), release=Release(None, event))
    norms = np.linalg.norm(updates.values, axis=1)
    assert (norms <= privacy.radius * (1 + 1e-12)).all()
    assert norms.max() == pytest.approx(privacy.radius)  # the bound was at work


def test_the_noise_of_a_round_has_the_scale_of_the_paper():
    """With one interaction on one document nothing is learnt: what the server gets is the noise over n."""
    users = (click_model(Users("perfect", k=1), grades=3),)
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


@pytest.mark.parametrize(("objective", "k", "count"), [("max_rr", 10, 11), ("max_rr", 4, 5), ("dcg", 3, 8)])
@pytest.mark.parametrize("p", [1.0, 0.9, 0.3])
def test_randomised_outcomes_come_as_often_as_stated(objective, k, count, p):
    assert len(outcomes(objective, k)) == count
    draws = stream(43, purpose="privatise")
    for truth in (0, 2, count - 1):
        reported = [RandomizedResponse(p).protect(truth, count, None, draws.skip(2 * i)) for i in range(10_000)]
        stated = {outcome: p if outcome == truth else (1 - p) / (count - 1) for outcome in range(count)}
        if p == 1:
            assert set(reported) == {truth}
        else:
            assert fit(reported, stated) > 1e-3  # false alarm 1 in 1,000 for each of the eighteen


def test_epsilon_of_an_answer_is_the_largest_log_ratio_of_two_truths():
    def epsilon(p):
        return pure_epsilon(RandomizedResponse(p).event(ReleaseContext(1, 1, 1, outcomes=11)))

    # an outcome is reported with p by whoever saw it, with (1 - p) / (m - 1) by whoever saw another
    assert epsilon(0.9) == pytest.approx(math.log(0.9 * 10 / 0.1))
    assert epsilon(0.5) == pytest.approx(math.log(10))
    assert epsilon(1 / 11) == pytest.approx(0, abs=1e-8)  # reported at random
    assert epsilon(1.0) == math.inf
    # the truth less often than by chance tells what it was not: a yes-or-no answer of the same epsilon stands for it
    assert epsilon(0.01) == pytest.approx(math.log(0.99 / 10 / 0.01))
