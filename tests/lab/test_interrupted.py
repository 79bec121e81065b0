"""Ctrl-C in the middle, for real: processes that are stopped, and the same bytes once they went on."""

import contextlib
import os
import signal

import psutil
import pytest
from laboratory import ended, singles, start, the_run, until

from foltr.lab.runs.progress import run_plan
from foltr.lab.spec.parse import read

LONG = """\
name = "long"
data = { name = "synthetic-mq2007@60", folds = 1 }
federation = { clients = 100, interactions = 4, rounds = 1500 }
runs = { seeds = 6, evaluate_every = 1500 }
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text(LONG)
    return path


@pytest.fixture(scope="module")
def uninterrupted(shelf, tmp_path_factory):
    """The bytes of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "long.toml").write_text(LONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOLTR_CACHE", str(shelf / "cache"))
        run = run_plan(read(folder / "long.toml"), folder / "runs", jobs=1, quiet=True)
    return (run.dir / "ranker.npz").read_bytes()


def descendants(process):
    """Every process below this one, the pool's workers among them."""
    return psutil.Process(process.pid).children(recursive=True)


def workers(process):
    with contextlib.suppress(psutil.Error):  # one that has just begun or ended
        return [one for one in descendants(process) if "spawn_main" in " ".join(one.cmdline())]
    return []


def gone(processes):
    with contextlib.suppress(psutil.NoSuchProcess):
        return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)
    return False


def ctrl_c(process):
    """What a terminal does: everybody in the foreground hears it."""
    os.killpg(process.pid, signal.SIGINT)


def quiet(answer):
    return "Traceback" not in answer.err and "Exception ignored" not in answer.err


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(jobs, spec, tmp_path, uninterrupted):
    out = tmp_path / "runs"
    process = start("run", spec, "--jobs", jobs, "--out", out)
    until(lambda: singles(out), process=process)
    below = descendants(process)
    ctrl_c(process)
    answer = ended(process)
    stored = singles(out)
    assert answer.code == 1
    assert quiet(answer)
    assert answer.out == ""
    assert answer.err.count("foltr: stopped: ") == 1
    reported = int(answer.err.partition("foltr: stopped: ")[2].split()[0])
    assert f"{reported} of 6 single runs are stored in {out}; the same command resumes" in answer.err
    assert reported <= len(stored) < 6  # some may have reached the disk unheard
    until(lambda: gone(below))
    assert not list(out.glob("*/manifest.json"))

    stamps = {path: path.stat().st_mtime_ns for path in stored}
    again = ended(start("run", spec, "--jobs", jobs, "--out", out))
    assert again.code == 0, again
    assert f"{len(stored)} of 6 single runs are on disk" in again.err
    assert {path: path.stat().st_mtime_ns for path in stored} == stamps
    assert (the_run(out) / "ranker.npz").read_bytes() == uninterrupted


def test_ctrl_c_while_workers_are_only_starting_is_quiet_too(spec, tmp_path):
    process = start("run", spec, "--jobs", 2)
    below = until(lambda: workers(process), process=process)
    ctrl_c(process)
    answer = ended(process)
    assert answer.code == 1
    assert quiet(answer)
    assert "of 6 single runs are stored" in answer.err
    until(lambda: gone(below))
    assert not list((tmp_path / "runs").rglob("*.npz"))


def test_ctrl_c_while_data_is_made_is_one_word_and_leaves_nothing_to_trust(tmp_path, monkeypatch):
    assert ended(start("data", "show", "synthetic-mslr@5")).code == 0  # compiles: numba swallows a Ctrl-C meanwhile
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    process = start("data", "show", "synthetic-mslr")
    until(lambda: list((tmp_path / "cache").rglob("*.npy")), process=process)
    ctrl_c(process)
    answer = ended(process)
    assert answer.code == 1
    assert quiet(answer)
    assert answer.err.strip() == "foltr: stopped"
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_being_ended_from_outside_is_like_ctrl_c(spec, tmp_path):
    out = tmp_path / "runs"
    process = start("run", spec, "--jobs", 2, "--out", out)
    until(lambda: singles(out), process=process)
    below = descendants(process)
    process.terminate()
    answer = ended(process)
    assert answer.code == 1
    assert quiet(answer)
    assert "single runs are stored" in answer.err
    until(lambda: gone(below))


def test_workers_do_not_outlive_a_command_that_was_killed(spec, tmp_path):
    process = start("run", spec, "--jobs", 2)
    until(lambda: singles(tmp_path / "runs"), process=process)
    below = workers(process)
    assert below
    process.kill()
    process.communicate()
    until(lambda: gone(below))


def test_a_worker_that_is_killed_ends_the_run_with_words(spec, tmp_path):
    process = start("run", spec, "--jobs", 2)
    until(lambda: singles(tmp_path / "runs"), process=process)
    workers(process)[0].kill()
    answer = ended(process)
    assert answer.code == 1
    assert quiet(answer)
    assert "foltr: a worker process ended without a word" in answer.err
    assert "with fewer --jobs" in answer.err
