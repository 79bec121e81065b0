"""User-level DP: what leaves is bounded, the noise is as large as stated, the clip follows its quantile."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from foltr.clipping import clipped_to
from foltr.errors import SpecError
from foltr.federation.round import Release
from foltr.lab.simulation.protection import protect_rows
from foltr.privacy.calibration import next_clip, noise_multiplier, split_multiplier
from foltr.privacy.events import EVERYBODY, FOLLOWERS, RECIPIENTS
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, ReleaseContext, noise_contributors
from foltr.privacy.noise import gaussian_share
from foltr.rng import stream
from foltr.secagg.guarantee import guarantee

numbers = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
matrices = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6)


def norm_of(rows, norm):
    return np.abs(rows).sum(axis=1) if norm == "l1" else np.sqrt(np.square(rows).sum(axis=1))


@given(matrices, st.floats(1e-3, 100), st.sampled_from(["l1", "l2"]))
def test_whatever_a_client_trained_leaves_within_the_clip(rows, clip, norm):
    deltas, _ = clipped_to(np.array(rows), clip=clip, norm=norm)
    assert (norm_of(deltas, norm) <= clip * (1 + 1e-12)).all()


@given(matrices, st.floats(1e-3, 100), st.sampled_from(["l1", "l2"]))
def test_a_cohort_is_clipped_as_each_client_clips(rows, clip, norm):
    deltas = np.array(rows)
    one_by_one = [clipped_to(row, clip=clip, norm=norm) for row in deltas.copy()]
    deltas, norms = clipped_to(deltas, clip=clip, norm=norm)
    assert deltas == pytest.approx(np.array([clipped for clipped, _ in one_by_one]), rel=1e-12, abs=0)
    assert norms == pytest.approx(np.array([before for _, before in one_by_one]), rel=1e-12, abs=0)


@given(matrices, st.floats(1e-3, 100), st.sampled_from(["l1", "l2"]))
def test_a_clip_shortens_and_does_not_turn(rows, clip, norm):
    changes = np.nan_to_num(np.array(rows), nan=0.0, posinf=0.0, neginf=0.0)
    deltas, before = clipped_to(changes, clip=clip, norm=norm)
    assert before == pytest.approx(norm_of(changes, norm))
    within = before <= clip
    assert np.array_equal(deltas[within], changes[within])
    factor = clip / before[~within]
    assert deltas[~within] == pytest.approx(changes[~within] * factor[:, None], rel=1e-9, abs=1e-12)


def test_a_client_whose_training_diverged_sends_no_change():
    deltas = np.array([[math.nan, 1.0], [math.inf, 0.0], [0.0, 1.0]])
    deltas, _ = clipped_to(deltas, clip=2.0)
    assert deltas.tolist() == [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]


def pvalue_of(sample, stddev):
    """p-value, both ends, of the sum of squares of a Gaussian sample with mean 0 and this standard deviation."""
    below = chi2(sample.size).cdf(np.square(sample / stddev).sum())
    return 2 * min(below, 1 - below)


def gaussian_shares(contributors, size, *, seed):
    return np.array(
        [
            gaussian_share(stream(seed, client=c, purpose="noise"), size, stddev=3.0, noise_contributors=contributors)
            for c in range(contributors)
        ]
    )


@pytest.mark.parametrize("contributors", [1, 7, 300])
def test_gaussian_shares_of_all_contributors_have_the_stated_stddev(contributors):
    noise = gaussian_shares(contributors, 2000, seed=51)
    assert pvalue_of(noise.sum(axis=0), 3.0) > 1e-3  # false alarm 1 in 1,000 for each of the three
    assert pvalue_of(noise[0], 3.0 / math.sqrt(contributors)) > 1e-3  # and of one share


def test_half_of_the_shares_have_half_of_the_variance():
    noise = gaussian_shares(10, 4000, seed=52)
    assert pvalue_of(noise[:5].sum(axis=0), 3.0 / math.sqrt(2)) > 1e-3  # false alarm 1 in 1,000
    assert pvalue_of(noise[:5].sum(axis=0), 3.0) < 1e-9


# --- events ---------------------------------------------------------------------------------------------------------


def test_noise_is_sized_for_those_who_are_sure_to_be_there():
    thousand = ReleaseContext(1000, 1, 1)
    assert noise_contributors(Gaussian(dropouts=0.1), thousand) == 900
    assert noise_contributors(Gaussian(dropouts=0.1, corrupt=0.1), thousand) == 800
    assert (
        noise_contributors(Gaussian(dropouts=0.1, corrupt=0.1), thousand._replace(participants=500, clients=1000))
        == 350
    )
    assert noise_contributors(Gaussian(dropouts=0.99), ReleaseContext(10, 1, 1)) == 1
    assert noise_contributors(Gaussian(trust="local"), thousand) == 1
    two_servers = thousand._replace(secagg_mode="two-servers")
    assert Gaussian(corrupt=0.9, dropouts=0.9).event(two_servers).noise_contributors == 2


@given(st.integers(3, 1000), st.floats(0, 0.4), st.floats(1e-3, 0.4))
def test_the_lab_counts_the_honest_as_secure_aggregation_does(clients, dropouts, corrupt):
    try:
        expected = guarantee(clients, dropouts=dropouts, corrupt=corrupt)
    except SpecError:
        return
    if expected.min_clients == clients - math.ceil(dropouts * clients - 1e-9):  # not raised to three
        mechanism = Gaussian(dropouts=dropouts, corrupt=corrupt)
        assert noise_contributors(mechanism, ReleaseContext(clients, 1, 1)) == expected.honest


def test_noise_of_nobody_is_refused():
    with pytest.raises(SpecError, match="no honest noise is left; use lower"):
        noise_contributors(Gaussian(dropouts=0.5, corrupt=0.5), ReleaseContext(10, 1, 1))


@pytest.mark.parametrize(
    ("more", "against", "shares"),
    [
        ({}, FOLLOWERS, (100, 100)),
        ({"dropouts": 0.5}, FOLLOWERS, (50, 100)),
        ({"dropouts": 0.1, "corrupt": 0.1}, EVERYBODY, (80, 100)),
        ({"secure_aggregation": False}, RECIPIENTS, (100, 100)),
        ({"trust": "local", "secure_aggregation": False}, EVERYBODY, (1, 1)),
    ],
)
@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_an_event_says_whose_noise_it_is_and_against_whom(kind, more, against, shares):
    event = kind(2.0, clip=3.0, **more).event(ReleaseContext(100, 5, 46))
    assert (event.against, (event.noise_contributors, event.present)) == (against, shares)
    assert (event.bound, event.parameters, event.unit, event.adjacency) == (3.0, 46, "user", "zero-out")
    assert event.norm == event.clipped == ("l2" if kind is Gaussian else "l1")
    noise = noise_multiplier(2.0, 1e-5, 5) * 3.0 if kind is Gaussian else 3.0 * 5 / 2.0
    assert event.noise == pytest.approx(noise)


def test_protected_updates_are_clipped_and_noised_as_the_event_says():
    context = ReleaseContext(20, 4, 3000)
    mechanism = Gaussian(epsilon=1.0, clip=0.5)
    event = mechanism.event(context)
    deltas = np.zeros((20, 3000))
    deltas[:, 0] = 100.0  # clipped to 0.5 each
    release = Release(mechanism.init_state(), event)
    total = protect_rows(mechanism, deltas, np.arange(20), release, seed=53, round=1).sum(axis=0)
    assert mechanism.next_state(release.state, np.empty(0), context) == 0.5
    assert pvalue_of(total[1:], event.noise) > 1e-3  # false alarm 1 in 1,000
    assert abs(total[0] - 20 * 0.5) < 5 * event.noise


@pytest.mark.parametrize("mechanism", [
    Gaussian(clip=0.5), Gaussian(clip=0.5, adaptive=0.5), Gaussian(clip=0.5, trust="local"), Laplace(clip=0.5), Fpdgd(),
])  # fmt: skip
def test_a_cohort_is_protected_as_each_client_protects_itself(mechanism):
    clients = np.array([0, 3, 8])
    release = Release(mechanism.init_state(), mechanism.event(ReleaseContext(9, 4, 5)))
    deltas = stream(56, purpose="choice").normal(15).reshape(3, 5)
    one_by_one = [
        mechanism.protect(row, release.state, release.event, stream(57, round=2, client=client, purpose="noise"))
        for row, client in zip(deltas.copy(), clients.tolist(), strict=True)
    ]
    together = protect_rows(mechanism, deltas, clients, release, seed=57, round=2)
    assert together == pytest.approx(np.array(one_by_one), rel=1e-12, abs=1e-12)


# --- the clip that follows ------------------------------------------------------------------------------------------


def test_bits_and_update_together_cost_what_was_asked_for():
    for multiplier, clients in ((1.0, 100), (16.0, 1000), (50.0, 10)):
        update, bits = split_multiplier(multiplier, clients)
        assert update**-2 + (2 * bits) ** -2 == pytest.approx(multiplier**-2)
        assert update > multiplier


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("first", [0.01, 100.0])
def test_the_clip_settles_at_the_quantile_of_the_norms(quantile, first):
    norms = 3.0 * stream(54, purpose="choice").uniform(400)  # its quantile q is 3 q
    clip = first
    for round in range(1, 161):
        bits = np.where(norms <= clip, 0.5, -0.5)
        noise = 20.0 * float(stream(55, round=round, purpose="noise").normal(1)[0])
        clip = next_clip(bits.sum() + noise, 400, clip, quantile=quantile)
    # noise of 20 / 400 on the share of norms moves the logarithm by 0.01 a round, and it is pulled back each round
    assert np.mean(norms <= clip) == pytest.approx(quantile, abs=0.1)


def test_the_clip_moves_by_the_distance_to_the_quantile():
    assert next_clip(1.0, 4, 2.0, quantile=0.5) == pytest.approx(2.0 * math.exp(-0.2 * (0.75 - 0.5)))


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.5])
def test_a_quantile_out_of_range_is_refused(quantile):
    with pytest.raises(SpecError, match="between 0 and 1"):
        next_clip(1.5, 3, 1.0, quantile=quantile)
