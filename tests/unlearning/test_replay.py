"""Calibrated replay: lengths from the history, directions from new steps of those who stay."""

import math

import numpy as np
import pytest
from forgetting import WIDTH, last, small
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foltr.federation.round import Federated
from foltr.lab.simulation import compiled
from foltr.lab.simulation import plain as loop
from foltr.unlearning.history import gather
from foltr.unlearning.replay import calibrated, replay
from foltr.unlearning.rounds import federate

TASK = small(Federated(5, (4, 3, 5), 9))


@pytest.fixture(scope="module")
def history():
    return gather(federate(TASK, compiled.engine(TASK), keep_every=2))


def replayed(history, leavers, *, task=TASK, steps=2):
    return last(replay(task, compiled.engine(task), history, leavers=leavers, local_steps=steps))


def test_a_calibrated_update_has_the_kept_length_and_the_new_direction():
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


@pytest.mark.parametrize("leavers", [[2], [0, 3]], ids=["one", "two"])
@pytest.mark.parametrize("steps", [1, 2])
def test_replay_is_what_one_would_write_down(history, leavers, steps):
    engine, model = loop.engine(TASK), np.zeros(WIDTH)
    for round in (1, 3, 5, 7, 9):
        total, weight = np.zeros(WIDTH), 0
        for client in sorted({0, 1, 2, 3, 4} - set(leavers)):
            (row,) = np.flatnonzero((history.rounds == round) & (history.clients == client))
            moved, _ = engine.train(model, engine.prepare(np.array([client]), np.array([steps])), round=9 + round)
            new = moved[0] - model
            size = np.sqrt(np.square(history.updates[row].astype(float)).sum())
            searches = (4, 3, 5)[client % 3]
            if np.any(new):
                total += searches * size * new / np.sqrt(new @ new)
            weight += searches
        model = model + total / weight
    assert np.abs(replayed(history, leavers, steps=steps) - model).max() < 1e-9


def test_two_replays_from_one_seed_are_equal_and_another_seed_differs(history):
    assert np.array_equal(replayed(history, [2]), replayed(history, [2]))
    assert not np.allclose(replayed(history, [2]), replayed(history, [2], task=TASK._replace(seed=4)))


def test_what_the_leaver_kept_does_not_matter(history):
    theirs = history.clients == 2
    other = history._replace(updates=np.where(theirs[:, None], 99, history.updates))
    assert np.array_equal(replayed(history, [2]), replayed(other, [2]))


def test_but_what_it_left_in_the_lengths_of_the_others_does(history):
    other = history._replace(updates=history.updates * 2)
    assert np.linalg.norm(replayed(other, [2]) - replayed(history, [2])) > 0


def test_a_replay_reads_no_random_number_of_the_rounds_before():
    asked = []

    class Watched:
        def prepare(self, clients, steps):  # noqa: ARG002
            return clients

        def train(self, parameters, clients, *, round):
            asked.append(round)
            return np.tile(parameters + 1, (len(clients), 1)), None

    history = gather(federate(TASK, compiled.engine(TASK), keep_every=4))
    list(replay(TASK, Watched(), history, leavers=[0], local_steps=1))
    assert asked == [9 + 1, 9 + 5, 9 + 9]


def test_rounds_in_which_only_leavers_were_drawn_are_left_out():
    task = small(Federated(4, 3, 12, cohort=1))
    history = gather(federate(task, compiled.engine(task), keep_every=1))
    drawn = history.clients.tolist()
    rounds = list(replay(task, compiled.engine(task), history, leavers=[drawn[0]], local_steps=2))
    assert [done.clients.tolist() for done in rounds] == [[client] for client in drawn if client != drawn[0]]
