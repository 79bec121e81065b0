"""The ledger of a node on the disk: crashes lose no charge, restored and copied ledgers are noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from releases_by_hand import gaussian, laplace

from foltr import witnessed
from foltr.errors import PrivacyError, SpecError, StorageError
from foltr.privacy import ledger
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.ledger_file import Record, Witness, open_ledger, read_chain
from foltr.privacy.ledger_repair import repair_ledger
from foltr.witnessed import Place, append, digest_of, write_witness

DELTA = 1e-5
EVENT = gaussian(noise_multiplier(1.0, DELTA, 20))  # 20 releases are worth epsilon 1


@pytest.fixture
def files(tmp_path):
    return {"path": tmp_path / "ledger" / "releases", "witness": tmp_path / "elsewhere" / "witness"}


def opened(files, budget=1.0):
    return open_ledger(**files, delta=DELTA, budget=budget)


def place(files):
    return Place(files["path"], files["witness"], "ledger")


def charged(node, rounds, federation="a", event=EVENT):
    for round in rounds:
        node.charge(event, federation=federation, round=round)
    return node


# --- the defect: a restored ledger --------------------------------------------------------------------------------


def test_a_ledger_in_memory_forgets_what_a_backup_did_not_hold():
    """Why a node has a file: 58 releases of noise for 20 are worth 1.80, and the restored ledger says .999."""
    book, user = ledger.record(ledger.begin(1, delta=DELTA, budget=1.0), EVENT, np.array([0])), np.array([0])
    backup, happened = book.counts.copy(), 1
    for _ in range(3):
        book = book._replace(counts=backup.copy())
        while ledger.admits(book, EVENT, user):
            book, happened = ledger.record(book, EVENT, user), happened + 1
    assert happened == 58
    assert ledger.spent(book).epsilon == pytest.approx(0.999, abs=1e-3)
    assert epsilon({EVENT: happened}, DELTA).epsilon == pytest.approx(1.80, abs=0.01)


def test_a_restored_ledger_is_refused_and_its_repair_costs_what_was_forgotten(files, tmp_path):
    charged(opened(files), [1])
    shutil.copy(files["path"], tmp_path / "backup")
    charged(opened(files), range(2, 21))
    shutil.copy(tmp_path / "backup", files["path"])
    with pytest.raises(PrivacyError, match=r"ends with record 1, its witness saw record 20: an older ledger was rest"):
        opened(files)
    assert repair_ledger(**files) == 19
    node = opened(files)
    assert node.counts() == {EVENT: 20}
    assert node.highest_round("a") == 20
    assert not node.admits(EVENT)
    with pytest.raises(PrivacyError, match="would exceed this node's budget of epsilon 1"):
        charged(node, [21])


def test_a_ledger_that_goes_back_while_it_is_open_is_noticed_without_a_witness(files, tmp_path):
    node = charged(open_ledger(files["path"], delta=DELTA, budget=1.0), [1])
    shutil.copy(files["path"], tmp_path / "backup")
    charged(node, [2])
    shutil.copy(tmp_path / "backup", files["path"])
    for call in (lambda: charged(node, [3]), lambda: node.admits(EVENT), lambda: node.highest_round("a")):
        with pytest.raises(PrivacyError, match="went back behind record 2"):
            call()


def test_a_copy_that_is_used_beside_the_original_is_noticed(files, tmp_path):
    """Both copies reach the same number; only the digest differs. All of the other branch is charged."""
    charged(open_ledger(files["path"], delta=DELTA, budget=None), [1])
    copy = {**files, "path": tmp_path / "copy" / "releases"}
    copy["path"].parent.mkdir()
    shutil.copy(files["path"], copy["path"])
    charged(open_ledger(copy["path"], delta=DELTA, budget=None), [2, 3, 4, 5])
    charged(opened(files), [2, 3])
    with pytest.raises(PrivacyError, match="record 4 is not the one that the witness saw: a copy"):
        opened(copy)
    assert repair_ledger(**copy) == 4
    assert opened(copy).counts() == {EVENT: 5 + 4}
    with pytest.raises(PrivacyError, match="older ledger was restored"):
        opened(files)  # the witness went with the copy that was repaired


def test_repair_charges_the_worst_event_of_each_kind_and_not_the_last(files, tmp_path):
    worst, pure, weak = gaussian(5.0), laplace(50.0), gaussian(40.0)
    node = charged(opened(files, budget=9.0), [1], event=weak)
    shutil.copy(files["path"], tmp_path / "backup")
    charged(charged(charged(node, [2], event=worst), [3], "b", event=pure), [4], event=weak)
    true = node.spent()
    shutil.copy(tmp_path / "backup", files["path"])
    assert repair_ledger(**files) == 3
    repaired = opened(files, budget=9.0)
    assert repaired.counts() == {weak: 1, worst: 3, pure: 3}  # the witness knows both, though the backup has neither
    assert repaired.spent() > true
    assert (repaired.highest_round("a"), repaired.highest_round("b")) == (4, 3)


def test_a_lost_ledger_is_begun_again_with_all_that_its_witness_counted(files):
    charged(opened(files), range(5))
    files["path"].unlink()
    with pytest.raises(PrivacyError, match="ends with record 0, its witness saw record 5"):
        opened(files)
    assert repair_ledger(**files) == 5
    assert opened(files).counts() == {EVENT: 5}
    assert opened(files).highest_round("a") == 4


def test_a_lost_witness_is_noticed_and_its_repair_asks_how_much_may_be_missing(files):
    charged(opened(files), range(5))
    files["witness"].unlink()
    with pytest.raises(PrivacyError, match=r"the witness of .* is missing"):
        opened(files)
    with pytest.raises(PrivacyError, match="this ledger has a witness; open it together"):
        open_ledger(files["path"], delta=DELTA, budget=1.0)
    with pytest.raises(PrivacyError, match="state how many releases may be missing"):
        repair_ledger(**files)
    assert repair_ledger(**files, missing=3) == 3
    assert opened(files).counts() == {EVENT: 8}


def test_repair_of_what_is_whole_changes_nothing(files):
    charged(opened(files), range(5))
    before = files["path"].read_bytes()
    assert repair_ledger(**files) == 0
    assert files["path"].read_bytes() == before


def test_a_changed_record_is_refused_wherever_it_is(files):
    charged(opened(files), range(4))
    whole = files["path"].read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        files["path"].write_bytes(changed)
        with pytest.raises(PrivacyError):
            opened(files)
    files["path"].write_bytes(whole)
    assert opened(files).counts() == {EVENT: 4}


def test_a_damaged_ledger_is_set_aside_and_charged_from_its_witness(files):
    charged(opened(files), range(4))
    files["path"].write_bytes(files["path"].read_bytes().replace(b'"a":1', b'"a":0'))
    with pytest.raises(PrivacyError, match="further records follow: this is no crash"):
        opened(files)
    assert repair_ledger(**files) == 4
    assert opened(files).counts() == {EVENT: 4}
    assert len(list(files["path"].parent.glob("releases.damaged-*"))) == 1


# --- crashes --------------------------------------------------------------------------------------------------------


def test_a_torn_record_counts_wherever_it_was_torn(files):
    charged(opened(files, None), [1, 2])
    short, seen = files["path"].read_bytes(), files["witness"].read_bytes()
    charged(opened(files, None), [3])
    whole = files["path"].read_bytes()
    for size in range(len(short) + 1, len(whole), 23):
        for torn in (whole[:size], short + bytes(size - len(short)), whole[: size - 1] + b"\n"):
            files["path"].write_bytes(torn)
            files["witness"].write_bytes(seen)
            node = opened(files, None)
            assert node.counts() == {EVENT: 3}
            assert node.highest_round("a") == 2  # round 3 never left the device
    assert charged(opened(files, None), [3]).counts() == {EVENT: 4}


def test_a_crash_between_record_and_witness_is_no_fork_and_loses_no_charge(files, monkeypatch):
    node = charged(opened(files), [1])

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(witnessed, "write_witness", crash)
        with pytest.raises(KeyboardInterrupt):
            charged(node, [2])
    node = opened(files)
    assert (node.counts(), node.highest_round("a")) == ({EVENT: 2}, 2)
    charged(node, [3])


def test_a_crash_in_a_repair_is_repaired(files, tmp_path, monkeypatch):
    charged(opened(files), [1])
    shutil.copy(files["path"], tmp_path / "backup")
    charged(opened(files), range(2, 6))
    shutil.copy(tmp_path / "backup", files["path"])
    with monkeypatch.context() as patch:
        patch.setattr(witnessed, "write_witness", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            repair_ledger(**files)
    assert opened(files).counts() == {EVENT: 5}


@pytest.mark.parametrize("written", ["nothing", "an empty file", "the witness", "half of the first record", "zeros"])
def test_a_crash_while_the_ledger_is_begun(files, written):
    files["path"].parent.mkdir()
    first = Record(0, "witness", note="0" * 32)
    if written == "the witness":
        write_witness(place(files), Witness(0, digest_of(first).hex(), {}, ()))
    elif written == "half of the first record":
        append(place(files), None, first)
        files["path"].write_bytes(files["path"].read_bytes()[:80])
    elif written != "nothing":
        files["path"].write_bytes(b"" if written == "an empty file" else bytes(90))
    assert charged(opened(files), [0]).counts() == {EVENT: 1}


def test_the_record_is_on_the_disk_before_the_witness_and_both_before_the_answer(files, monkeypatch):
    """A record that is only in memory would be lost with the power while its release is out."""
    node, order = charged(opened(files), [1]), []
    names = {path.stat().st_ino: name for name, path in files.items()}
    write, sync, replace = os.pwrite, os.fsync, Path.replace

    def spied(name, call):
        def act(file, *rest):
            if isinstance(file, int) and (seen := os.fstat(file)).st_ino in names:
                order.append(f"{name} {names[seen.st_ino]}")
            elif isinstance(file, Path) or name == "fsync":
                order.append(name)
            return call(file, *rest)

        return act

    monkeypatch.setattr(os, "pwrite", spied("write", write))
    monkeypatch.setattr(os, "fsync", spied("fsync", sync))
    monkeypatch.setattr(Path, "replace", spied("rename", replace))
    charged(node, [2])
    # the new witness is synced before it gets its name, and its folder after
    assert order == ["write path", "fsync path", "fsync", "rename", "fsync"]


def test_a_full_disk_charges_nothing_and_releases_nothing(files, monkeypatch):
    node = charged(opened(files), [1])
    before, write = files["path"].read_bytes(), os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, line, place: write(file, line[: len(line) // 2], place))
        with pytest.raises(StorageError, match="the disk is full"):
            charged(node, [2])
    assert files["path"].read_bytes() == before
    assert charged(node, [2]).counts() == {EVENT: 2}


CHARGE = """
import sys
from pathlib import Path
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import open_ledger
from foltr.errors import PrivacyError, StorageError
path, federation, budget, noise, often, *witness = sys.argv[1:]
event = Event("gaussian", "l2", 1.0, "l2", float(noise))
node = open_ledger(Path(path), delta=1e-5, budget=float(budget), witness=Path(*witness) if witness else None)
for round in range(int(often)):
    try:
        node.charge(event, federation=federation, round=round)
        print(round, flush=True)
    except PrivacyError as problem:
        assert "would exceed" in str(problem)
"""


def charging(files, federation, *, budget, often):
    figures = [federation, str(budget), repr(EVENT.noise), str(often)]
    command = [sys.executable, "-c", CHARGE, str(files["path"]), *figures, *map(str, list(files.values())[1:])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_one_budget(files):
    """Three that want 15 releases each get the 20 of the budget together."""
    running = [charging(files, federation, budget=1.0, often=15) for federation in "abc"]
    granted = [len(one.communicate(timeout=120)[0].split()) for one in running]
    assert [one.returncode for one in running] == [0, 0, 0]
    assert sum(granted) == 20
    node = opened(files)
    assert node.counts() == {EVENT: 20}
    assert [record.number for record in read_chain(place(files)).records] == list(range(21))


@pytest.mark.parametrize("after", [1, 7, 20])
def test_a_killed_process_has_charged_all_that_it_was_allowed(files, after):
    running = charging(files, "a", budget=100.0, often=100_000)
    granted = [running.stdout.readline() for _ in range(after)]
    running.kill()
    granted += running.communicate()[0].splitlines()
    node = opened(files, budget=100.0)
    assert node.counts()[EVENT] - len(granted) in (0, 1)  # at most one was charged and not yet acknowledged
    assert node.highest_round("a") >= int(granted[-1])


# --- what is charged ------------------------------------------------------------------------------------------------


def test_one_ledger_counts_all_federations(files):
    node = charged(charged(opened(files), range(12), "a"), range(8), "b")
    assert not node.admits(EVENT)
    with pytest.raises(PrivacyError, match="would exceed"):
        charged(node, [0], "c")
    assert (node.highest_round("a"), node.highest_round("b"), node.highest_round("c")) == (11, 7, -1)
    assert node.spent() == pytest.approx(0.999, abs=1e-3)


@pytest.mark.parametrize("round", [0, 4, 5])
def test_rounds_of_a_federation_only_rise(files, round):
    node = charged(opened(files), [5])
    with pytest.raises(PrivacyError, match="already answered in round 5; rounds only rise"):
        charged(node, [round])
    charged(node, [round], "b")
    charged(node, [9])
    assert node.counts() == {EVENT: 3}


@given(rounds=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6), st.booleans()), max_size=12))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_is_the_ledger(tmp_path_factory, rounds):
    """Against a plain count, closed and opened again at any point."""
    folder = tmp_path_factory.mktemp("node")
    files = {"path": folder / "a" / "ledger", "witness": folder / "b" / "witness"}
    node, highest, charges = opened(files, None), {}, 0
    for federation, round, again in rounds:
        node = opened(files, None) if again else node
        if round > highest.get(federation, -1):
            charged(node, [round], federation)
            highest[federation], charges = round, charges + 1
        else:
            with pytest.raises(PrivacyError, match="rounds only rise"):
                charged(node, [round], federation)
    assert sum(node.counts().values()) == charges
    assert [opened(files, None).highest_round(name) for name in "ab"] == [highest.get(name, -1) for name in "ab"]


@pytest.mark.parametrize(
    ("event", "round", "federation", "words"),
    [
        (gaussian(float("inf")), 1, "a", "must be finite"),
        (gaussian(40.0, adjacency="replace"), 2, "a", "different kinds"),
        (EVENT, -1, "a", "round -1: use a number"),
        (EVENT, 2**63, "a", "use a number"),
        (EVENT, 1, "", "0 characters"),
        (EVENT, 1, "x" * 300, "300 characters"),
        (gaussian(40.0, against=("recipients",)), 2, "a", "would exceed .* against malicious"),
    ],
)  # fmt: skip
def test_what_cannot_be_charged_is_refused(files, event, round, federation, words):
    node = charged(opened(files), [1])
    with pytest.raises(PrivacyError, match=words):
        charged(node, [round], federation, event)
    assert node.counts() == {EVENT: 1}


def test_a_witness_that_comes_later_is_needed_from_then_on(files):
    charged(open_ledger(files["path"], delta=DELTA, budget=1.0), range(3))
    charged(opened(files), [3])
    with pytest.raises(PrivacyError, match="this ledger has a witness"):
        open_ledger(files["path"], delta=DELTA, budget=1.0)
    assert opened(files).counts() == {EVENT: 4}


def test_the_witness_stands_in_another_folder(tmp_path):
    with pytest.raises(SpecError, match="belongs in another folder"):
        open_ledger(tmp_path / "a", delta=DELTA, budget=1.0, witness=tmp_path / "b")
    with pytest.raises(SpecError, match="belongs in another folder"):  # a backup of the ledger's folder has it too
        open_ledger(tmp_path / "a", delta=DELTA, budget=1.0, witness=tmp_path / "elsewhere" / "b")


def test_a_file_that_is_no_ledger_stays_as_it_is(tmp_path):
    for content in (b"My diary\n", b"{}", b"0" * 70 + b"\nmore\n"):
        (tmp_path / "diary").write_bytes(content)
        with pytest.raises(PrivacyError, match="not the ledger of a node"):
            open_ledger(tmp_path / "diary", delta=DELTA, budget=1.0)
        assert (tmp_path / "diary").read_bytes() == content


def test_nobody_else_reads_the_files_or_enters_the_folders_that_are_made_for_them(tmp_path):
    files = {"path": tmp_path / "a" / "b" / "ledger", "witness": tmp_path / "c" / "d" / "witness"}
    before = os.umask(0)
    try:
        charged(opened(files), [1])
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    assert {(tmp_path / folder).stat().st_mode & 0o777 for folder in ("a", "a/b", "c", "c/d")} == {0o700}
    assert {lock.stat().st_mode & 0o777 for lock in tmp_path.rglob("*.lock")} == {0o600}


def other_name(files, kind, folder):
    """The same files by other names."""
    path, more = files["path"], {name: file for name, file in files.items() if name == "witness"}
    if kind == "relative path":
        return {name: Path(os.path.relpath(file)) for name, file in files.items()}
    if kind == "detour":
        return {name: file.parent / ".." / file.parent.name / file.name for name, file in files.items()}
    if kind == "link to the folder":
        (folder / "linked").symlink_to(path.parent)
        return {"path": folder / "linked" / path.name, **more}
    (folder / "names").mkdir()
    if kind == "link":
        (folder / "names" / "ledger").symlink_to(path)
    else:
        (folder / "names" / "ledger").hardlink_to(path)
    return {"path": folder / "names" / "ledger", **more}


NAMES = ["relative path", "detour", "link to the folder", "link", "hard link"]


@pytest.mark.parametrize("kind", NAMES)
def test_one_ledger_under_two_names_loses_no_charge(files, tmp_path, monkeypatch, kind):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    first = charged(opened(files), [0])
    second = opened(other_name(files, kind, tmp_path))
    for round in range(1, 20):
        charged((first, second)[round % 2], [round])
    assert first.counts() == second.counts() == opened(files).counts() == {EVENT: 20}
    for node in (first, second):
        with pytest.raises(PrivacyError, match="would exceed"):
            charged(node, [20])


@pytest.mark.parametrize("kind", ["link", "hard link"])
def test_processes_that_know_one_ledger_by_two_names_share_its_budget(files, tmp_path, kind):
    """Without a witness, whose lock they would share as well: before, each wrote over the records of the other."""
    alone = {"path": files["path"]}
    opened(alone, None)
    names = [alone, other_name(alone, kind, tmp_path)]
    running = [charging(name, federation, budget=100.0, often=60) for name, federation in zip(names, "ab", strict=True)]
    granted = [len(process.communicate(timeout=120)[0].split()) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert granted == [60, 60]
    assert opened(alone, None).counts() == {EVENT: 120}


# --- what a record says of the message ----------------------------------------------------------------------------


def test_a_release_is_recorded_with_the_time_the_address_and_the_size_of_its_message(files):
    node = opened(files)
    node.charge(EVENT, federation="a", round=3, time=1.8e9, address="https://example.org:8443", size=812)
    record = opened(files).records()[-1]
    assert (record.rounds, record.time, record.address, record.size) == (
        {"a": 3}, 1.8e9, "https://example.org:8443", 812,
    )  # fmt: skip


def test_a_message_that_cannot_be_described_is_not_charged(files):
    node = opened(files)
    for wrong in ({"time": float("nan")}, {"address": "x" * 5000}, {"size": -1}):
        with pytest.raises(PrivacyError, match="a message of"):
            node.charge(EVENT, federation="a", round=3, **wrong)
    assert node.counts() == {}
