"""A disk that is full, a folder that cannot be written, a limit on files: words, exit code 1, nothing half-written."""

import errno
import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from laboratory import ended, singles, start

from foltr.errors import StorageError
from foltr.lab.runs import store
from foltr.lab.simulation.evaluation import RunResult


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def over_quota(*_, **__):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


SINGLE = RunResult(np.arange(3), np.ones((3, 3)), np.arange(3), np.ones((2, 3)), np.zeros(5), 7, 0.5)


@pytest.mark.parametrize("fails", [full, over_quota])
@pytest.mark.parametrize(
    "place", ["numpy.savez", "pathlib.Path.replace", "pathlib.Path.write_bytes", "pathlib.Path.mkdir"]
)
def test_a_full_disk_is_named_with_what_to_do_and_leaves_nothing(place, fails, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(place, fails)
        with pytest.raises(StorageError, match=r"singles/key\.npz: the disk is full; free some space or .*--out"):
            store.save(tmp_path, "key", SINGLE)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert store.load(tmp_path, "key") is None


@pytest.mark.parametrize("place", ["numpy.savez", "pathlib.Path.replace", "polars.DataFrame.write_parquet"])
def test_a_full_disk_ends_a_run_with_one_message(place, command, tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        answer = command("run", tiny, "--jobs", 1)
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.count("foltr: ") == 1
    assert "the disk is full" in answer.err
    assert "Traceback" not in answer.err
    assert not list((tmp_path / "runs").glob("*/manifest.json"))
    assert not list((tmp_path / "runs").rglob("*.part"))


def test_once_there_is_room_the_same_command_goes_on(command, tiny, finished, tmp_path, monkeypatch):
    rename, count = Path.replace, iter(range(100))

    def full_at_the_fourth(self, target):
        return full() if next(count) == 3 else rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full_at_the_fourth)
        assert command("run", tiny, "--jobs", 1).code == 1
    assert len(singles(tmp_path / "runs")) == 3
    answer = command("run", tiny, "--jobs", 1)
    assert answer.code == 0
    assert "3 of 8 single runs are on disk" in answer.err
    (mine,), (other,) = (list(out.glob("*/ranker.npz")) for out in (tmp_path / "runs", finished))
    assert mine.read_bytes() == other.read_bytes()


# --- a real limit ---------------------------------------------------------------------------------------------------


def limited(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python does: the write itself fails then
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.skipif(sys.platform != "linux", reason="limits on the size of files are those of Linux")
@pytest.mark.parametrize(
    ("size", "jobs", "named", "stored"),
    [(1000, 1, "singles", 0), (1000, 2, "singles", 0), (8000, 1, "rows.parquet", 8)],
    ids=["of a single run", "of a single run in a worker", "of the rows"],
)
def test_a_real_limit_on_the_size_of_files_is_named(size, jobs, named, stored, tiny, tmp_path, finished):
    """Machine code and data are in the cache already: the first file to grow too large is one of the run's."""
    assert finished.is_dir()
    answer = ended(start("run", tiny, "--jobs", jobs, preexec_fn=limited(size)))
    assert answer.code == 1, answer
    assert answer.out == ""
    assert answer.err.count("foltr: ") == 1
    assert "a limit on the size of files was reached; raise it (ulimit -f), then try again" in answer.err
    assert named in answer.err
    assert "Traceback" not in answer.err
    assert "Exception ignored" not in answer.err
    left = sorted(path for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert left == singles(tmp_path / "runs")
    assert len(left) == stored


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", [("data", "list"), ("data", "list", "--json")], ids=" ".join)
def test_an_answer_that_finds_no_room_is_told(arguments):
    with Path("/dev/full").open("w") as nowhere:
        answer = ended(start(*arguments, stdout=nowhere))
    assert answer.code == 1
    assert answer.err == "foltr: standard output: No space left on device\n"


# --- folders --------------------------------------------------------------------------------------------------------


def test_a_file_in_place_of_the_folder_for_runs_is_named(command, tiny, tmp_path):
    (tmp_path / "taken").write_text("a file")
    answer = command("run", tiny, "--out", tmp_path / "taken", "--jobs", 1)
    assert answer.code == 1
    assert f"foltr: {tmp_path / 'taken'}" in answer.err
    assert "cannot be written" in answer.err
    assert "choose another folder with --out" in answer.err
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "write_bytes", forbidden)
    with pytest.raises(
        StorageError, match=r"cannot be written \(Permission denied\); choose another folder with --out"
    ):
        store.save(tmp_path, "key", SINGLE)


@pytest.mark.parametrize("place", ["a file", "a file/below", "/proc/runs"])
@pytest.mark.parametrize("form", ["run", "reproduce"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(
    form, place, command, tiny, tmp_path, monkeypatch
):
    """As root every folder can be written, so a file stands where a folder should be; /proc takes no file either."""

    def computing(*_, **__):
        raise AssertionError("it computes")

    monkeypatch.setattr("foltr.lab.runs.run.run_jobs", computing)
    monkeypatch.setattr("foltr.lab.runs.progress._compile", computing)
    (tmp_path / "a file").write_text("mine")
    said = {"run": ("run", tiny), "reproduce": ("reproduce", "silo/growth", "--quick")}[form]
    answer = command(*said, "--out", place)
    assert (answer.code, answer.out) == (1, "")
    assert "cannot be written" in answer.err
    assert "choose another folder with --out" in answer.err
    assert answer.err.count("foltr: ") == 1
    assert "Traceback" not in answer.err
    assert (tmp_path / "a file").read_text() == "mine"
