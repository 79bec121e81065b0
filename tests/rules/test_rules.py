"""One contract for all rules: order, translation, scale, agreement, attackers' influence, and a slow oracle."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from slow_rules import ORACLES, distance

from foltr.errors import SpecError
from foltr.federation.aggregators import AGGREGATORS, check_aggregator, fedavg, max_byzantine, weighted_sum
from foltr.federation.krum import distances
from foltr.rng import stream

ROBUST = [name for name in AGGREGATORS if name != "fedavg"]
SEEDS = st.integers(0, 2**32)
rules = pytest.mark.parametrize("rule", AGGREGATORS)


def scene(seed, clients, width=4, spread=1.0):
    """Updates, weights and start; normal numbers, so that no two scores are the same but by construction."""
    draws = stream(seed, purpose="choice")
    start = draws.normal(width)
    steps = draws.skip(100).normal(clients * width).reshape(clients, width)
    return start + spread * steps, draws.skip(10_000).integers(9, clients) + 1, start


def apply(rule, updates, weights, start, bad=0):
    return AGGREGATORS[rule](updates, weights, bad=bad, start=start)


def sizes(rule, *, no_ties=False):
    """(clients, bad) that the rule allows. No ties: nobody is judged by a single neighbour, where pairs always tie."""
    pairs = [(n, m) for n in range(1, 19) for m in range(max_byzantine(rule, n) + 1)]
    if no_ties and rule in ("krum", "multi_krum"):
        return [(n, m) for n, m in pairs if n - m - 2 >= 2]
    if no_ties and rule == "bulyan":
        return [(n, m) for n, m in pairs if m == 0 or m >= 3]
    return pairs


@rules
@given(data=st.data(), seed=SEEDS)
def test_the_order_of_clients_does_not_matter(rule, data, seed):
    clients, bad = data.draw(st.sampled_from(sizes(rule, no_ties=True)))
    updates, weights, start = scene(seed, clients)
    order = data.draw(st.permutations(range(clients)))
    expected = apply(rule, updates, weights, start, bad)
    assert apply(rule, updates[order], weights[order], start, bad) == pytest.approx(expected, abs=1e-7)


@rules
@given(data=st.data(), seed=SEEDS)
def test_moving_everything_moves_the_result(rule, data, seed):
    clients, bad = data.draw(st.sampled_from(sizes(rule, no_ties=True)))
    updates, weights, start = scene(seed, clients)
    move = stream(seed + 1, purpose="choice").normal(4)
    expected = apply(rule, updates, weights, start, bad) + move
    assert apply(rule, updates + move, weights, start + move, bad) == pytest.approx(expected, abs=1e-7)


@rules
@given(data=st.data(), seed=SEEDS, factor=st.sampled_from([2.0**-30, 0.5, 4.0, 2.0**30]))
def test_scaling_everything_scales_the_result(rule, data, seed, factor):
    """Powers of two are exact, so there is no rounding in between: even the geometric median's stop is the same."""
    clients, bad = data.draw(st.sampled_from(sizes(rule, no_ties=True)))
    updates, weights, start = scene(seed, clients)
    expected = factor * apply(rule, updates, weights, start, bad)
    assert apply(rule, factor * updates, weights, factor * start, bad) == pytest.approx(expected, rel=1e-9)


@rules
@given(data=st.data(), seed=SEEDS)
def test_all_rules_agree_on_identical_updates(rule, data, seed):
    clients, bad = data.draw(st.sampled_from(sizes(rule)))
    updates, weights, start = scene(seed, clients)
    updates[:] = updates[0]
    assert apply(rule, updates, weights, start, bad) == pytest.approx(updates[0], abs=1e-14)


@pytest.mark.parametrize("rule", [name for name in AGGREGATORS if name != "geometric_median"])
@given(data=st.data(), seed=SEEDS)
def test_every_rule_equals_its_slow_oracle(rule, data, seed):
    clients, bad = data.draw(st.sampled_from(sizes(rule)))
    updates, weights, start = scene(seed, clients)
    expected = ORACLES[rule](updates.tolist(), weights=weights.tolist(), bad=bad, start=start.tolist())
    assert apply(rule, updates, weights, start, bad) == pytest.approx(expected, abs=1e-12)


@given(seed=SEEDS, clients=st.integers(1, 12))
@example(seed=0, clients=2)
@settings(max_examples=40)
def test_no_point_is_nearer_to_all_than_the_geometric_median(seed, clients):
    """Neither the slow oracle's, nor an update, nor any around. The point itself need not be unique: two clients."""
    updates, weights, start = scene(seed, clients)
    found = apply("geometric_median", updates, weights, start)

    def total(point):
        return sum(w * distance(point, update) for w, update in zip(weights, updates, strict=True))

    around = found + 1e-3 * stream(seed + 1, purpose="choice").normal(20 * 4).reshape(20, 4)
    slow = ORACLES["geometric_median"](updates.tolist(), weights=weights.tolist())
    assert total(found) <= min(total(point) for point in [slow, *around, *updates]) * (1 + 1e-7) + 1e-12


def attacked(rule, seed, size):
    """UserLevelDP updates of more than half of the clients, and as many arbitrary ones as the rule bears."""
    draws = stream(seed, purpose="choice")
    clients, bad = [(n, m) for n, m in sizes(rule) if m > 0][size % 10]
    updates, weights, start = scene(seed, clients)
    wild = 10.0 ** (draws.uniform(1)[0] * 40 - 4)
    lies = wild * draws.skip(500).normal(bad * 4).reshape(bad, 4)
    if draws.skip(600).uniform(1)[0] < 0.5:
        lies[:] = lies[0]
    return np.concatenate([lies, updates[bad:]]), weights, start, bad


@pytest.mark.parametrize("rule", ["trimmed_mean", "median"])
@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_out_of_the_honest_values(rule, seed, size):
    updates, weights, start, bad = attacked(rule, seed, size)
    result, honest = apply(rule, updates, weights, start, bad), updates[bad:]
    assert (result >= honest.min(axis=0) - 1e-12).all()
    assert (result <= honest.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("rule", ["krum", "multi_krum"])
@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_krum_far_from_honest_clients(rule, seed, size):
    """Whoever is taken has a score no larger than some honest one's, and an honest client among its nearest."""
    updates, weights, start, bad = attacked(rule, seed, size)
    clients, honest = len(updates), updates[bad:]
    assume(clients >= 2 * bad + 2)
    reach = (clients - bad - 2) * distances(honest, start).max()
    centre = honest.mean(axis=0)
    farthest = max(distance(centre, one) for one in honest)
    assert distance(apply(rule, updates, weights, start, bad), centre) <= farthest + reach + 1e-9


def test_krum_takes_identical_attackers_where_one_more_than_half_is_honest():
    updates, weights, start = scene(1, 9)
    updates[:4] = 1e6
    assert apply("krum", updates, weights, start, bad=4).tolist() == [1e6] * 4  # their 3 nearest are at distance 0


@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_bulyan_farther_than_one_honest_width(seed, size):
    updates, weights, start, bad = attacked("bulyan", seed, size)
    result, honest = apply("bulyan", updates, weights, start, bad), updates[bad:]
    low, high = honest.min(axis=0), honest.max(axis=0)
    assert (result >= low - (high - low) - 1e-12).all()
    assert (result <= high + (high - low) + 1e-12).all()


@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_the_geometric_median_past_its_bound(seed, size):
    updates, _, start, bad = attacked("geometric_median", seed, size)
    share = bad / len(updates)
    farthest = max(distance(start, one) for one in updates[bad:])
    result = apply("geometric_median", updates, np.ones(len(updates)), start, bad)
    assert distance(result, start) <= 2 * (1 - share) / (1 - 2 * share) * farthest * (1 + 1e-5)


@given(seed=SEEDS, size=st.integers(0, 9))
def test_bounded_steps_lead_no_farther_than_the_farthest_honest_client(seed, size):
    updates, weights, start, bad = attacked("norm_bounding", seed, size)
    farthest = max(distance(start, one) for one in updates[bad:])
    assert distance(apply("norm_bounding", updates, weights, start, bad), start) <= farthest * (1 + 1e-9)


def test_bounded_steps_by_hand():
    # norms 1, 5, 10 from the start (1, 1): the median 5 halves the last; weights 2, 1, 1
    updates = np.array([[2.0, 1.0], [4.0, 5.0], [7.0, 9.0]])
    result = apply("norm_bounding", updates, np.array([2, 1, 1]), np.ones(2))
    assert result.tolist() == [1 + (2 * 1 + 3 + 3) / 4, 1 + (2 * 0 + 4 + 4) / 4]


@pytest.mark.parametrize(
    ("rule", "weighs"), [(rule, rule in {"fedavg", "geometric_median", "norm_bounding"}) for rule in AGGREGATORS]
)
def test_interactions_weigh_where_the_paper_has_weights(rule, weighs):
    updates, _, start = scene(3, 7)
    one, other = (apply(rule, updates, np.array(weights), start, 1) for weights in ([1] * 7, [1, 1, 1, 1, 1, 1, 50]))
    assert (one.tolist() != other.tolist()) == weighs


def test_a_client_with_half_of_the_weight_is_the_geometric_median():
    updates, _, start = scene(4, 5)
    assert apply("geometric_median", updates, np.array([1, 1, 4, 1, 1]), start).tolist() == updates[2].tolist()


@rules
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_an_update_that_is_not_finite_counts_as_absent(rule, broken):
    updates, weights, start = scene(5, 7)
    updates[2, 1] = broken
    others = [0, 1, 3, 4, 5, 6]
    expected = apply(rule, updates[others], weights[others], start, bad=0)
    assert apply(rule, updates, weights, start, bad=1).tolist() == expected.tolist()


@rules
def test_nothing_finite_leaves_the_start(rule):
    _, weights, start = scene(6, 5)
    result = apply(rule, np.full((5, 4), np.nan), weights, start, bad=2)
    assert result.tolist() == start.tolist()
    assert result is not start


@rules
@pytest.mark.parametrize("left", [1, 2, 3])
def test_too_few_finite_updates_still_give_something_between_them(rule, left):
    updates, weights, start = scene(7, 9)
    updates[left:] = np.inf
    result = apply(rule, updates, weights, start, bad=1)
    low, high = (edge(np.vstack([updates[:left], start]), axis=0) for edge in (np.min, np.max))
    assert (result >= low - 1e-12).all()
    assert (result <= high + 1e-12).all()


@pytest.mark.parametrize("rule", ROBUST)
def test_finite_updates_whose_squares_overflow_are_far_away_and_no_more(rule):
    updates, weights, start = scene(8, 11)
    updates[:2] = [[1e200], [-1e200]]
    assert np.abs(apply(rule, updates, weights, start, bad=2) - start).max() < 20


@rules
def test_updates_are_read_only(rule):
    updates, weights, start = scene(9, 11)
    for array in (updates, weights, start):
        array.flags.writeable = False
    result = apply(rule, updates, weights, start, bad=2)
    assert result.flags.writeable
    assert not np.shares_memory(result, updates)


def test_fedavg_is_the_weighted_sum_over_the_weights():
    updates, weights, start = scene(10, 6)
    plain = weighted_sum(updates, weights) / np.sum(weights)
    assert fedavg(updates, weights).tolist() == plain.tolist()
    assert apply("fedavg", updates, weights, start, bad=2).tolist() == plain.tolist()


def test_krum_takes_the_earliest_of_equals():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert apply("krum", square, np.ones(4), np.zeros(2)).tolist() == [0.0, 0.0]
    assert apply("krum", square[::-1], np.ones(4), np.zeros(2)).tolist() == [1.0, 1.0]


def test_krum_sums_distances_that_are_not_squared():
    line = np.array([[3.0], [4.0], [-4.0], [0.0], [10.0]])
    # sums of the 3 nearest: 3: 1 + 3 + 7, 4: 1 + 4 + 6, -4: 4 + 7 + 8, 0: 3 + 4 + 4, 10: 6 + 7 + 10
    # of their squares:      3: 59,         4: 53,         -4: 129,       0: 41
    assert apply("krum", line, np.ones(5), np.zeros(1)).tolist() == [3.0]


@pytest.mark.parametrize("clients", [65, 80])
def test_the_matrix_product_gives_the_same_distances(clients):
    updates, _, start = scene(11, clients, width=1500)
    updates[7] = updates[3]
    gaps = distances(updates, start)
    slow = np.linalg.norm(updates[:, None] - updates[None], axis=-1)
    assert gaps == pytest.approx(slow, rel=1e-9)
    assert gaps[3, 7] == gaps[7, 3] == 0
    assert (gaps.diagonal() == 0).all()


def test_many_identical_updates_are_at_distance_zero_from_each_other():
    updates, _, start = scene(12, 100, width=300)
    updates[:] = updates[0]
    assert not distances(updates, start).any()


def test_overflow_in_the_matrix_product_is_far_away_and_never_nan():
    updates, weights, start = scene(13, 80)
    updates[0], updates[1] = 1e200, -1e200
    gaps = distances(updates, start)
    assert np.isinf(gaps[:2, 2:]).all()
    assert np.isfinite(gaps[2:, 2:]).all()
    assert np.abs(apply("krum", updates, weights, start, bad=2)).max() < 20


@pytest.mark.parametrize(
    ("rule", "clients", "most"),
    [
        ("fedavg", 10, 4),
        ("fedavg", 1, 0),
        ("median", 9, 4),
        ("trimmed_mean", 10, 4),
        ("krum", 10, 4),  # the thesis
        ("multi_krum", 10, 4),
        ("krum", 4, 1),
        ("krum", 3, 0),
        ("bulyan", 11, 2),
        ("bulyan", 10, 1),
        ("bulyan", 6, 0),
    ],
)
def test_the_allowed_range_of_attackers(rule, clients, most):
    for bad in range(most + 1):
        check_aggregator(rule, clients, bad)
    for bad in (-1, most + 1, clients):
        with pytest.raises(SpecError, match=f"use 0 to {most}"):
            check_aggregator(rule, clients, bad)


@pytest.mark.parametrize("rule", ["krum", "multi_krum", "bulyan"])
def test_rules_of_neighbours_need_three_clients(rule):
    with pytest.raises(SpecError, match="at least 3"):
        check_aggregator(rule, 2, 0)


def test_a_wrong_name_lists_the_rules():
    with pytest.raises(SpecError, match="no rule 'mode'; there are fedavg, krum, multi_krum"):
        check_aggregator("mode", 10, 1)
