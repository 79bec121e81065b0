"""The guard: replay, interleaving, the sequential test with its odds, and exploration."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from foltr.node.learning import guard
from foltr.node.learning.guard import BOTH, NEW, OLD, draft, explore, interleave, points, replay, verdict
from foltr.rng import stream
from foltr.types import Interaction

ORDERS = some.permutations(range(14))


# ---- replay


def test_reciprocal_ranks_by_hand():
    one = Interaction(np.array([[3.0], [2.0], [1.0]]), np.array([0, 1, 2]), np.array([False, True, False]), None, 0)
    found = replay([one], np.array([1.0]), np.array([-1.0]))
    assert (found.old, found.new) == (1 / 2, 1 / 2)
    assert guard.reciprocal_rank(one, np.array([0.0])) == 1 / 2  # three share ranks 1 to 3
    assert guard.reciprocal_rank(one._replace(clicks=np.array([True, False, True])), np.array([-1.0])) == 1
    assert guard.reciprocal_rank(one, np.array([np.nan])) == 0


def lists(number, best):
    """Lists in which the document that is best by one feature was opened."""
    features = stream(7, round=number, purpose="data").uniform(40).reshape(20, 2)
    order = np.argsort(-features[:, best])[:10]
    return Interaction(features, order, np.arange(10) == 0, features[:, best], 0)


def test_weights_that_lose_clearly_are_refused_and_better_or_equal_ones_are_not():
    log = [lists(number, 0) for number in range(30)]
    good, worse = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert replay(log, good, worse).clearly_worse
    assert not replay(log, worse, good).clearly_worse
    assert not replay(log, good, good).clearly_worse
    assert not replay([], good, worse).clearly_worse
    assert replay(log, good, np.array([np.nan, 1.0])).clearly_worse


def test_every_list_is_replayed_by_a_fit_that_does_not_know_its_fold():
    log = [lists(number, 0) for number in range(12)]
    weights = guard.held_out(
        log, lambda some: np.array([sum(one is log[place] for one in some) for place in range(12)])
    )
    for place, row in enumerate(weights.tolist()):
        assert row == [float(other % 5 != place % 5) for other in range(12)]
    first = guard.held_out(log, lambda some: np.array([len(some)]), first=5)
    assert first.ravel().tolist() == [4] * 12


# ---- interleaving


@given(ORDERS, ORDERS, some.integers(0, 50))
def test_an_interleaved_list_is_a_permutation_with_fair_teams(old, new, seed):
    found = interleave(old, new, stream(seed, purpose="ranking"))
    assert sorted(found.order) == sorted(new)
    brought = Counter(found.teams[:10].tolist())
    assert abs(brought[OLD] - brought[NEW]) <= 1
    assert (found.teams[10:] == BOTH).all()
    for place, team in enumerate(found.teams[:10]):  # who brought it had it first of what was left
        above = found.order[:place]
        for source, name in ((old, OLD), (new, NEW)):
            if team in (name, BOTH):
                assert next(one for one in source if one not in above) == found.order[place]


def test_equal_orders_give_the_list_unchanged_and_no_points():
    found = interleave(list("abcdefghijklm"), list("abcdefghijklm"), stream(1, purpose="ranking"))
    assert found.order == list("abcdefghijklm")
    assert (found.teams == BOTH).all()
    assert (found.propensities == 1).all()


def test_a_common_beginning_stays():
    found = interleave(list("abcde"), list("abced"), stream(1, purpose="ranking"))
    assert found.order[:3] == list("abc")
    assert sorted(found.order[3:]) == ["d", "e"]
    assert found.propensities.tolist() == [1, 1, 1, 0.5, 0.5]


@given(ORDERS, ORDERS, some.integers(0, 20))
def test_propensities_are_the_share_of_coins_that_put_a_document_there(old, new, seed):
    found = interleave(old, new, stream(seed, purpose="ranking"))
    drafts = [draft(old, new, coins)[0] for coins in product((False, True), repeat=5)]
    expected = [np.mean([other[place] == one for other in drafts]) for place, one in enumerate(found.order)]
    assert np.allclose(found.propensities, expected)
    assert (found.propensities > 0).all()


@settings(max_examples=25)
@given(ORDERS, ORDERS)
def test_swapping_the_orders_swaps_the_points(old, new):
    """Fairness: whatever is clicked, over all coins both orders get the same in exchanged roles."""
    for place in range(10):
        clicks = np.arange(14) == place
        one, two = (
            sorted(sign * points(draft(*pair, coins)[1], clicks) for coins in product((False, True), repeat=5))
            for sign, pair in ((1, (old, new)), (-1, (new, old)))
        )
        assert one == two


def test_the_same_query_gives_the_same_list():
    old, new = list(range(12)), list(reversed(range(12)))
    first, again, other, later = (
        interleave(old, new, guard.coins_of(*address)).order
        for address in (("report", (3, 4)), ("report", (3, 4)), ("reports", (3, 4)), ("report", (3, 5)))
    )
    assert first == again
    assert len({tuple(first), tuple(other), tuple(later)}) > 1


def test_coins_are_fair_over_queries():
    heads = [guard.coins_of(f"query {number}", (0, 1)).uniform(1)[0] < 0.5 for number in range(4000)]
    assert abs(np.mean(heads) - 0.5) < 4 * 0.5 / math.sqrt(4000)  # false alarm 1 in 15,000, fixed


def test_points_go_to_the_order_that_brought_more():
    teams = np.array([BOTH, NEW, OLD, NEW])
    assert points(teams, [True, False, False, False]) == 0
    assert points(teams, [False, True, False, False]) == 1
    assert points(teams, [False, True, True, False]) == 0
    assert points(teams, [False, True, True, True]) == 1
    assert points(teams, [True, False, True, False]) == -1


# ---- the sequential test


def odds(lost, most=2000):
    """Chances of return and of trust, and the expected number of decisive lists, by summing over all paths."""
    states, returned, trusted, length = {0: 1.0}, 0.0, 0.0, 0.0
    up, down = math.log(guard.HARM / 0.5), math.log((1 - guard.HARM) / 0.5)
    for n in range(most):
        length += sum(states.values())
        following: dict[int, float] = {}
        for losses, chance in states.items():
            for more, weight in ((1, lost), (0, 1 - lost)):
                evidence = (losses + more) * up + (n + 1 - losses - more) * down
                if evidence >= guard._RETURN:
                    returned += chance * weight
                elif evidence <= guard._TRUST:
                    trusted += chance * weight
                else:
                    following[losses + more] = following.get(losses + more, 0.0) + chance * weight
        states = following
    return returned, trusted, length


def test_false_alarms_and_misses_are_as_rare_as_stated():
    returned, trusted, length = odds(0.5)
    assert returned <= guard.ALARM
    assert trusted > 0.97
    assert 35 < length < 55
    returned, trusted, length = odds(0.65)
    assert returned >= 1 - guard.MISS
    assert 60 < length < 90
    assert odds(0.45)[0] < 0.005  # a version that is better


@given(some.lists(some.sampled_from([-1, 0, 1]), max_size=120))
def test_the_verdict_is_the_first_bound_that_is_reached(found):
    said = verdict(found)
    shortest = next((n for n in range(len(found) + 1) if verdict(found[:n]) != "open"), None)
    assert said == ("open" if shortest is None else verdict(found[:shortest]))


def test_losing_again_and_again_returns_and_lists_without_a_difference_say_nothing():
    assert verdict([-1] * 20) == "return"
    assert verdict([1] * 20) == "trust"
    assert verdict([0] * 1000) == "open"
    assert verdict([-1, 1] * 4) == "open"


# ---- exploration


SCORES = np.array([9.0, 8.99, 8.98, 5.0, 4.99, 4.0, 3.99, 3.98, 1.0])


def test_only_near_ties_below_the_third_place_are_swapped():
    seen = Counter()
    for day in range(400):
        found = explore(list("abcdefghi"), SCORES, query="report", day=day)
        assert found.order[:3] == list("abc")
        assert found.propensities.tolist() == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 1, 1]
        assert set(found.order[3:5]) == {"d", "e"}
        assert set(found.order[5:7]) == {"f", "g"}
        assert found.order[7:] == ["h", "i"]
        seen["".join(found.order[3:7])] += 1
    assert len(seen) == 4
    assert all(abs(count - 100) < 4 * math.sqrt(400 * 0.25 * 0.75) for count in seen.values())  # fixed seeds


def test_exploration_is_the_same_for_a_query_within_a_day_and_never_meets_memory():
    one, two = (explore(list("abcdefghi"), SCORES, query="report", day=20_000) for _ in range(2))
    assert one.order == two.order
    for day in range(50):
        found = explore(list("abcdefghi"), SCORES, query="report", day=day, remembered=True)
        assert found.order == list("abcdefghi")
        assert (found.propensities == 1).all()


@pytest.mark.parametrize("order", ["", "a", "abcd"])
def test_short_lists_are_left_as_they_are(order):
    found = explore(list(order), np.zeros(len(order)), query="q", day=1)
    assert found.order == list(order)


def test_scores_that_are_no_numbers_are_no_ties():
    found = explore(list("abcdef"), np.full(6, np.nan), query="q", day=1)
    assert found.order == list("abcdef")
