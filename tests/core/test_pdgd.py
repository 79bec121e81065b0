"""Pairwise gradients: which pairs, how heavy, and what they add up to on average."""

import itertools
import math

import numpy as np
import pytest
from by_hand import (
    draw,
    exact_pair_weight,
    far,
    list_probability,
    pattern_probability,
    patterns,
    rankings,
    room_for,
    standard_errors,
    updates_of,
)
from hypothesis import example, given
from hypothesis import strategies as st

from foltr._kernels.pdgd import pair_weights
from foltr.clicks import ClickTable, Users, click_model
from foltr.lab.simulation import compiled
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.pdgd import Pdgd, gradient, list_weights, preferences, swap_weight
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear, plackett_luce
from foltr.rng import stream
from foltr.types import Dataset, Interaction

NEGATIVES = ("one-below-last-click", "all-shown")


@pytest.mark.parametrize(
    ("clicks", "pairs", "pairs_of_all_shown"),
    [
        (
            [0, 1, 0, 0, 0],
            {(1, 0), (1, 2)},
            {(1, 0), (1, 2), (1, 3), (1, 4)},
        ),  # negatives stop one below the last click
        ([1, 0, 1, 0, 0], {(0, 1), (0, 3), (2, 1), (2, 3)}, {(0, 1), (0, 3), (0, 4), (2, 1), (2, 3), (2, 4)}),
        ([0, 0, 0], set(), set()),  # no click
        ([1, 1, 1], set(), set()),  # nothing was passed over
        ([1, 1, 0], {(0, 2), (1, 2)}, {(0, 2), (1, 2)}),
        ([0, 0, 1], {(2, 0), (2, 1)}, {(2, 0), (2, 1)}),  # there is nothing below the last rank
        ([1], set(), set()),
        ([0], set(), set()),
    ],
)
def test_a_clicked_document_is_preferred_to_those_passed_over(clicks, pairs, pairs_of_all_shown):
    for negatives, expected in zip(NEGATIVES, (pairs, pairs_of_all_shown), strict=True):
        found = preferences(np.array(clicks, dtype=bool), negatives)
        assert len(found) == len(expected)
        assert set(found) == expected


@st.composite
def shown_lists(draw, spread=3.0, most=8):
    """Scores, a list of some of the documents, and two of its ranks."""
    scores = np.array(draw(st.lists(st.floats(-spread, spread), min_size=2, max_size=most)))
    ranking = draw(st.permutations(range(len(scores))))
    ranking = np.array(ranking[: draw(st.integers(2, len(scores)))])
    one, other = draw(st.permutations(range(len(ranking))))[:2]
    return scores, ranking, one, other


def odds_by_probability(scores, ranking, one, other):
    swapped = ranking.copy()
    swapped[[one, other]] = ranking[[other, one]]
    shown, other_way = (plackett_luce.log_probability(scores, order) for order in (ranking, swapped))
    return 1 / (1 + math.exp(min(shown - other_way, 700)))


@given(shown_lists())
def test_rho_compares_the_list_with_the_one_in_which_the_pair_is_swapped(case):
    scores, ranking, one, other = case
    rho = swap_weight(scores, ranking, one, other)
    assert rho == pytest.approx(odds_by_probability(*case), abs=1e-9)
    assert rho == swap_weight(scores, ranking, other, one)


@given(shown_lists(spread=3000.0))
@example((np.array([0.0, 2000.0, -2000.0]), np.array([0, 1, 2]), 0, 2))
@example((np.array([-2000.0, 2000.0, 2000.0]), np.array([0, 1, 2]), 0, 2))
def test_rho_is_right_where_exponentials_overflow(case):
    rho = swap_weight(*case)
    assert math.isfinite(rho)
    assert rho == pytest.approx(odds_by_probability(*case), abs=1e-9)


def test_rho_by_hand():
    # masses 1, 2, 3; P(0 1 2) = 1/6 * 2/5; P(1 0 2) = 2/6 * 1/4; P(2 1 0) = 3/6 * 2/3
    scores, ranking = np.log([1.0, 2.0, 3.0]), np.array([0, 1, 2])
    assert swap_weight(scores, ranking, 0, 1) == pytest.approx((2 / 24) / (2 / 30 + 2 / 24))
    assert swap_weight(scores, ranking, 0, 2) == pytest.approx((6 / 18) / (2 / 30 + 6 / 18))


@st.composite
def clicked_lists(draw, only_one=False):
    """Scores (mild, or apart by thousands), an address of the sampler, and clicks."""
    spread = draw(st.sampled_from([1.0, 30.0, 300.0, 3000.0]))
    scores = np.array(draw(st.lists(st.floats(-spread, spread), min_size=2, max_size=12)))
    k = draw(st.integers(2, 10))
    length = min(k, len(scores))
    if only_one:
        clicks = np.arange(length) == draw(st.integers(0, length - 1))
    else:
        clicks = np.array(draw(st.lists(st.booleans(), min_size=length, max_size=length)))
    return scores, k, clicks, draw(st.integers(0, 10**6))


def weighed(scores, k, clicks, client, negatives):
    """The list that the compiled sampler draws, and the weights of its documents by both implementations."""
    workspace = room_for(scores, k)
    ranking = draw(workspace, k, stream(2, client=client, purpose="ranking")).copy()
    workspace.clicks[: len(clicks)] = clicks
    found = pair_weights(len(ranking), negatives == "all-shown", workspace)
    interaction = Interaction(np.zeros((len(scores), 1)), ranking, clicks, scores, 0)
    slow = list_weights(interaction, negatives)
    assert bool(found) == bool(preferences(clicks, negatives))
    assert all(workspace.weights[found : len(ranking)] == 0)
    fast = workspace.weights[: len(ranking)] if found else np.zeros(len(ranking))
    return ranking, slow, fast


@pytest.mark.parametrize("negatives", NEGATIVES)
@given(clicked_lists())
def test_weights_of_a_list_are_the_sums_over_its_pairs(negatives, case):
    scores, _, clicks, _ = case
    ranking, slow, fast = weighed(*case, negatives)
    exact = np.zeros(len(ranking))
    for positive, negative in preferences(clicks, negatives):
        weight = exact_pair_weight(scores, ranking, positive, negative)
        exact[positive] += weight
        exact[negative] -= weight
    assert slow == pytest.approx(exact, abs=1e-12)
    assert fast == pytest.approx(exact, abs=1e-12)


@given(clicked_lists(only_one=True))
def test_the_smallest_weights_keep_their_digits(case):
    """With one click a negative's weight is that of one pair, however small: 9 digits down to 1e-290."""
    scores, _, clicks, _ = case
    ranking, slow, fast = weighed(*case, "all-shown")
    positive = int(np.flatnonzero(clicks)[0])
    for negative in np.flatnonzero(~clicks):
        exact = exact_pair_weight(scores, ranking, positive, int(negative))
        assert -slow[negative] == pytest.approx(exact, rel=1e-9, abs=1e-290)
        assert -fast[negative] == pytest.approx(exact, rel=1e-9, abs=1e-290)


def test_gradient_of_one_session_by_hand():
    # all scores are 0: every swap is as likely as the list, so rho = 1/2; sigma'(0) = 1/4; a pair weighs 1/8
    features = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0], [9.0, 9.0]])
    interaction = Interaction(features, np.array([2, 0, 1]), np.array([False, True, False]), np.zeros(4), 0)
    expected = ((features[0] - features[2]) + (features[0] - features[1])) / 8
    assert gradient(interaction, Linear(), np.zeros(2)) == pytest.approx(expected)


def test_gradient_of_a_pair_of_unequal_scores_by_hand():
    # two documents of masses 3 and 1, the heavy one first: P(R) = 3/4, P(R*) = 1/4, so rho = 1/4; sigma' = 3/16
    interaction = Interaction(np.eye(2), np.array([0, 1]), np.array([False, True]), np.log([3.0, 1.0]), 0)
    assert gradient(interaction, Linear(), np.zeros(2)) == pytest.approx(np.array([-1.0, 1.0]) * (1 / 4) * (3 / 16))


FEATURES = np.array([[0.5, 1.0, 0.0], [1.0, 0.0, 0.25], [0.0, 0.5, 1.0], [0.75, 0.75, 0.5]], dtype=np.float32)
GRADES = [0, 1, 2, 1]


def one_query(features, grades, users, negatives):
    data = Dataset(features, np.array(grades, dtype=np.int8), np.array([0, len(grades)]), np.arange(1))
    return Task(data, 3, (click_model(users, grades=3),), Linear(), Pdgd(1.0, negatives), Federated(), NoPrivacy(), 5)


def single_gradients(task, theta, people):
    """[people, P] what each of many people's first interaction adds, by the compiled engine."""
    updates, _ = updates_of(compiled.engine(task), theta, np.arange(people), np.ones(people))
    return updates.values


def all_that_can_happen(scores, grades, users):
    """Every list and pattern of clicks on it, with its probability."""
    model = click_model(users, grades=3)
    for ranking in rankings(len(scores), users.k):
        listed = [grades[document] for document in ranking]
        for pattern in patterns(len(ranking)):
            chance = list_probability(scores, ranking) * pattern_probability(pattern, listed, model.click, model.stop)
            yield ranking, pattern, chance


def preferred(pattern, negatives):
    """Pairs of ranks, by looking at every two."""
    last = max((rank for rank, hit in enumerate(pattern) if hit), default=-2)
    seen = range(len(pattern)) if negatives == "all-shown" else range(min(last + 2, len(pattern)))
    return [(w, lost) for w, lost in itertools.product(seen, repeat=2) if pattern[w] and not pattern[lost]]


def expected_gradient(features, scores, grades, users, negatives):
    """Sum of probability * gradient over all that can happen."""
    known = {}
    total = np.zeros(features.shape[1])
    for ranking, pattern, chance in all_that_can_happen(scores, grades, users):
        for pair in preferred(pattern, negatives):
            if (ranking, pair) not in known:
                known[ranking, pair] = exact_pair_weight(scores, ranking, *pair)
            positive, negative = (features[ranking[rank]] for rank in pair)
            total += chance * known[ranking, pair] * (positive - negative)
    return total


@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize("theta", [[0.0, 0.0, 0.0], [0.5, -1.0, 2.0], [-2.0, 6.0, 1.0]], ids=["flat", "mild", "steep"])
@pytest.mark.parametrize("k", [4, 3])
def test_the_mean_of_many_gradients_is_the_exact_expectation(negatives, theta, k):
    theta, users = np.array(theta), Users("informational", k=k)
    found = single_gradients(one_query(FEATURES, GRADES, users, negatives), theta, 30_000)
    features = FEATURES.astype(float)
    expected = expected_gradient(features, features @ theta, GRADES, users, negatives)
    assert (
        standard_errors(found, expected) < far(1e-3, looks=3)
    ).all()  # false alarm 1 in 1,000 for each of the twelve
    assert (np.abs(expected) > 0.001).any()  # and a gradient of nothing would have been noticed


@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize("model", ["cascade", "position"])
def test_clicks_on_equally_good_documents_prefer_neither_on_average(negatives, model):
    """Whatever the ranker thinks of them and wherever it puts them.

    rho(R) P(R) = P(R) P(R*) / (P(R) + P(R*)) = rho(R*) P(R*), and with equal grades the same clicks are as likely on R
    as on R*; so what R adds to a pair, R* takes away.
    """
    users = Users("informational", model=model, k=4)
    scores = np.array([1.0, -2.0, 0.5, 0.0])
    equals = {1, 3}  # both of grade 1
    total, added = 0.0, 0.0
    for ranking, pattern, chance in all_that_can_happen(scores, GRADES, users):
        for positive, negative in preferences(np.array(pattern), negatives):
            if {ranking[positive], ranking[negative]} == equals:
                difference = scores[ranking[positive]] - scores[ranking[negative]]
                slope = math.exp(difference) / (1 + math.exp(difference)) ** 2
                weight = chance * slope * swap_weight(scores, np.array(ranking), positive, negative)
                total += weight if ranking[positive] == 1 else -weight
                added += weight
    assert added > 1e-3  # the pair does get weight, both ways
    assert total == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("difference", [0.0, 1.5, 4.0])
def test_two_equally_good_documents_stay_where_they_are_on_average(difference):
    users = Users(ClickTable((0.4, 0.5, 0.9), (0.2, 0.6, 0.5)), k=2)
    task = one_query(np.array([[1.0], [0.0]], dtype=np.float32), [1, 1], users, NEGATIVES[0])
    found = single_gradients(task, np.array([difference]), 30_000)
    assert found.std() > 0
    assert standard_errors(found, 0.0)[0] < far(1e-3)  # false alarm 1 in 1,000 for each of the three


def test_without_a_click_nothing_moves():
    task = one_query(FEATURES, [0, 0, 0, 0], Users("perfect", k=4), NEGATIVES[0])
    theta = np.array([0.1, -0.2, 0.3])
    assert (single_gradients(task, theta, 50) == 0).all()


def test_one_step_is_the_rate_times_the_gradient():
    users = Users("informational", k=4)
    task = one_query(FEATURES, GRADES, users, NEGATIVES[0])
    theta = np.array([0.5, -1.0, 2.0])
    small = task._replace(learner=Pdgd(0.1))
    assert single_gradients(small, theta, 50) == pytest.approx(0.1 * single_gradients(task, theta, 50), abs=1e-15)
