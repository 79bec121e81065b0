"""Sums of pairs: right, additive, and a client's can be taken out."""

import numpy as np
import pytest
from forgetting import recorded, small

from foltr.errors import SpecError
from foltr.learners.pdgd import preferences
from foltr.unlearning.logs import only, without
from foltr.unlearning.statistics import add, collect, pair_graph, solve, subtract

TASK = small()


@pytest.fixture(scope="module")
def log():
    return recorded(TASK)[1]


def slowly(log):
    """Pair by pair."""
    matrix, vector = np.zeros((6, 6)), np.zeros(6)
    for query, ranking, clicks in zip(log.queries, log.rankings, log.clicks, strict=True):
        shown = ranking >= 0
        rows = TASK.train.features[TASK.train.offsets[query] + ranking[shown]].astype(float)
        pairs = preferences(clicks[shown])
        for positive, negative in pairs:
            difference = rows[positive] - rows[negative]
            matrix += np.outer(difference, difference) / len(pairs)
            vector += difference / len(pairs)
    return matrix, vector


def test_pairs_are_those_of_pdgd_and_weigh_one_together():
    clicks = np.array([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 0, 0]], dtype=bool)
    graph = pair_graph(clicks, shown=np.array([5, 5, 5, 1]))
    for weights, row, shown in zip(graph, clicks, (5, 5, 5, 1), strict=True):
        expected = preferences(row[:shown])
        assert set(zip(*np.nonzero(weights), strict=True)) == set(expected)
        assert weights[weights > 0] == pytest.approx(1 / len(expected)) if expected else not weights.any()


def test_sums_are_those_of_the_pairs(log):
    for client, sums in collect(log, TASK.train, range(5)).items():
        matrix, vector = slowly(only(log, [client]))
        assert sums.matrix == pytest.approx(matrix, rel=1e-9, abs=1e-12)
        assert sums.vector == pytest.approx(vector, rel=1e-9, abs=1e-12)


def test_subtracting_a_client_is_learning_from_the_others(log):
    sums = collect(log, TASK.train, range(5))
    matrix, vector = slowly(without(log, [2]))
    scratch = np.linalg.solve(matrix + 0.5 * np.eye(6), vector)
    forgotten = solve(subtract(add(sums.values()), sums[2]), ridge=0.5)
    assert np.abs(forgotten - scratch).max() < 1e-6 * np.abs(scratch).max()


def test_adding_the_others_anew_has_no_bit_of_the_client(log):
    lied = log._replace(clicks=np.where((log.clients == 2)[:, None], ~log.clicks, log.clicks) & (log.rankings >= 0))
    honest, lying = (collect(one, TASK.train, range(5)) for one in (log, lied))
    assert not np.array_equal(honest[2].vector, lying[2].vector)
    rest = [solve(add(sums[client] for client in (0, 1, 3, 4)), ridge=1.0) for sums in (honest, lying)]
    assert np.array_equal(*rest)


def test_the_solution_is_the_least_squares_one(log):
    """The gradient of sum weight * (theta . difference - 1)^2 + ridge * ||theta||^2 vanishes, term by term."""
    matrix, vector = slowly(log)
    theta = solve(add(collect(log, TASK.train, range(5)).values()), ridge=0.25)
    assert matrix @ theta - vector + 0.25 * theta == pytest.approx(np.zeros(6), abs=1e-9)


def test_it_learns_what_users_like(log):
    theta = solve(add(collect(log, TASK.train, range(5)).values()), ridge=1.0)
    assert theta.argmax() == 0  # relevance follows the first feature


def test_a_client_without_a_search_has_empty_sums(log):
    sums = collect(log, TASK.train, [77])[77]
    assert not sums.matrix.any()
    assert not sums.vector.any()


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan")])
def test_without_a_ridge_there_may_be_no_solution(log, ridge):
    with pytest.raises(SpecError, match="above 0"):
        solve(add(collect(log, TASK.train, range(5)).values()), ridge=ridge)
