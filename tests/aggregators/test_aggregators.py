"""One contract for all aggregators: order, translation, scale, agreement, attackers' influence, and a slow oracle."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from slow_aggregators import ORACLES, distance

from foltr import registry
from foltr.errors import SpecError
from foltr.federation.aggregators import FedAvg, aggregator_kind, check_num_byzantine, weighted_mean, weighted_sum
from foltr.federation.krum import pairwise_distances
from foltr.lab.simulation.rounds import compiled_aggregator, compiled_mean
from foltr.rng import stream
from foltr.testing import check_aggregator

AGGREGATORS = registry.names("aggregator")

ROBUST = [name for name in AGGREGATORS if name != "fedavg"]
SEEDS = st.integers(0, 2**32)
aggregators = pytest.mark.parametrize("name", AGGREGATORS)


def scene(seed, clients, width=4):
    """Deltas and weights; normal numbers, so that no two scores are the same but by construction."""
    draws = stream(seed, purpose="choice")
    deltas = draws.skip(100).normal(clients * width).reshape(clients, width)
    return deltas, draws.skip(10_000).integers(9, clients) + 1


def apply(name, deltas, weights, num_byzantine=0):
    return aggregator_kind(name)()(deltas, weights, num_byzantine=num_byzantine)


def sizes(name, *, no_ties=False):
    """(clients, num_byzantine) that the aggregator allows; on request without those where clients always tie."""
    one = aggregator_kind(name)()
    pairs = [(n, m) for n in range(1, 19) for m in range(one.max_byzantine(n) + 1)]
    return [(n, m) for n, m in pairs if not (no_ties and hasattr(one, "has_ties") and one.has_ties(n, m))]


@aggregators
def test_every_aggregator_keeps_the_contract(name):
    check_aggregator(aggregator_kind(name))


def test_only_fedavg_needs_no_more_than_the_sum():
    assert [name for name in AGGREGATORS if aggregator_kind(name).sees == "sum"] == ["fedavg"]


@pytest.mark.parametrize(
    ("name", "tied"),
    [
        ("krum", {(3, 0), (4, 1), (5, 2)}),  # n - m - 2 neighbours
        (
            "bulyan",
            {(n, m) for n in range(7, 19) for m in (1, 2) if n >= 4 * m + 3},
        ),  # 2 m + 1 clients, m - 1 neighbours
    ],
)
def test_ties_are_where_a_client_is_judged_by_a_single_neighbour(name, tied):
    """Two clients that are each other's nearest neighbours then have the same score."""
    assert {*sizes(name)} - {*sizes(name, no_ties=True)} == tied


@aggregators
@given(data=st.data(), seed=SEEDS)
def test_the_order_of_clients_does_not_matter(name, data, seed):
    clients, num_byzantine = data.draw(st.sampled_from(sizes(name, no_ties=True)))
    deltas, weights = scene(seed, clients)
    order = data.draw(st.permutations(range(clients)))
    expected = apply(name, deltas, weights, num_byzantine)
    assert apply(name, deltas[order], weights[order], num_byzantine) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("name", [name for name in AGGREGATORS if name != "norm_bounding"])
@given(data=st.data(), seed=SEEDS)
def test_moving_everything_moves_the_result(name, data, seed):
    clients, num_byzantine = data.draw(st.sampled_from(sizes(name, no_ties=True)))
    deltas, weights = scene(seed, clients)
    move = stream(seed + 1, purpose="choice").normal(4)
    expected = apply(name, deltas, weights, num_byzantine) + move
    assert apply(name, deltas + move, weights, num_byzantine) == pytest.approx(expected, abs=1e-7)


@aggregators
@given(data=st.data(), seed=SEEDS, factor=st.sampled_from([2.0**-30, 0.5, 4.0, 2.0**30]))
def test_scaling_everything_scales_the_result(name, data, seed, factor):
    """Powers of two are exact, so there is no rounding in between: even the geometric median's stop is the same."""
    clients, num_byzantine = data.draw(st.sampled_from(sizes(name, no_ties=True)))
    deltas, weights = scene(seed, clients)
    expected = factor * apply(name, deltas, weights, num_byzantine)
    assert apply(name, factor * deltas, weights, num_byzantine) == pytest.approx(expected, rel=1e-9)


@aggregators
@given(data=st.data(), seed=SEEDS)
def test_all_aggregators_agree_on_identical_updates(name, data, seed):
    clients, num_byzantine = data.draw(st.sampled_from(sizes(name)))
    deltas, weights = scene(seed, clients)
    deltas[:] = deltas[0]
    assert apply(name, deltas, weights, num_byzantine) == pytest.approx(deltas[0], abs=1e-14)


@pytest.mark.parametrize("name", [name for name in AGGREGATORS if name != "geometric_median"])
@given(data=st.data(), seed=SEEDS)
def test_every_aggregator_equals_its_slow_oracle(name, data, seed):
    clients, num_byzantine = data.draw(st.sampled_from(sizes(name)))
    deltas, weights = scene(seed, clients)
    expected = ORACLES[name](deltas.tolist(), weights=weights.tolist(), num_byzantine=num_byzantine)
    assert apply(name, deltas, weights, num_byzantine) == pytest.approx(expected, abs=1e-12)


@given(seed=SEEDS, clients=st.integers(1, 12))
@example(seed=0, clients=2)
@settings(max_examples=40)
def test_no_point_is_nearer_to_all_than_the_geometric_median(seed, clients):
    """Neither the slow oracle's, nor an update, nor any around. The point itself need not be unique: two clients."""
    deltas, weights = scene(seed, clients)
    found = apply("geometric_median", deltas, weights)

    def total(point):
        return sum(w * distance(point, update) for w, update in zip(weights, deltas, strict=True))

    around = found + 1e-3 * stream(seed + 1, purpose="choice").normal(20 * 4).reshape(20, 4)
    slow = ORACLES["geometric_median"](deltas.tolist(), weights=weights.tolist())
    assert total(found) <= min(total(point) for point in [slow, *around, *deltas]) * (1 + 1e-7) + 1e-12


def attacked(name, seed, size):
    """Honest deltas of more than half of the clients, and as many arbitrary ones as the aggregator withstands."""
    draws = stream(seed, purpose="choice")
    clients, num_byzantine = [(n, m) for n, m in sizes(name) if m > 0][size % 10]
    deltas, weights = scene(seed, clients)
    wild = 10.0 ** (draws.uniform(1)[0] * 40 - 4)
    lies = wild * draws.skip(500).normal(num_byzantine * 4).reshape(num_byzantine, 4)
    if draws.skip(600).uniform(1)[0] < 0.5:
        lies[:] = lies[0]
    return np.concatenate([lies, deltas[num_byzantine:]]), weights, num_byzantine


@pytest.mark.parametrize("name", ["trimmed_mean", "median"])
@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_out_of_the_honest_values(name, seed, size):
    deltas, weights, num_byzantine = attacked(name, seed, size)
    result, honest = apply(name, deltas, weights, num_byzantine), deltas[num_byzantine:]
    assert (result >= honest.min(axis=0) - 1e-12).all()
    assert (result <= honest.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("name", ["krum", "multi_krum"])
@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_krum_far_from_honest_clients(name, seed, size):
    """Whoever is taken has a score no larger than some honest one's, and an honest client among its nearest."""
    deltas, weights, num_byzantine = attacked(name, seed, size)
    clients, honest = len(deltas), deltas[num_byzantine:]
    assume(clients >= 2 * num_byzantine + 2)
    reach = (clients - num_byzantine - 2) * pairwise_distances(honest).max()
    centre = honest.mean(axis=0)
    farthest = max(distance(centre, one) for one in honest)
    assert distance(apply(name, deltas, weights, num_byzantine), centre) <= farthest + reach + 1e-9


def test_krum_takes_identical_attackers_where_one_more_than_half_is_honest():
    deltas, weights = scene(1, 9)
    deltas[:4] = 1e6
    assert apply("krum", deltas, weights, num_byzantine=4).tolist() == [1e6] * 4  # their 3 nearest are at distance 0


@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_bulyan_farther_than_one_honest_width(seed, size):
    deltas, weights, num_byzantine = attacked("bulyan", seed, size)
    result, honest = apply("bulyan", deltas, weights, num_byzantine), deltas[num_byzantine:]
    low, high = honest.min(axis=0), honest.max(axis=0)
    assert (result >= low - (high - low) - 1e-12).all()
    assert (result <= high + (high - low) + 1e-12).all()


@given(seed=SEEDS, size=st.integers(0, 9))
def test_attackers_cannot_lead_the_geometric_median_past_its_bound(seed, size):
    deltas, _, num_byzantine = attacked("geometric_median", seed, size)
    point = stream(seed + 1, purpose="choice").normal(4)  # any
    share = num_byzantine / len(deltas)
    farthest = max(distance(point, one) for one in deltas[num_byzantine:])
    result = apply("geometric_median", deltas, np.ones(len(deltas)), num_byzantine)
    assert distance(result, point) <= 2 * (1 - share) / (1 - 2 * share) * farthest * (1 + 1e-5)


@given(seed=SEEDS, size=st.integers(0, 9))
def test_the_mean_of_bounded_deltas_is_no_longer_than_the_longest_honest_one(seed, size):
    deltas, weights, num_byzantine = attacked("norm_bounding", seed, size)
    longest = np.linalg.norm(deltas[num_byzantine:], axis=1).max()
    assert np.linalg.norm(apply("norm_bounding", deltas, weights, num_byzantine)) <= longest * (1 + 1e-9)


def test_bounded_deltas_by_hand():
    # norms 1, 5, 10: the median 5 halves the last; weights 2, 1, 1
    deltas = np.array([[1.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    result = apply("norm_bounding", deltas, np.array([2, 1, 1]))
    assert result.tolist() == [(2 * 1 + 3 + 3) / 4, (2 * 0 + 4 + 4) / 4]


@pytest.mark.parametrize(
    ("name", "weighs"), [(name, name in {"fedavg", "geometric_median", "norm_bounding"}) for name in AGGREGATORS]
)
def test_interactions_weigh_where_the_paper_has_weights(name, weighs):
    deltas, _ = scene(3, 7)
    one, other = (apply(name, deltas, np.array(weights), 1) for weights in ([1] * 7, [1, 1, 1, 1, 1, 1, 50]))
    assert (one.tolist() != other.tolist()) == weighs


def test_a_client_with_half_of_the_weight_is_the_geometric_median():
    deltas, _ = scene(4, 5)
    assert apply("geometric_median", deltas, np.array([1, 1, 4, 1, 1])).tolist() == deltas[2].tolist()


@aggregators
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_an_update_that_is_not_finite_counts_as_absent(name, broken):
    deltas, weights = scene(5, 7)
    deltas[2, 1] = broken
    others = [0, 1, 3, 4, 5, 6]
    expected = apply(name, deltas[others], weights[others], num_byzantine=0)
    assert apply(name, deltas, weights, num_byzantine=1).tolist() == expected.tolist()


@aggregators
def test_nothing_finite_gives_zero(name):
    _, weights = scene(6, 5)
    result = apply(name, np.full((5, 4), np.nan), weights, num_byzantine=2)
    assert result.tolist() == [0.0] * 4


@aggregators
@pytest.mark.parametrize("left", [1, 2, 3])
def test_too_few_finite_updates_still_give_something_between_them(name, left):
    deltas, weights = scene(7, 9)
    deltas[left:] = np.inf
    result = apply(name, deltas, weights, num_byzantine=1)
    low, high = (edge(np.vstack([deltas[:left], np.zeros(4)]), axis=0) for edge in (np.min, np.max))
    assert (result >= low - 1e-12).all()
    assert (result <= high + 1e-12).all()


@pytest.mark.parametrize("name", ROBUST)
def test_finite_updates_whose_squares_overflow_are_far_away_and_no_more(name):
    deltas, weights = scene(8, 11)
    deltas[:2] = [[1e200], [-1e200]]
    assert np.abs(apply(name, deltas, weights, num_byzantine=2)).max() < 20


@aggregators
def test_updates_are_read_only(name):
    deltas, weights = scene(9, 11)
    for array in (deltas, weights):
        array.flags.writeable = False
    result = apply(name, deltas, weights, num_byzantine=2)
    assert result.flags.writeable
    assert not np.shares_memory(result, deltas)


def test_fedavg_is_the_weighted_sum_over_the_weights():
    deltas, weights = scene(10, 6)
    plain = weighted_sum(deltas, weights) / np.sum(weights)
    assert weighted_mean(deltas, weights).tolist() == plain.tolist()
    assert apply("fedavg", deltas, weights, num_byzantine=2).tolist() == plain.tolist()


def test_krum_takes_the_earliest_of_equals():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert apply("krum", square, np.ones(4)).tolist() == [0.0, 0.0]
    assert apply("krum", square[::-1], np.ones(4)).tolist() == [1.0, 1.0]


def test_krum_sums_distances_that_are_not_squared():
    line = np.array([[3.0], [4.0], [-4.0], [0.0], [10.0]])
    # sums of the 3 nearest: 3: 1 + 3 + 7, 4: 1 + 4 + 6, -4: 4 + 7 + 8, 0: 3 + 4 + 4, 10: 6 + 7 + 10
    # of their squares:      3: 59,         4: 53,         -4: 129,       0: 41
    assert apply("krum", line, np.ones(5)).tolist() == [3.0]


@pytest.mark.parametrize("clients", [65, 80])
def test_the_matrix_product_gives_the_same_distances(clients):
    deltas, _ = scene(11, clients, width=1500)
    deltas[7] = deltas[3]
    distances = pairwise_distances(deltas)
    slow = np.linalg.norm(deltas[:, None] - deltas[None], axis=-1)
    assert distances == pytest.approx(slow, rel=1e-9)
    assert distances[3, 7] == distances[7, 3] == 0
    assert (distances.diagonal() == 0).all()


def test_many_identical_updates_are_at_distance_zero_from_each_other():
    deltas, _ = scene(12, 100, width=300)
    deltas[:] = deltas[0]
    assert not pairwise_distances(deltas).any()


def test_overflow_in_the_matrix_product_is_far_away_and_never_nan():
    deltas, weights = scene(13, 80)
    deltas[0], deltas[1] = 1e200, -1e200
    distances = pairwise_distances(deltas)
    assert np.isinf(distances[:2, 2:]).all()
    assert np.isfinite(distances[2:, 2:]).all()
    assert np.abs(apply("krum", deltas, weights, num_byzantine=2)).max() < 20


@pytest.mark.parametrize(
    ("name", "clients", "most"),
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
def test_the_allowed_range_of_attackers(name, clients, most):
    for num_byzantine in range(most + 1):
        check_num_byzantine(aggregator_kind(name)(), clients, num_byzantine)
    for num_byzantine in (-1, most + 1, clients):
        with pytest.raises(SpecError, match=f"use 0 to {most}"):
            check_num_byzantine(aggregator_kind(name)(), clients, num_byzantine)


@pytest.mark.parametrize("name", ["krum", "multi_krum", "bulyan"])
def test_krum_and_its_kin_need_three_clients(name):
    with pytest.raises(SpecError, match="at least 3"):
        check_num_byzantine(aggregator_kind(name)(), 2, 0)


def test_a_wrong_name_lists_the_aggregators():
    with pytest.raises(SpecError, match="no aggregator 'mode'; there are fedavg, krum, multi_krum"):
        aggregator_kind("mode")


@pytest.mark.parametrize("broken", [None, np.nan, np.inf, 1e200])
@pytest.mark.parametrize("weights", [[1, 2, 3, 4], [0.1, 0.2, 0.1, 0.1], [0, 0, 0, 0]], ids=str)
def test_the_compiled_mean_is_fedavg(broken, weights):
    values = stream(3, purpose="choice").normal(12).reshape(4, 3)
    if broken is not None:
        values[2, 1] = broken
    updates = values, np.array(weights)
    assert np.array_equal(compiled_mean(*updates, num_byzantine=1), FedAvg()(*updates, num_byzantine=1))


def test_the_kernel_runs_where_a_weighted_mean_is_declared_and_nowhere_else():
    """A plug-in that declares the trait gets it as well; the name or the type of the class does not matter."""
    assert compiled_aggregator("fedavg") is compiled_mean
    others = [name for name in registry.names("aggregator") if name != "fedavg"]
    assert len(others) > 5
    assert all(compiled_aggregator(name) is not compiled_mean for name in others)
