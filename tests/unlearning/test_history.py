"""Stored updates: their rounds are those of every federation, and a file comes back as it was."""

import itertools

import numpy as np
import pytest
from forgetting import WIDTH, federation, small

from foltr.errors import StorageError
from foltr.lab.simulation import compiled
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated
from foltr.unlearning.replay import federate, history_of, lengths, load_history, negate, save_history

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


def test_a_history_comes_back_from_disk(tmp_path):
    history = stored(small())
    size = save_history(tmp_path / "history.npz", history)
    again = load_history(tmp_path / "history.npz")
    assert all(
        np.array_equal(one, other) and one.dtype == other.dtype for one, other in zip(history, again, strict=True)
    )
    assert size == (tmp_path / "history.npz").stat().st_size
    assert history.updates.nbytes == 25 * WIDTH * 4 < size  # rounds 1 3 5 7 9 of five clients
    assert [path.name for path in tmp_path.iterdir()] == ["history.npz"]


def test_single_precision_keeps_lengths_to_seven_digits():
    task = small()
    rounds = list(federate(federation(task)))
    exact = np.linalg.norm(np.concatenate([done.collected.updates.values for done in rounds]), axis=1)
    assert lengths(history_of(rounds)) == pytest.approx(exact, rel=1e-7)


def spoil(path, how):
    whole = path.read_bytes()
    spoiled = {
        "cut short": whole[: len(whole) // 2],
        "one bit turned": whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:],
        "empty": b"",
        "text": b"not a history",
    }
    path.write_bytes(spoiled[how])


@pytest.mark.parametrize("how", ["cut short", "one bit turned", "empty", "text"])
def test_a_damaged_file_is_called_damaged(tmp_path, how):
    path = tmp_path / "history.npz"
    save_history(path, stored(small(), every=1))
    spoil(path, how)
    with pytest.raises(StorageError, match="is damaged"):
        load_history(path)


def test_columns_that_do_not_fit_are_damage(tmp_path):
    history = stored(small())
    for wrong in (history._replace(steps=history.steps[1:]), history._replace(updates=history.updates * np.nan)):
        save_history(tmp_path / "wrong.npz", wrong)
        with pytest.raises(StorageError, match="is damaged"):
            load_history(tmp_path / "wrong.npz")


def test_a_file_of_another_kind_and_a_missing_one_say_so(tmp_path):
    np.savez(tmp_path / "other.npz", kind=np.array("history-0"), rounds=np.arange(3))
    with pytest.raises(StorageError, match="holds 'history-0', expected 'history-1'"):
        load_history(tmp_path / "other.npz")
    with pytest.raises(StorageError, match="does not exist"):
        load_history(tmp_path / "nothing.npz")


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StorageError, match=r"history\.npz: cannot be written"):
        save_history(tmp_path / "taken" / "history.npz", stored(small()))


def test_rounds_without_updates_are_no_history():
    task = small(Federated(3, 2, 6, cohort=1))
    empty = [done for done in federate(federation(task), without=[0, 1]) if not done.members.clients.size]
    for rounds in ([], empty):
        with pytest.raises(StorageError, match="store every round"):
            history_of(rounds)
