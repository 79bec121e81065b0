"""Rounds with honest mechanisms: what is let out is clipped, noised as the event says, and stops in time."""

import numpy as np
import pytest
from by_hand import ragged

from foltr.clicks import Users, behaviour
from foltr.federation.round import Federated, Task, releases_of, run
from foltr.lab.simulation import compiled
from foltr.lab.simulation import plain as loop
from foltr.learners.pdgd import Pdgd
from foltr.privacy.accounting import epsilon
from foltr.privacy.mechanisms import Gaussian, Laplace, NoPrivacy
from foltr.rankers import Linear

DATA = ragged([3, 12, 25, 9, 41, 17], width=7, grades=3)


def task(privacy, federation=None, seed=3):
    users = (behaviour(Users("navigational"), grades=3),)
    return Task(DATA, 3, users, Linear(), Pdgd(), federation or Federated(8, 3, 4), privacy, seed)


def rankers(made, engine=compiled):
    return [progress.parameters for progress in run(made, engine.engine(made))]


def test_with_next_to_no_noise_and_a_wide_clip_it_is_federated_averaging():
    open_, private = rankers(task(NoPrivacy())), rankers(task(Gaussian(epsilon=1e7, clip=1.0)))
    np.testing.assert_allclose(private, open_, atol=1e-3)  # the noise has a deviation of about 6e-5


@pytest.mark.parametrize("privacy", [Gaussian(2.0), Laplace(2.0), Gaussian(2.0, adaptive=0.5), Gaussian(trust="local")])
def test_both_engines_live_through_the_same_rounds(privacy):
    made = task(privacy)
    np.testing.assert_allclose(rankers(made), rankers(made, loop), rtol=1e-5, atol=1e-7)


def test_no_round_moves_the_mean_further_than_the_clip_and_its_noise():
    made = task(Gaussian(epsilon=1e6, clip=0.01), Federated(50, 20, 3))
    steps = np.diff([np.zeros(7), *rankers(made)], axis=0)
    assert np.linalg.norm(steps, axis=1).max() < 0.01 + 1e-4


def test_the_noise_of_a_round_is_what_its_event_says():
    """A clip of next to nothing leaves the noise alone: 4 rounds x features numbers, odds of a false alarm 1e-6."""
    made = task(Gaussian(epsilon=1.0, clip=1e-6), Federated(40, 1, 40))
    event = releases_of(made, made.federation).event
    steps = np.diff([np.zeros(7), *rankers(made)], axis=0) * 40
    numbers = steps.size
    assert np.square(steps / event.noise).sum() == pytest.approx(numbers, abs=5 * np.sqrt(2 * numbers))


def test_a_round_beyond_the_budget_changes_nothing_and_people_search_on():
    made = task(Gaussian(epsilon=1.0, releases=2), Federated(8, 3, 5))
    progress = list(run(made, compiled.engine(made)))
    assert releases_of(made, made.federation).admitted.tolist() == [True, True, False, False, False]
    assert [one.interactions for one in progress] == [24] * 5
    for later in progress[2:]:
        np.testing.assert_array_equal(later.parameters, progress[1].parameters)


@pytest.mark.parametrize("turns", [True, False])
def test_with_cohorts_nobody_spends_more_than_the_budget(turns):
    made = task(Gaussian(epsilon=1.0, releases=3), Federated(30, 2, 25, cohort=7, turns=turns))
    plan = releases_of(made, made.federation)
    assert plan.counts.max() <= 3
    assert epsilon({plan.event: int(plan.counts.max())}, 1e-5).epsilon <= 1.0


def test_noise_for_the_holders_who_are_sure_to_be_there_is_enough_when_others_leave():
    made = task(Gaussian(epsilon=1.0, min_participation=0.5), Federated(8, 3, 1))
    assert releases_of(made, made.federation).event.noise_contributors == 4
