"""Rounds that keep updates are the rounds of every federation; what is kept comes back from disk as it was."""

import itertools

import numpy as np
import pytest
from forgetting import WIDTH, small

from foltr.errors import StorageError
from foltr.federation.round import Federated, run
from foltr.lab.simulation import compiled
from foltr.unlearning.history import gather, lengths, load, save
from foltr.unlearning.rounds import federate, negate

FEDERATIONS = [Federated(5, 4, 6), Federated(5, (4, 2, 3), 6), Federated(20, 3, 6, cohort=4)]


def kept(task, every=2, **options):
    return gather(federate(task, compiled.engine(task), keep_every=every, **options))


@pytest.mark.parametrize("federation", FEDERATIONS, ids=["equal", "patterned", "cohort"])
def test_rounds_that_keep_updates_are_the_usual_rounds_to_the_last_bit(federation):
    task = small(federation)
    usual = [done.parameters for done in run(task, compiled.engine(task))]
    keeping = [done.parameters for done in federate(task, compiled.engine(task), keep_every=2)]
    assert np.array_equal(usual, keeping)


def test_updates_are_kept_in_the_first_round_and_every_so_manieth_after_it():
    history = kept(small(Federated(5, 4, 8)), every=3)
    assert history.rounds.tolist() == [1] * 5 + [4] * 5 + [7] * 5
    assert history.clients.tolist() == [0, 1, 2, 3, 4] * 3
    assert set(history.steps.tolist()) == {4}


def test_the_average_of_the_kept_updates_is_the_step_of_the_round():
    task = small(Federated(5, (4, 2, 3), 3))
    rounds = list(federate(task, compiled.engine(task), keep_every=1))
    before = np.zeros(WIDTH)
    for done in rounds:
        assert before + np.average(done.updates, axis=0, weights=done.steps) == pytest.approx(done.parameters)
        before = done.parameters


def test_an_absent_client_is_nowhere():
    task = small()
    assert all(1 not in done.clients for done in federate(task, compiled.engine(task), without=[1]))


def test_a_round_without_anybody_leaves_the_model_alone():
    task = small(Federated(3, 2, 6, cohort=1))
    rounds = list(federate(task, compiled.engine(task), keep_every=1, without=[0, 1]))
    alone = [len(done.clients) for done in rounds]
    assert set(alone) == {0, 1}
    for before, done in itertools.pairwise(rounds):
        assert done.clients.size or np.array_equal(before.parameters, done.parameters)


def test_the_attacker_sends_its_model_negated_and_stretched():
    """Equation 6.4: -z * update - (z + 1) * start."""
    task = small()
    honest = list(federate(task, compiled.engine(task), keep_every=1))
    start = honest[3].parameters
    deltas = honest[4].updates
    sent = negate([2], 2.0)(deltas, honest[4].clients, start, 5)
    assert sent[2] == pytest.approx(-2 * deltas[2] - 3 * start)
    assert np.array_equal(sent[[0, 1, 3, 4]], deltas[[0, 1, 3, 4]])


def test_a_history_comes_back_from_disk(tmp_path):
    history = kept(small())
    size = save(tmp_path / "history.npz", history)
    again = load(tmp_path / "history.npz")
    assert all(
        np.array_equal(one, other) and one.dtype == other.dtype for one, other in zip(history, again, strict=True)
    )
    assert size == (tmp_path / "history.npz").stat().st_size
    assert history.updates.nbytes == 25 * WIDTH * 4 < size  # rounds 1 3 5 7 9 of five clients
    assert [path.name for path in tmp_path.iterdir()] == ["history.npz"]


def test_single_precision_keeps_lengths_to_seven_digits():
    task = small()
    rounds = list(federate(task, compiled.engine(task), keep_every=1))
    exact = np.linalg.norm(np.concatenate([done.updates for done in rounds]), axis=1)
    assert lengths(gather(rounds)) == pytest.approx(exact, rel=1e-7)


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
    save(path, kept(small(), every=1))
    spoil(path, how)
    with pytest.raises(StorageError, match="is damaged"):
        load(path)


def test_columns_that_do_not_fit_are_damage(tmp_path):
    history = kept(small())
    for wrong in (history._replace(steps=history.steps[1:]), history._replace(updates=history.updates * np.nan)):
        save(tmp_path / "wrong.npz", wrong)
        with pytest.raises(StorageError, match="is damaged"):
            load(tmp_path / "wrong.npz")


def test_a_file_of_another_kind_and_a_missing_one_say_so(tmp_path):
    np.savez(tmp_path / "other.npz", kind=np.array("history-0"), rounds=np.arange(3))
    with pytest.raises(StorageError, match="holds 'history-0', expected 'history-1'"):
        load(tmp_path / "other.npz")
    with pytest.raises(StorageError, match="does not exist"):
        load(tmp_path / "nothing.npz")


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StorageError, match=r"history\.npz: cannot be written"):
        save(tmp_path / "taken" / "history.npz", kept(small()))


def test_rounds_that_kept_nothing_are_no_history():
    task = small()
    with pytest.raises(StorageError, match="keep_every"):
        gather(federate(task, compiled.engine(task)))
