"""Who takes part in a round, with how many interactions."""

import itertools
import tracemalloc

import numpy as np
import pytest
from by_hand import fit
from hypothesis import given
from hypothesis import strategies as st

from foltr.federation.schedule import (
    interactions_of,
    max_participation,
    random_cohort,
    round_robin_cohort,
    synchronous,
)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 10**6), st.integers(1, 10**6))
def test_nobody_is_picked_twice(clients, size, seed, round):
    chosen = random_cohort(clients, size, seed=seed, round=round)
    assert len(chosen) == min(size, clients)
    assert (np.diff(chosen) > 0).all()  # in rising order, so without repeats
    assert chosen.min() >= 0
    assert chosen.max() < clients


def test_without_a_cohort_everybody_takes_part():
    assert random_cohort(5, None, seed=1, round=1).tolist() == [0, 1, 2, 3, 4]
    assert random_cohort(5, 5, seed=1, round=1).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("clients", "size"), [(6, 3), (5, 4)])
def test_all_cohorts_are_equally_likely(clients, size):
    cohorts = list(itertools.combinations(range(clients), size))
    seen = [tuple(random_cohort(clients, size, seed=71, round=round).tolist()) for round in range(1, 5001)]
    assert fit(seen, dict.fromkeys(cohorts, 1 / len(cohorts))) > 1e-3  # false alarm 1 in 1,000 for each of the two


def test_a_cohort_depends_on_seed_and_round_only():
    here = random_cohort(1000, 20, seed=1, round=5)
    assert np.array_equal(here, random_cohort(1000, 20, seed=1, round=5))
    assert not np.array_equal(here, random_cohort(1000, 20, seed=1, round=6))
    assert not np.array_equal(here, random_cohort(1000, 20, seed=2, round=5))


def test_a_cohort_of_a_billion_needs_no_list_of_a_billion():
    """A list of everybody would be 8 GB; the cohort itself is 8 kB."""
    random_cohort(10, 2, seed=1, round=1)  # compiles
    tracemalloc.start()
    try:
        chosen = random_cohort(10**9, 1000, seed=1, round=1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000
    assert len(chosen) == 1000
    # the median of 1,000 of a billion: below or above by more than a tenth of the range less than once in 10^9
    assert 4e8 < np.median(chosen) < 6e8


def test_interactions_follow_a_pattern_over_clients():
    assert interactions_of(np.array([0, 1, 2, 3, 7]), 4).tolist() == [4, 4, 4, 4, 4]
    assert interactions_of(np.array([0, 1, 2, 3, 4, 7]), (1, 3, 5)).tolist() == [1, 3, 5, 1, 3, 3]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10**6))
def test_in_round_robin_nobody_takes_part_again_before_everybody_has(clients, size, seed):
    size = min(size, clients)
    cohorts = clients // size
    for cycle in range(3):
        rounds = range(1 + cycle * cohorts, 1 + (cycle + 1) * cohorts)
        chosen = np.concatenate([round_robin_cohort(clients, size, seed=seed, round=round) for round in rounds])
        assert len(np.unique(chosen)) == len(chosen) == cohorts * size


def test_cycles_of_round_robin_are_shuffled_anew():
    first, second = (
        [round_robin_cohort(1000, 100, seed=1, round=round).tolist() for round in range(start, start + 10)]
        for start in (1, 11)
    )
    assert first != second  # by chance once in more than 10^900


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60), st.booleans())
def test_nobody_takes_part_more_often_than_the_bound(clients, size, rounds, round_robin):
    size = min(size, clients)
    schedule = synchronous(clients, 1, rounds, cohort=size, round_robin=round_robin, seed=3)
    counts = np.zeros(clients, np.int64)
    for round in schedule.rounds:
        counts[schedule.members(round).clients] += 1
    bound = max_participation(clients, size, round_robin=round_robin, rounds=rounds)
    assert counts.max() <= bound


def test_clients_that_are_left_out_never_take_part_and_the_others_do_as_before():
    whole = synchronous(20, (4, 2, 3), 30, cohort=5, seed=2)
    rest = synchronous(20, (4, 2, 3), 30, cohort=5, seed=2, without=[3, 7])
    for round in rest.rounds:
        everybody, members = whole.members(round), rest.members(round)
        stays = ~np.isin(everybody.clients, [3, 7])
        assert members.clients.tolist() == everybody.clients[stays].tolist()
        assert members.interactions.tolist() == everybody.interactions[stays].tolist()


def test_the_same_members_in_every_round_are_known_to_be_so():
    assert synchronous(5, 1, 3).fixed
    assert synchronous(5, 1, 3, cohort=5).fixed
    assert not synchronous(5, 1, 3, cohort=4).fixed
