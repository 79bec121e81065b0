"""A run that was stopped goes on: finished single runs are used again, damaged and half-written ones never."""

import os
import shutil

import numpy as np
import pytest
from laboratory import singles, the_run

from foltr.files import atomic_write
from foltr.lab.runs import store
from foltr.lab.runs.run import prepare, run_missing
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.spec.parse import read, setting


@pytest.fixture(scope="module")
def reference(finished):
    return (the_run(finished) / "ranker.npz").read_bytes()


@pytest.fixture
def again(command, tiny, copied, reference):
    """Runs the tiny spec again on the copied folder; the bytes must be those of the run that was never stopped."""

    def run(*arguments):
        answer = command("run", tiny, "--out", copied, *(arguments or ("--jobs", 1)))
        assert answer.code == 0, answer.err
        assert (the_run(copied) / "ranker.npz").read_bytes() == reference
        return answer

    return run


def stamps(out):
    return {path.name: path.stat().st_mtime_ns for path in singles(out)}


def test_the_same_command_again_computes_nothing(again, copied, monkeypatch):
    def never(*_, **__):
        pytest.fail("something was computed")

    monkeypatch.setattr("foltr.lab.runs.pool._one", never)
    before = stamps(copied)
    answer = again()
    assert stamps(copied) == before
    assert "runs" not in answer.err  # no bar, no word of what is missing


def test_a_finished_run_gives_its_single_runs_to_one_with_more_seeds(copied, command, tiny):
    before = stamps(copied)
    answer = command("run", tiny, "--out", copied, "--seeds", 3, "--jobs", 1)
    assert answer.code == 0
    assert "8 of 12 single runs are on disk" in answer.err
    after = stamps(copied)
    assert len(after) == 12
    assert before.items() <= after.items()


@pytest.mark.parametrize("jobs", [1, 2])
def test_only_what_is_missing_is_computed(again, copied, jobs):
    for path in singles(copied)[::3]:
        path.unlink()
    shutil.rmtree(the_run(copied))
    before = stamps(copied)
    answer = again("--jobs", jobs)
    assert "5 of 8 single runs are on disk" in answer.err
    assert before.items() <= stamps(copied).items()


def test_a_run_that_was_stopped_before_its_files_were_written_gets_them(again, copied):
    shutil.rmtree(the_run(copied))
    before = stamps(copied)
    again()
    assert stamps(copied) == before


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_bytes(b"")


def garbled(path):
    path.write_bytes(b"\x00\x01\x02" * 1000)


def without_an_array(path):
    with np.load(path) as arrays:
        others = {name: arrays[name] for name in arrays.files if name != "parameters"}
    np.savez(path, **others)


def another_format(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def pickled(path):
    np.savez(path, **dict.fromkeys(RunResult._fields, np.array([{"a": 1}], dtype=object)))


def turned_into_a_folder(path):
    path.unlink()
    path.mkdir()
    (path / "file").write_text("a folder that is not empty cannot be replaced")


DAMAGES = [truncated, emptied, garbled, without_an_array, another_format, pickled]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_single_run_is_computed_anew(damage, again, copied):
    victim, *others = singles(copied)
    damage(victim)
    before = {path: path.stat().st_mtime_ns for path in others}
    answer = again()
    assert "7 of 8 single runs are on disk" in answer.err
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert store.load(copied, victim.stem) is not None


def test_what_cannot_be_replaced_is_named(command, tiny, copied):
    victim = singles(copied)[0]
    turned_into_a_folder(victim)
    answer = command("run", tiny, "--out", copied, "--jobs", 1)
    assert answer.code == 1
    assert f"foltr: {victim}: cannot be written" in answer.err
    assert "Traceback" not in answer.err


def test_a_single_wrong_byte_is_never_trusted(copied):
    path = singles(copied)[0]
    whole, content = store.load(copied, path.stem), path.read_bytes()
    trusted = 0
    for place in range(0, len(content), 13):
        for flipped in (0xFF, 0x01):
            path.write_bytes(content[:place] + bytes([content[place] ^ flipped]) + content[place + 1 :])
            found = store.load(copied, path.stem)
            if found is not None:  # the byte means nothing: a date, an attribute
                trusted += 1
                np.testing.assert_equal(found._asdict(), whole._asdict())
    assert trusted < 0.2 * 2 * len(content) / 13


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_off_anywhere_is_never_trusted(copied, share):
    path = singles(copied)[0]
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert store.load(copied, path.stem) is None


def test_a_half_written_temporary_file_is_ignored(again, copied):
    victim = singles(copied)[0]
    half = victim.with_name(f".{victim.name}.4711-1.part")
    half.write_bytes(victim.read_bytes()[:100])
    victim.unlink()
    answer = again()
    assert "7 of 8 single runs are on disk" in answer.err
    assert victim.is_file()


def test_what_went_wrong_while_writing_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")

    def write():
        with atomic_write(path) as temporary:
            temporary.write_text("new and half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_results_can_be_read_by_whom_the_user_lets_read(tmp_path):
    before = os.umask(0o022)
    try:
        with atomic_write(tmp_path / "shared.txt") as temporary:
            temporary.write_text("for the group")
    finally:
        os.umask(before)
    assert (tmp_path / "shared.txt").stat().st_mode & 0o777 == 0o644


# --- names ----------------------------------------------------------------------------------------------------------


def key(*, checksum="c", fold=1, seed=1, **tables):
    point = setting({"data": {"name": "synthetic-mq2007@60"}, **tables})
    return store.key_of(point, checksum=checksum, fold=fold, seed=seed)


def test_the_name_of_a_single_run_covers_what_decides_its_numbers():
    changed = [
        key(checksum="d"),
        key(fold=2),
        key(seed=2),
        key(learner={"learning_rate": 0.2}),
        key(users={"clicks": "perfect"}),
        key(federation={"rounds": 7}),
        key(privacy={"kind": "fpdgd"}),
        key(ranker={"kind": "mlp"}),
        key(runs={"evaluate_every": 5}),
    ]
    assert len({key(), *changed}) == 10


def test_the_name_of_a_single_run_covers_the_code_that_computes_it(monkeypatch):
    before = key()
    assert key() == before
    monkeypatch.setattr(store, "code_of", lambda _: "edited")
    assert key() != before


def test_edited_code_computes_anew_and_leaves_the_old_single_runs(copied, command, tiny, monkeypatch):
    monkeypatch.setattr(store, "code_of", lambda _: "edited")
    before = stamps(copied)
    answer = command("run", tiny, "--out", copied, "--jobs", 1)
    assert answer.code == 0, answer.err
    assert "are there already" not in answer.err
    after = stamps(copied)
    assert len(after) == 2 * len(before)
    assert before.items() <= after.items()


def test_the_name_of_a_single_run_does_not_depend_on_the_run_around_it():
    assert key() == key(part="elsewhere") == key(runs={"seeds": 9, "first_seed": 3})


def test_the_same_data_under_another_name_is_the_same_single_run():
    settings = [setting({"data": {"name": name, "folds": folds}}) for name, folds in (("a", 1), ("b", "1-5"))]
    assert len({store.key_of(one, checksum="c", fold=1, seed=1) for one in settings}) == 1


def test_whoever_stops_listening_loses_only_what_was_under_way(tiny, tmp_path):
    prepared = prepare(read(tiny), tmp_path / "out")
    events = run_missing(prepared, jobs=1)
    for event in events:
        if event.done:
            break
    events.close()
    assert len(singles(tmp_path / "out")) == 1
