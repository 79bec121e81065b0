"""Drawing lists: the readable sampler and the compiled one draw the same, with the stated probabilities."""

import math

import numpy as np
import pytest
from by_hand import draw, fit, list_probability, rankings, workspace_with
from hypothesis import example, given
from hypothesis import strategies as st

from foltr.rankers import plackett_luce
from foltr.rng import stream

MANY = 20_000


def any_scores(most=30):
    """Mild, tied, far apart by thousands, mixtures of these, and lists in which every document comes twice."""
    mild = st.floats(-3, 3)
    tied = st.sampled_from([0.0, 1.0, -1.0])
    far_apart = st.floats(-1e3, 1e3)
    apart_by_thousands = st.integers(-5, 5).map(lambda i: 1e3 * i)
    kinds = (mild, tied, far_apart, apart_by_thousands, st.one_of(mild, tied, far_apart, apart_by_thousands))
    lists = [st.lists(kind, min_size=1, max_size=most) for kind in kinds]
    doubled = st.lists(mild, min_size=1, max_size=most // 2).map(lambda half: half + half)
    return st.one_of([*lists, doubled]).map(np.array)


@given(scores=any_scores(), k=st.integers(1, 25), client=st.integers(0, 10**6))
@example(scores=np.array([7.0]), k=10, client=1)
@example(scores=np.zeros(17), k=17, client=2)
@example(scores=np.array([1e3, 1e3, 0.0, -1e3, -1e3]), k=5, client=3)
@example(scores=np.array([0.0, -231.0, -700.0, -709.0, -1400.0]), k=5, client=4)
def test_both_samplers_draw_the_same_list(scores, k, client):
    draws = stream(1, client=client, purpose="ranking")
    slow = plackett_luce.sample(scores, k, draws)
    fast = draw(workspace_with(scores, k), k, draws)
    assert slow.tolist() == fast.tolist()


@given(scores=any_scores(), k=st.integers(1, 25), client=st.integers(0, 10**6))
def test_no_document_is_shown_twice_and_none_is_missing(scores, k, client):
    workspace = workspace_with(scores, k)
    ranking = draw(workspace, k, stream(1, client=client, purpose="ranking")).tolist()
    assert len(ranking) == min(k, len(scores))
    assert len(set(ranking)) == len(ranking)
    assert set(ranking) <= set(range(len(scores)))
    assert not workspace.listed.any()  # ready for the next list


@given(scores=any_scores(), k=st.integers(1, 25), client=st.integers(0, 10**6))
def test_the_sampler_keeps_the_mass_that_remained_before_each_rank(scores, k, client):
    workspace = workspace_with(scores, k)
    ranking = draw(workspace, k, stream(1, client=client, purpose="ranking"))
    for rank, document in enumerate(ranking):
        left = np.delete(scores, ranking[:rank])
        assert math.log(workspace.normalizers[rank]) + workspace.shifts[rank] == pytest.approx(
            plackett_luce.log_mass(left), rel=1e-12, abs=1e-11
        )
        assert math.log(workspace.chosen[rank]) + workspace.shifts[rank] == pytest.approx(
            scores[document], rel=1e-12, abs=1e-11
        )


MILD = [0.3, -0.5, 0.8, 0.0, 0.1]
TIED = [1.0, 1.0, 0.0, 1.0]
CONCENTRATED = [0.0, 3.0, -1.0, -2.0, -2.5]  # one document holds most of the mass
TWO_CLUSTERS = [0.0, -1.0, -300.0, -300.5, -301.0]  # beside the first two the others have next to no mass
LONG = [0.0, 4.0, *[-1.0] * 20, 2.0, 3.0]  # more than one block of documents
LONGER = [1.0, *np.linspace(-3, 3, 140).tolist(), 0.5]  # more than one group


@pytest.mark.parametrize(
    ("scores", "k"),
    [(MILD, 3), (MILD, 5), (TIED, 4), (CONCENTRATED, 3), (CONCENTRATED, 5), (TWO_CLUSTERS, 5), (LONG, 2), (LONGER, 1)],
)
def test_lists_come_as_often_as_their_probability_says(scores, k):
    workspace, draws = workspace_with(scores, k), stream(7, purpose="ranking")
    lists = [tuple(draw(workspace, k, draws.skip(1000 * i)).tolist()) for i in range(MANY)]
    expected = {
        ranking: math.exp(plackett_luce.log_probability(np.array(scores), ranking))
        for ranking in rankings(len(scores), k)
    }
    assert fit(lists, expected) > 1e-3  # false alarm 1 in 1,000 for each of the eight


def test_those_scores_reach_both_ways_of_drawing():
    workspace = workspace_with(CONCENTRATED, 5)
    draw(workspace, 5, stream(7, purpose="ranking"))
    assert workspace.shifts.tolist() == [3.0] * 5  # one scale
    workspace = workspace_with(TWO_CLUSTERS, 5)
    assert sorted(draw(workspace, 5, stream(7, purpose="ranking"))[:2]) == [0, 1]
    assert workspace.shifts[2] <= -300.0  # a scale of its own


@pytest.mark.parametrize(
    "scores",
    [[math.nan] * 12, [math.inf] * 12, [-math.inf] * 12, [0.0, *[-math.inf] * 11], [math.inf, math.nan, *range(10)]],
    ids=["nan", "inf", "-inf", "one number", "mixed"],
)
def test_a_list_of_scores_that_are_no_numbers_comes_to_an_end(scores):
    workspace = workspace_with(scores, 10)
    for i in range(20):
        ranking = draw(workspace, 10, stream(9, purpose="ranking").skip(1000 * i)).tolist()
        assert len(set(ranking)) == 10
        assert set(ranking) <= set(range(12))
        assert np.isfinite(workspace.normalizers).all()


@pytest.mark.parametrize("scores", [MILD, TIED, CONCENTRATED])
def test_the_readable_sampler_has_the_right_frequencies_by_itself(scores):
    draws = stream(8, purpose="ranking")
    lists = [tuple(plackett_luce.sample(np.array(scores), 2, draws.skip(100 * i)).tolist()) for i in range(3000)]
    expected = {ranking: list_probability(scores, ranking) for ranking in rankings(len(scores), 2)}
    assert fit(lists, expected) > 1e-3  # false alarm 1 in 1,000 for each of the three


def test_probability_of_a_list_by_hand():
    scores = np.log([1.0, 2.0, 3.0])
    assert plackett_luce.log_probability(scores, np.array([2])) == pytest.approx(math.log(3 / 6))
    assert plackett_luce.log_probability(scores, np.array([2, 0])) == pytest.approx(math.log(3 / 6 * 1 / 3))
    assert plackett_luce.log_probability(scores, np.array([0, 1, 2])) == pytest.approx(math.log(1 / 6 * 2 / 5 * 3 / 3))


@given(scores=st.lists(st.floats(-5, 5), min_size=1, max_size=5).map(np.array), k=st.integers(1, 5))
def test_probabilities_are_the_products_and_sum_to_one(scores, k):
    logs = {ranking: plackett_luce.log_probability(scores, ranking) for ranking in rankings(len(scores), k)}
    assert sum(map(math.exp, logs.values())) == pytest.approx(1, abs=1e-12)
    for ranking, log in logs.items():
        assert math.exp(log) == pytest.approx(list_probability(scores, ranking), rel=1e-10)


def test_probability_of_a_list_of_scores_that_no_exponential_holds():
    # the two upper ones share e^5000: 1/2 each; then the lowest comes against one that is 10,000 better
    scores = np.array([5000.0, 5000.0, -5000.0])
    assert plackett_luce.log_probability(scores, np.array([0, 1, 2])) == pytest.approx(math.log(1 / 2))
    assert plackett_luce.log_probability(scores, np.array([1, 2, 0])) == pytest.approx(math.log(1 / 2) - 10_000)
