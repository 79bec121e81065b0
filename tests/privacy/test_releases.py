"""Who takes part how often: nobody beyond the budget, nobody twice before everybody once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foltr.federation.releases import planned, protection_of
from foltr.federation.schedule import (
    max_participation,
    participants,
    random_cohort,
    round_robin_cohort,
    synchronous,
)
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.mechanisms import Gaussian, Laplace


def releases_of(mechanism, *, clients, cohort, round_robin, rounds, parameters=3, seed=7):
    """What the ledger says of a whole federation."""
    most = max_participation(clients, cohort, round_robin=round_robin, rounds=rounds)
    protection = protection_of(mechanism, clients=clients, cohort=cohort, max_rounds=most, parameters=parameters)
    schedule = synchronous(clients, 1, rounds, cohort=cohort, round_robin=round_robin, seed=seed)
    return planned(protection, schedule, clients)


def counted(clients, cohort, *, round_robin, rounds, seed=1):
    counts = np.zeros(clients, np.int64)
    for round in range(1, rounds + 1):
        counts[participants(clients, cohort, round_robin=round_robin, seed=seed, round=round)] += 1
    return counts


@given(st.integers(1, 60), st.data(), st.integers(1, 30), st.integers(0, 10**6))
def test_nobody_takes_part_again_before_everybody_has(clients, data, rounds, seed):
    size = data.draw(st.integers(1, clients))
    counts = counted(clients, size, round_robin=True, rounds=rounds, seed=seed)
    assert counts.max() <= max_participation(clients, size, round_robin=True, rounds=rounds)
    if clients % size == 0:  # else those who are left over in a cycle pause
        assert counts.max() - counts.min() <= 1


@given(st.integers(2, 60), st.data(), st.integers(0, 10**6))
def test_cohorts_of_one_cycle_do_not_overlap(clients, data, seed):
    size = data.draw(st.integers(1, clients))
    cycle = [round_robin_cohort(clients, size, seed=seed, round=round) for round in range(1, clients // size + 1)]
    together = np.concatenate(cycle)
    assert len(np.unique(together)) == len(together) == size * (clients // size)


def test_cycles_are_shuffled_anew_and_by_seed():
    first, second = (
        [round_robin_cohort(100, 10, seed=1, round=begin + r).tolist() for r in range(1, 11)] for begin in (0, 10)
    )
    assert first != second
    assert round_robin_cohort(100, 10, seed=2, round=1).tolist() != first[0]


def test_how_often_one_can_take_part():
    assert max_participation(10, None, round_robin=False, rounds=7) == 7
    assert max_participation(10, 5, round_robin=False, rounds=7) == 7  # by chance, in all of them
    assert max_participation(10, 5, round_robin=True, rounds=7) == 4  # two cohorts in turn
    assert max_participation(10, 4, round_robin=True, rounds=7) == 4  # two again, and two people pause


def test_cohorts_are_in_turn_only_where_that_is_said():
    assert np.array_equal(
        participants(50, 5, round_robin=False, seed=3, round=2), random_cohort(50, 5, seed=3, round=2)
    )
    assert np.array_equal(
        participants(50, 5, round_robin=True, seed=3, round=2), round_robin_cohort(50, 5, seed=3, round=2)
    )
    assert participants(4, None, round_robin=True, seed=3, round=2).tolist() == [0, 1, 2, 3]


cases = st.fixed_dictionaries(
    {
        "clients": st.integers(1, 25),
        "cohort": st.none() | st.integers(1, 25),
        "round_robin": st.booleans(),
        "rounds": st.integers(1, 12),
        "cap": st.none() | st.integers(1, 6),
        "epsilon": st.sampled_from([0.5, 2.0]),
    }
)


@given(cases)
@settings(max_examples=30)
def test_nobody_exceeds_the_budget(case):
    cohort = None if case["cohort"] is None else min(case["cohort"], case["clients"])
    round_robin = case["round_robin"] and cohort is not None
    privacy = Gaussian(case["epsilon"], releases=case["cap"])
    plan = releases_of(privacy, clients=case["clients"], cohort=cohort, round_robin=round_robin, rounds=case["rounds"])
    most = int(plan.counts.max())
    mu = np.sqrt(most) * plan.event.bound / plan.event.noise
    assert most == 0 or gaussian_epsilon(float(mu), privacy.delta) <= privacy.epsilon
    assert case["cap"] is None or most <= case["cap"]
    assert len(plan.admitted) == case["rounds"]


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
@pytest.mark.parametrize(("cohort", "round_robin"), [(None, False), (5, False), (5, True)])
def test_counts_are_those_of_the_admitted_rounds(kind, cohort, round_robin):
    plan = releases_of(kind(1.0, releases=3), clients=20, cohort=cohort, round_robin=round_robin, rounds=30)
    again = np.zeros(20, np.int64)
    for round in np.flatnonzero(plan.admitted) + 1:
        again[participants(20, cohort, round_robin=round_robin, seed=7, round=int(round))] += 1
    assert np.array_equal(plan.counts, again)
    assert plan.counts.max() == 3


def test_everybody_at_once_stops_after_the_releases_that_are_paid_for():
    plan = releases_of(Gaussian(1.0, releases=4), clients=6, cohort=None, round_robin=False, rounds=9)
    assert plan.admitted.tolist() == [True] * 4 + [False] * 5
    assert plan.counts.tolist() == [4] * 6


def test_round_robin_needs_less_noise_than_chance():
    in_turn, at_random = (
        releases_of(Gaussian(1.0), clients=100, cohort=10, round_robin=round_robin, rounds=20).event.noise
        for round_robin in (True, False)
    )
    assert in_turn < at_random / 3  # sized for 2 releases a user, and for 20
