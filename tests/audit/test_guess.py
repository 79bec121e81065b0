"""Guessing clicks from messages: by eye, against slow oracles, and with noise of the kind that shares are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from foltr.lab.audit.click_guessing import (
    GUESSES,
    PUBLISHED,
    RANDOM_GUESSES,
    absolute_fit,
    guess_each,
    least_absolute,
    least_squares,
    random_numbers,
    score,
    squares_fit,
)
from foltr.rng import stream

PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # three documents, two features


def guess(name, change, features=PLANE):
    return GUESSES[name](np.asarray(features, float), np.zeros(len(change)), np.asarray(change, float)).tolist()


def test_a_document_whose_score_rises_is_guessed():
    # scores change by 2, -1, 1
    assert guess("higher score", [2, -1]) == [True, False, True]


def test_a_document_whose_share_of_the_list_rises_is_guessed():
    # from 1/3 each to e^2, e^-1, e^1 over their sum of 10.5: .70, .04, .26
    assert guess("higher probability", [2, -1]) == [True, False, False]


def test_a_document_that_gains_on_half_of_the_list_is_guessed():
    # changes 2, -1, 1: the first gains on two of three, the third on one, which is less than 1.5
    assert guess("higher distance", [2, -1]) == [True, False, False]


@pytest.mark.parametrize("gained_on", [4, 5])
def test_of_ten_documents_five_others_are_enough(gained_on):
    rises = np.arange(10.0)  # document i gains on i others
    assert guess("higher distance", [1.0], features=rises[:, None])[gained_on] == (gained_on == 5)


@pytest.mark.parametrize("name", ["least squares", "least absolute"])
def test_regressions_read_the_weights_of_a_step_without_noise(name):
    draws = stream(1, purpose="choice")
    features, weights = draws.normal(460).reshape(10, 46), draws.skip(1000).normal(10)
    assert guess(name, weights @ features, features) == (weights > 0).tolist()


def test_absolute_deviations_see_through_a_few_wild_coordinates_and_squares_do_not():
    draws = stream(2, purpose="choice")
    features, weights = draws.normal(460).reshape(10, 46), 0.01 * draws.skip(1000).normal(10)
    change = weights @ features
    change[[3, 17]] += [2.0, -5.0]
    assert absolute_fit(features, change) == pytest.approx(weights, abs=1e-9)
    assert np.abs(squares_fit(features, change) - weights).max() > 0.01


def by_linear_program(features, change):
    """Least absolute deviations as the textbook has them: a bound on each deviation, their sum as small as can be."""
    documents, parameters = features.shape
    rows = np.block([[features.T, -np.eye(parameters)], [-features.T, -np.eye(parameters)]])
    cost = np.concatenate([np.zeros(documents), np.ones(parameters)])
    bounds = [(None, None)] * documents + [(0, None)] * parameters
    return linprog(cost, A_ub=rows, b_ub=np.concatenate([change, -change]), bounds=bounds).fun


@given(
    seed=st.integers(0, 10**6), documents=st.integers(1, 6), copies=st.booleans(), size=st.sampled_from([1e-6, 1, 1e3])
)
def test_no_other_coefficients_deviate_less(seed, documents, copies, size):
    draws = stream(seed, purpose="choice")
    features = draws.normal(documents * 9).reshape(documents, 9)
    if copies:
        features[-1] = features[0]  # the same document twice: many solutions, none better
    change = size * draws.skip(500).normal(9)
    ours = np.abs(change - absolute_fit(features, change) @ features).sum()
    assert ours == pytest.approx(by_linear_program(features, change / size) * size, rel=1e-6)


def test_with_more_documents_than_parameters_the_smallest_fit_is_taken():
    draws = stream(3, purpose="choice")
    features, change = draws.normal(80 * 46).reshape(80, 46), draws.skip(5000).normal(46)
    fit = absolute_fit(features, change)
    assert fit @ features == pytest.approx(change)
    assert fit == pytest.approx(np.linalg.pinv(features.T) @ change)


def test_the_published_guesses_compare_ranks_and_not_documents():
    # scores (1, 0) become (0, 2): the second document rises; sorted anew, rank 1 goes from 1 to 2, rank 2 stays at 0
    features, before, after = np.eye(2), np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert GUESSES["higher score"](features, before, after).tolist() == [False, True]
    assert PUBLISHED["higher score, sorted anew"](features, before, after).tolist() == [True, False]
    assert set(PUBLISHED) == {f"{name}, sorted anew" for name in list(GUESSES)[:3]}


def test_a_message_that_says_nothing_is_guessed_to_have_no_clicks():
    for name in GUESSES:
        assert not any(guess(name, [0.0, 0.0])), name


def test_many_messages_are_guessed_one_by_one():
    features, before = np.stack([PLANE, PLANE[::-1]]), np.array([1.0, 1.0])
    after = before + np.array([[2.0, -1.0], [2.0, -1.0]])
    assert guess_each("higher score", features, before, after).tolist() == [[True, False, True], [True, False, True]]


def test_scores_are_means_over_messages_with_a_click():
    clicks = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], dtype=bool)
    guesses = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    found = score(clicks, guesses)
    assert found.messages == 3  # the third has no click
    assert found.precision == pytest.approx((1 / 2 + 1 / 1) / 2)  # nothing was guessed in the last
    assert found.recall == pytest.approx((1 / 1 + 1 / 2 + 0 / 1) / 3)
    assert found.accuracy == pytest.approx((3 / 4 + 3 / 4 + 3 / 4) / 3)
    assert found.guessed == pytest.approx(3 / 12)
    assert found.clicked == pytest.approx(4 / 12)


def test_without_any_click_there_is_nothing_to_score():
    found = score(np.zeros((2, 3), bool), np.ones((2, 3), bool))
    assert found.messages == 0
    assert np.isnan(found.precision)


def test_random_guesses_have_the_precision_of_the_clicks_and_the_recall_of_what_is_guessed():
    draws = stream(4, purpose="choice")
    clicks, guesses = (
        draws.uniform(200_000).reshape(-1, 10) < 0.3,
        draws.skip(200_000).uniform(200_000).reshape(-1, 10) < 0.5,
    )
    found = score(clicks, guesses)
    # each mean is over 19,000 messages of sd below .3: false alarm below 1 in 1,000 at 3.3 * .3 / sqrt(19,000) = .007
    assert found.precision == pytest.approx(found.clicked, abs=0.007)
    assert found.recall == pytest.approx(found.guessed, abs=0.007)


@pytest.mark.parametrize("guesses", RANDOM_GUESSES)
def test_numbers_of_random_guesses_are_means_over_all_ways_to_guess_so_many(guesses):
    clicks = np.array([[1, 0, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0]], dtype=bool)
    ways = [np.isin(np.arange(5), chosen) for chosen in itertools.combinations(range(5), guesses)]
    each = [score(clicks, np.tile(way, (3, 1))) for way in ways]
    numbers = random_numbers(clicks)
    assert numbers["precision, random"] == pytest.approx(np.mean([one.precision for one in each]))
    assert numbers[f"recall, random {guesses}"] == pytest.approx(np.mean([one.recall for one in each]))
    assert numbers[f"accuracy, random {guesses}"] == pytest.approx(np.mean([one.accuracy for one in each]))


def test_regressions_are_the_signs_of_their_fits():
    draws = stream(5, purpose="choice")
    features, change = draws.normal(60).reshape(3, 20), draws.skip(100).normal(20)
    nothing = np.zeros(20)
    assert (least_squares(features, nothing, change) == (squares_fit(features, change) > 0)).all()
    assert (least_absolute(features, nothing, change) == (absolute_fit(features, change) > 0)).all()


def test_rounding_is_no_click():
    """A document far below the others has a weight of -1e-12 of the largest; its fit may well be as much above zero."""
    features = stream(6, purpose="choice").normal(60).reshape(3, 20)
    change = np.array([1.0, -1.0, 1e-12]) @ features
    assert least_absolute(features, np.zeros(20), change).tolist() == [True, False, False]
