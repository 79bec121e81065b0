"""Calibrated replay: lengths from the history, directions from new steps of those who stay."""

import math

import numpy as np
import pytest
from forgetting import WIDTH, federation, last, small
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foltr.federation.schedule import Members
from foltr.lab.simulation import plain
from foltr.lab.simulation.task import Federated
from foltr.types import OnlineMetrics, Updates
from foltr.unlearning.replay import calibrated, federate, history_of, replay

TASK = small(Federated(5, (4, 3, 5), 9))


@pytest.fixture(scope="module")
def history():
    return stored(TASK, every=2)


def stored(task, every):
    """The updates of every so manieth round."""
    return history_of(done for done in federate(federation(task)) if (done.round - 1) % every == 0)


def replayed(history, forget_clients, *, task=TASK, steps=2):
    return last(replay(federation(task), history, forget_clients=forget_clients, local_steps=steps))


def test_a_calibrated_update_has_the_stored_length_and_the_new_direction():
    assert calibrated(np.array([[3.0, 4.0]]), np.array([10.0])).tolist() == [[6.0, 8.0]]


def test_what_has_no_direction_or_no_length_stays_zero():
    updates = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert calibrated(updates, np.array([10.0, 0.0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]


UPDATES = arrays(float, (3, 4), elements=st.floats(-1e6, 1e6, allow_subnormal=False))


@given(UPDATES, arrays(float, 3, elements=st.floats(0, 1e6)))
def test_lengths_and_directions_hold_for_any_update(updates, sizes):
    for row, size, result in zip(updates.tolist(), sizes.tolist(), calibrated(updates, sizes), strict=True):
        length = math.hypot(*row)
        assert result.tolist() == pytest.approx([size * (x / length) if length else 0.0 for x in row], rel=1e-9)


@pytest.mark.parametrize("forget_clients", [[2], [0, 3]], ids=["one", "two"])
@pytest.mark.parametrize("steps", [1, 2])
def test_replay_is_what_one_would_write_down(history, forget_clients, steps):
    engine, model = plain.engine(TASK), np.zeros(WIDTH)
    for round in (1, 3, 5, 7, 9):
        total, weight = np.zeros(WIDTH), 0
        for client in sorted({0, 1, 2, 3, 4} - set(forget_clients)):
            (row,) = np.flatnonzero((history.rounds == round) & (history.clients == client))
            one = Members(np.array([client]), np.array([steps]))
            new = engine.local_updates(model, engine.prepare(one), 9 + round, None)[0].values[0]
            size = np.sqrt(np.square(history.updates[row].astype(float)).sum())
            searches = (4, 3, 5)[client % 3]
            if np.any(new):
                total += searches * size * new / np.sqrt(new @ new)
            weight += searches
        model = model + total / weight
    assert np.abs(replayed(history, forget_clients, steps=steps) - model).max() < 1e-9


def test_two_replays_from_one_seed_are_equal_and_another_seed_differs(history):
    assert np.array_equal(replayed(history, [2]), replayed(history, [2]))
    assert not np.allclose(replayed(history, [2]), replayed(history, [2], task=TASK._replace(seed=4)))


def test_what_the_forgotten_client_stored_does_not_matter(history):
    theirs = history.clients == 2
    other = history._replace(updates=np.where(theirs[:, None], 99, history.updates))
    assert np.array_equal(replayed(history, [2]), replayed(other, [2]))


def test_but_what_it_left_in_the_lengths_of_the_others_does(history):
    other = history._replace(updates=history.updates * 2)
    assert np.linalg.norm(replayed(other, [2]) - replayed(history, [2])) > 0


def test_a_replay_reads_no_random_number_of_the_rounds_before():
    asked = []

    class Watched:
        def prepare(self, members):
            return members

        def local_updates(self, models, cohort, round, release):
            asked.append(round)
            count = len(cohort.clients)
            updates = Updates(np.ones((count, len(models))), cohort.interactions, cohort.clients, np.zeros(count))
            return updates, OnlineMetrics(np.empty(0), np.empty(0))

    history = stored(TASK, every=4)
    list(replay(federation(TASK, Watched()), history, forget_clients=[0], local_steps=1))
    assert asked == [9 + 1, 9 + 5, 9 + 9]


def test_rounds_in_which_only_forgotten_clients_were_drawn_are_left_out():
    task = small(Federated(4, 3, 12, cohort=1))
    history = stored(task, every=1)
    drawn = history.clients.tolist()
    rounds = list(replay(federation(task), history, forget_clients=[drawn[0]], local_steps=2))
    assert [done.members.clients.tolist() for done in rounds] == [[client] for client in drawn if client != drawn[0]]
