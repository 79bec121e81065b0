"""Who takes part in a round, with how many interactions, and how their updates are averaged."""

import itertools
import tracemalloc

import numpy as np
import pytest
from by_hand import fit
from hypothesis import given
from hypothesis import strategies as st

from foltr.federation.aggregators import weighted_mean, weighted_sum
from foltr.federation.schedule import interactions_of, pick


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 10**6), st.integers(1, 10**6))
def test_nobody_is_picked_twice(clients, size, seed, round):
    chosen = pick(clients, size, seed=seed, round=round)
    assert len(chosen) == min(size, clients)
    assert (np.diff(chosen) > 0).all()  # in rising order, so without repeats
    assert chosen.min() >= 0
    assert chosen.max() < clients


def test_without_a_cohort_everybody_takes_part():
    assert pick(5, None, seed=1, round=1).tolist() == [0, 1, 2, 3, 4]
    assert pick(5, 5, seed=1, round=1).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("clients", "size"), [(6, 3), (5, 4)])
def test_all_cohorts_are_equally_likely(clients, size):
    cohorts = list(itertools.combinations(range(clients), size))
    seen = [tuple(pick(clients, size, seed=71, round=round).tolist()) for round in range(1, 5001)]
    assert fit(seen, dict.fromkeys(cohorts, 1 / len(cohorts))) > 1e-3  # false alarm 1 in 1,000 for each of the two


def test_a_cohort_depends_on_seed_and_round_only():
    here = pick(1000, 20, seed=1, round=5)
    assert np.array_equal(here, pick(1000, 20, seed=1, round=5))
    assert not np.array_equal(here, pick(1000, 20, seed=1, round=6))
    assert not np.array_equal(here, pick(1000, 20, seed=2, round=5))


def test_a_cohort_of_a_billion_needs_no_list_of_a_billion():
    """A list of everybody would be 8 GB; the cohort itself is 8 kB."""
    pick(10, 2, seed=1, round=1)  # compiles
    tracemalloc.start()
    try:
        chosen = pick(10**9, 1000, seed=1, round=1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000
    assert len(chosen) == 1000
    # the middle of 1,000 of a billion: below or above by more than a tenth of the range less than once in 10^9
    assert 4e8 < np.median(chosen) < 6e8


def test_interactions_follow_a_pattern_over_clients():
    assert interactions_of(np.array([0, 1, 2, 3, 7]), 4).tolist() == [4, 4, 4, 4, 4]
    assert interactions_of(np.array([0, 1, 2, 3, 4, 7]), (1, 3, 5)).tolist() == [1, 3, 5, 1, 3, 3]


def test_an_average_by_hand():
    updates, weights = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 80.0]]), np.array([1, 2, 1])
    assert weighted_mean(updates, weights).tolist() == [(1 + 4 + 4) / 4, (10 + 40 + 80) / 4]
    assert weighted_sum(updates, np.array([1, 0, -1])).tolist() == [1 - 4, 10 - 80]


@given(st.integers(1, 40), st.integers(1, 9))
def test_an_average_is_that_of_numpy(clients, size):
    updates = np.cos(np.arange(clients * size)).reshape(clients, size)
    weights = 1 + np.arange(clients) % 4
    assert weighted_mean(updates, weights) == pytest.approx(np.average(updates, axis=0, weights=weights), abs=1e-13)
