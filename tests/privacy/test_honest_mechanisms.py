"""UserLevelDP mechanisms: what leaves is bounded, the noise is as large as stated, the clip follows its quantile."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from foltr.errors import SpecError
from foltr.privacy.calibration import next_clip, noise_multiplier, split_multiplier
from foltr.privacy.events import EVERYBODY, RECIPIENTS
from foltr.privacy.mechanisms import Gaussian, Laplace, clip_updates, event_of, noise_holders, protect
from foltr.privacy.noise import gaussian_share
from foltr.rng import stream

numbers = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
matrices = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6)


def norm_of(rows, norm):
    return np.abs(rows).sum(axis=1) if norm == "l1" else np.sqrt(np.square(rows).sum(axis=1))


@given(matrices, st.floats(1e-3, 100), st.sampled_from(["l1", "l2"]))
def test_whatever_a_client_trained_leaves_within_the_clip(rows, clip, norm):
    start = np.array([1.0, -2.0, 3.0])
    updates = np.array(rows)
    clip_updates(updates, start, clip=clip, norm=norm)
    assert (norm_of(updates - start, norm) <= clip * (1 + 1e-12) + 1e-14).all()


@given(matrices, st.floats(1e-3, 100), st.sampled_from(["l1", "l2"]))
def test_a_clip_shortens_and_does_not_turn(rows, clip, norm):
    changes = np.nan_to_num(np.array(rows), nan=0.0, posinf=0.0, neginf=0.0)
    updates = changes.copy()
    before = clip_updates(updates, np.zeros(3), clip=clip, norm=norm)
    assert before == pytest.approx(norm_of(changes, norm))
    within = before <= clip
    assert np.array_equal(updates[within], changes[within])
    factor = clip / before[~within]
    assert updates[~within] == pytest.approx(changes[~within] * factor[:, None], rel=1e-9, abs=1e-12)


def test_a_client_that_went_astray_sends_no_change():
    updates = np.array([[math.nan, 1.0], [math.inf, 0.0], [5.0, 6.0]])
    clip_updates(updates, np.array([5.0, 5.0]), clip=2.0, norm="l2")
    assert updates.tolist() == [[5.0, 5.0], [5.0, 5.0], [5.0, 6.0]]


def deviates(sample, stddev):
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
def test_gaussian_shares_of_all_contributors_have_the_stated_deviation(contributors):
    noise = gaussian_shares(contributors, 2000, seed=51)
    assert deviates(noise.sum(axis=0), 3.0) > 1e-3  # false alarm 1 in 1,000 for each of the three
    assert deviates(noise[0], 3.0 / math.sqrt(contributors)) > 1e-3  # and of one share


def test_half_of_the_shares_have_half_of_the_variance():
    noise = gaussian_shares(10, 4000, seed=52)
    assert deviates(noise[:5].sum(axis=0), 3.0 / math.sqrt(2)) > 1e-3  # false alarm 1 in 1,000
    assert deviates(noise[:5].sum(axis=0), 3.0) < 1e-9


# --- events ---------------------------------------------------------------------------------------------------------


def test_noise_is_sized_for_those_who_are_sure_to_be_there():
    assert noise_holders(Gaussian(min_participation=0.9), 1000) == 900
    assert noise_holders(Gaussian(min_participation=0.01), 10) == 1
    assert noise_holders(Gaussian(trust="local"), 1000) == 1


@pytest.mark.parametrize(
    ("more", "against", "shares"),
    [
        ({}, EVERYBODY, (100, 100)),
        ({"min_participation": 0.5}, EVERYBODY, (50, 100)),
        ({"secure_aggregation": False}, RECIPIENTS, (100, 100)),
        ({"trust": "local", "secure_aggregation": False}, EVERYBODY, (1, 1)),
    ],
)
@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_an_event_says_whose_noise_it_is_and_against_whom(kind, more, against, shares):
    event = event_of(kind(2.0, clip=3.0, **more), taking_part=100, releases=5, parameters=46)
    assert (event.against, (event.noise_contributors, event.present)) == (against, shares)
    assert (event.bound, event.parameters, event.unit, event.adjacency) == (3.0, 46, "user", "zero-out")
    assert event.norm == event.clipped == ("l2" if kind is Gaussian else "l1")
    noise = noise_multiplier(2.0, 1e-5, 5) * 3.0 if kind is Gaussian else 3.0 * 5 / 2.0
    assert event.noise == pytest.approx(noise)


def test_protected_updates_are_clipped_and_noised_as_the_event_says():
    privacy = Gaussian(epsilon=1.0, clip=0.5)
    event = event_of(privacy, taking_part=20, releases=4, parameters=3000)
    start = np.full(3000, 2.0)
    updates = np.tile(start, (20, 1))
    updates[:, 0] += 100.0  # clipped to 0.5 each
    following = protect(privacy, updates, start, np.arange(20), event, clip=0.5, seed=53, round=1)
    total = (updates - start).sum(axis=0)
    assert following == 0.5
    assert deviates(total[1:], event.noise) > 1e-3  # false alarm 1 in 1,000
    assert abs(total[0] - 20 * 0.5) < 5 * event.noise


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
