"""Who takes part how often: nobody beyond the budget, nobody twice before everybody once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foltr.federation.releases import planned, taking_part
from foltr.federation.schedule import in_turn, most_often, pick
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.mechanisms import Gaussian, Laplace


def counted(clients, cohort, *, turns, rounds, seed=1):
    counts = np.zeros(clients, np.int64)
    for round in range(1, rounds + 1):
        counts[taking_part(clients, cohort, turns=turns, seed=seed, round=round)] += 1
    return counts


@given(st.integers(1, 60), st.data(), st.integers(1, 30), st.integers(0, 10**6))
def test_nobody_has_a_second_turn_before_everybody_had_one(clients, data, rounds, seed):
    size = data.draw(st.integers(1, clients))
    counts = counted(clients, size, turns=True, rounds=rounds, seed=seed)
    assert counts.max() <= most_often(clients, size, turns=True, rounds=rounds)
    if clients % size == 0:  # else those who are left over in a turn have a rest
        assert counts.max() - counts.min() <= 1


@given(st.integers(2, 60), st.data(), st.integers(0, 10**6))
def test_cohorts_of_one_turn_do_not_overlap(clients, data, seed):
    size = data.draw(st.integers(1, clients))
    turn = [in_turn(clients, size, seed=seed, round=round) for round in range(1, clients // size + 1)]
    together = np.concatenate(turn)
    assert len(np.unique(together)) == len(together) == size * (clients // size)


def test_turns_are_shuffled_anew_and_by_seed():
    first, second = ([in_turn(100, 10, seed=1, round=turn + r).tolist() for r in range(1, 11)] for turn in (0, 10))
    assert first != second
    assert in_turn(100, 10, seed=2, round=1).tolist() != first[0]


def test_how_often_one_can_take_part():
    assert most_often(10, None, turns=False, rounds=7) == 7
    assert most_often(10, 5, turns=False, rounds=7) == 7  # by chance, in all of them
    assert most_often(10, 5, turns=True, rounds=7) == 4  # two cohorts by turns
    assert most_often(10, 4, turns=True, rounds=7) == 4  # two again, and two people have a rest


def test_taking_part_is_by_turns_only_where_that_is_said():
    assert np.array_equal(taking_part(50, 5, turns=False, seed=3, round=2), pick(50, 5, seed=3, round=2))
    assert np.array_equal(taking_part(50, 5, turns=True, seed=3, round=2), in_turn(50, 5, seed=3, round=2))
    assert taking_part(4, None, turns=True, seed=3, round=2).tolist() == [0, 1, 2, 3]


cases = st.fixed_dictionaries(
    {
        "clients": st.integers(1, 25),
        "cohort": st.none() | st.integers(1, 25),
        "turns": st.booleans(),
        "rounds": st.integers(1, 12),
        "cap": st.none() | st.integers(1, 6),
        "epsilon": st.sampled_from([0.5, 2.0]),
    }
)


@given(cases)
@settings(max_examples=30)
def test_nobody_exceeds_the_budget(case):
    cohort = None if case["cohort"] is None else min(case["cohort"], case["clients"])
    turns = case["turns"] and cohort is not None
    privacy = Gaussian(case["epsilon"], releases=case["cap"])
    plan = planned(
        privacy, clients=case["clients"], cohort=cohort, turns=turns, rounds=case["rounds"], parameters=3, seed=7
    )
    most = int(plan.counts.max())
    mu = np.sqrt(most) * plan.event.bound / plan.event.noise
    assert most == 0 or gaussian_epsilon(float(mu), privacy.delta) <= privacy.epsilon
    assert case["cap"] is None or most <= case["cap"]
    assert len(plan.admitted) == case["rounds"]


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
@pytest.mark.parametrize(("cohort", "turns"), [(None, False), (5, False), (5, True)])
def test_counts_are_those_of_the_admitted_rounds(kind, cohort, turns):
    plan = planned(kind(1.0, releases=3), clients=20, cohort=cohort, turns=turns, rounds=30, parameters=3, seed=7)
    again = np.zeros(20, np.int64)
    for round in np.flatnonzero(plan.admitted) + 1:
        again[taking_part(20, cohort, turns=turns, seed=7, round=int(round))] += 1
    assert np.array_equal(plan.counts, again)
    assert plan.counts.max() == 3


def test_everybody_at_once_stops_after_the_releases_that_are_paid_for():
    plan = planned(Gaussian(1.0, releases=4), clients=6, cohort=None, turns=False, rounds=9, parameters=3, seed=7)
    assert plan.admitted.tolist() == [True] * 4 + [False] * 5
    assert plan.counts.tolist() == [4] * 6


def test_turns_need_less_noise_than_chance():
    by_turns, by_chance = (
        planned(Gaussian(1.0), clients=100, cohort=10, turns=turns, rounds=20, parameters=3, seed=7).event.noise
        for turns in (True, False)
    )
    assert by_turns < by_chance / 3  # sized for 2 releases a user, and for 20
