"""Stored updates: their rounds are those of every federation."""

import itertools

import numpy as np
import pytest
from forgetting import WIDTH, federation, small

from foltr.errors import StorageError
from foltr.lab.simulation import compiled
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated
from foltr.unlearning.replay import federate, history_of, lengths, negate

FEDERATIONS = [Federated(5, 4, 6), Federated(5, (4, 2, 3), 6), Federated(20, 3, 6, cohort=4)]


def stored(task, every=2):
    return history_of(done for done in federate(federation(task)) if (done.round - 1) % every == 0)


@pytest.mark.parametrize("federated", FEDERATIONS, ids=["equal", "patterned", "cohort"])
def test_rounds_whose_updates_are_stored_are_the_usual_rounds_to_the_last_bit(federated):
    task = small(federated)
    usual = [done.parameters for done in run(task, compiled.engine(task))]
    storing = [done.parameters for done in federate(federation(task))]
    assert np.array_equal(usual, storing)


def test_updates_are_stored_in_the_order_of_rounds_and_clients():
    history = stored(small(Federated(5, 4, 8)), every=3)
    assert history.rounds.tolist() == [1] * 5 + [4] * 5 + [7] * 5
    assert history.clients.tolist() == [0, 1, 2, 3, 4] * 3
    assert set(history.steps.tolist()) == {4}


def test_the_average_of_the_stored_updates_is_the_step_of_the_round():
    task = small(Federated(5, (4, 2, 3), 3))
    before = np.zeros(WIDTH)
    for done in federate(federation(task)):
        mean = np.average(done.collected.updates.values, axis=0, weights=done.members.interactions)
        assert before + mean == pytest.approx(done.parameters)
        before = done.parameters


def test_an_absent_client_is_nowhere():
    task = small()
    assert all(1 not in done.members.clients for done in federate(federation(task), without=[1]))


def test_a_round_without_anybody_leaves_the_model_alone():
    task = small(Federated(3, 2, 6, cohort=1))
    rounds = list(federate(federation(task), without=[0, 1]))
    assert {len(done.members.clients) for done in rounds} == {0, 1}
    assert all((done.collected.updates is None) == (not done.members.clients.size) for done in rounds)
    for before, done in itertools.pairwise(rounds):
        assert done.members.clients.size or np.array_equal(before.parameters, done.parameters)


def test_the_attacker_sends_its_model_negated_and_stretched():
    """Equation 6.4: -z * update - (z + 1) * start."""
    task = small()
    honest = list(federate(federation(task)))
    start, updates = honest[3].parameters, honest[4].collected.updates
    sent = negate([2], 2.0)(updates, start, 5).values
    assert sent[2] == pytest.approx(-2 * updates.values[2] - 3 * start)
    assert sent[[0, 1, 3, 4]] == pytest.approx(updates.values[[0, 1, 3, 4]], abs=1e-15)


def test_single_precision_keeps_lengths_to_seven_digits():
    task = small()
    rounds = list(federate(federation(task)))
    exact = np.linalg.norm(np.concatenate([done.collected.updates.values for done in rounds]), axis=1)
    assert lengths(history_of(rounds)) == pytest.approx(exact, rel=1e-7)


def test_rounds_without_updates_are_no_history():
    task = small(Federated(3, 2, 6, cohort=1))
    empty = [done for done in federate(federation(task), without=[0, 1]) if not done.members.clients.size]
    for rounds in ([], empty):
        with pytest.raises(StorageError, match="store every round"):
            history_of(rounds)
