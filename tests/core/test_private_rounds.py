"""Rounds with user-level DP: what is let out is clipped, noised as the event says, and stops in time."""

import numpy as np
import pytest
from by_hand import ragged

from foltr.clicks import Users, click_model
from foltr.federation.releases import planned
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task, protection_in, schedule_of
from foltr.learners.pdgd import Pdgd
from foltr.privacy.accounting import epsilon
from foltr.privacy.mechanisms import Gaussian, Laplace, NoPrivacy
from foltr.rankers import Linear

DATA = ragged([3, 12, 25, 9, 41, 17], width=7, grades=3)


def make_task(privacy, federation=None, seed=3):
    users = (click_model(Users("navigational"), grades=3),)
    return Task(DATA, 3, users, Linear(), Pdgd(), federation or Federated(8, 3, 4), privacy, seed)


def plan_of(task):
    return planned(protection_in(task), schedule_of(task), task.federation.clients)


def rankers(task, engine=compiled):
    return [progress.parameters for progress in run(task, engine.engine(task))]


def test_with_next_to_no_noise_and_a_wide_clip_it_is_federated_averaging():
    open_, private = rankers(make_task(NoPrivacy())), rankers(make_task(Gaussian(epsilon=1e7, clip=1.0)))
    np.testing.assert_allclose(private, open_, atol=1e-3)  # the noise has a standard deviation of about 6e-5


@pytest.mark.parametrize("privacy", [Gaussian(2.0), Laplace(2.0), Gaussian(2.0, adaptive=0.5), Gaussian(trust="local")])
def test_both_engines_go_through_the_same_rounds(privacy):
    task = make_task(privacy)
    np.testing.assert_allclose(rankers(task), rankers(task, plain), rtol=0, atol=1e-9)


def test_no_round_moves_the_mean_further_than_the_clip_and_its_noise():
    task = make_task(Gaussian(epsilon=1e6, clip=0.01), Federated(50, 20, 3))
    steps = np.diff([np.zeros(7), *rankers(task)], axis=0)
    assert np.linalg.norm(steps, axis=1).max() < 0.01 + 1e-4


def test_the_noise_of_a_round_is_what_its_event_says():
    """A clip of next to nothing leaves the noise alone: 4 rounds x features numbers, odds of a false alarm 1e-6."""
    task = make_task(Gaussian(epsilon=1.0, clip=1e-6), Federated(40, 1, 40))
    event = plan_of(task).event
    steps = np.diff([np.zeros(7), *rankers(task)], axis=0) * 40
    numbers = steps.size
    assert np.square(steps / event.noise).sum() == pytest.approx(numbers, abs=5 * np.sqrt(2 * numbers))


def test_a_round_beyond_the_budget_changes_nothing_and_people_search_on():
    task = make_task(Gaussian(epsilon=1.0, releases=2), Federated(8, 3, 5))
    progress = list(run(task, compiled.engine(task)))
    assert plan_of(task).admitted.tolist() == [True, True, False, False, False]
    assert [one.interactions for one in progress] == [24] * 5
    for later in progress[2:]:
        np.testing.assert_array_equal(later.parameters, progress[1].parameters)


@pytest.mark.parametrize("round_robin", [True, False])
def test_with_cohorts_nobody_spends_more_than_the_budget(round_robin):
    task = make_task(Gaussian(epsilon=1.0, releases=3), Federated(30, 2, 25, cohort=7, round_robin=round_robin))
    plan = plan_of(task)
    assert plan.counts.max() <= 3
    assert epsilon({plan.event: int(plan.counts.max())}, 1e-5).epsilon <= 1.0


def test_noise_of_the_contributors_who_are_sure_to_be_there_is_enough_when_others_leave():
    task = make_task(Gaussian(epsilon=1.0, dropouts=0.5), Federated(8, 3, 1))
    assert plan_of(task).event.noise_contributors == 4
