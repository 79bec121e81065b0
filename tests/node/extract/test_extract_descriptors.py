"""The parent opens files for its children: few at a time, never for good, and a drive that hangs costs one file."""

import errno
import os
import resource
import signal
import threading
import time
from pathlib import Path

import pytest
from sample_files import bodies

from foltr.node.extract import Extractor, Failure, keeper

FOLDER = Path("/proc/self/fd")
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="needs /proc")


@pytest.fixture
def texts(tmp_path):
    paths = [tmp_path / f"{number:03}.txt" for number in range(100)]
    for path in paths:
        path.write_text(f"text of {path.stem}")
    return paths


def opened(paths):
    """How many of these files this process has open."""
    names, count = {str(path) for path in paths}, 0
    for link in FOLDER.iterdir():
        try:
            count += str(link.readlink()) in names
        except FileNotFoundError:  # it was the descriptor of the listing, or a thread closed it
            continue
    return count


def wait_until(condition):
    """Threads close descriptors a moment after the pool has given them up."""
    for _ in range(2000):
        if condition():
            return True
        time.sleep(0.005)
    return False


def test_no_more_files_are_open_than_requests_may_be_ahead(monkeypatch, texts):
    counts = []
    open_regular = keeper.open_regular

    def counting(path):
        file = open_regular(path)
        counts.append(opened(texts))
        return file

    monkeypatch.setattr(keeper, "open_regular", counting)
    with Extractor() as extractor:
        assert len(list(extractor.extract(texts))) == 100
    assert max(counts) == 16
    assert wait_until(lambda: opened(texts) == 0)


@pytest.mark.parametrize("others", [0, 200])
def test_few_descriptors_are_enough_for_many_workers(texts, others):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(others)]
    base = len(list(FOLDER.iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (base + 40, hard))
    try:
        with Extractor(workers=4) as extractor:
            found = dict(extractor.extract(texts))
            waiting = [path for path, outcome in found.items() if isinstance(outcome, Failure)]
            assert {found[path].state for path in waiting} <= {"waiting"}  # tried again, as the next scan does
            found.update(extractor.extract(waiting))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
    assert len(bodies(found)) == 100


@pytest.mark.parametrize("end", ["abandoned", "killed", "stopped", "exhausted"])
def test_no_descriptor_is_left_behind(texts, end):
    extractor = Extractor(timeout=2)
    before = len(list(FOLDER.iterdir()))
    running = extractor.extract(texts)
    next(running)
    if end == "killed":
        os.kill(extractor.processes()[0], signal.SIGKILL)
    elif end == "stopped":
        os.kill(extractor.processes()[0], signal.SIGSTOP)
    if end == "abandoned":
        running.close()
    else:
        list(running)
    extractor.close()
    assert wait_until(lambda: len(list(FOLDER.iterdir())) <= before)


def test_a_path_that_hangs_when_it_is_opened_costs_one_file(monkeypatch, texts):
    """A thread stands for a network drive that does not answer: nothing in this process can wake it."""
    answers = threading.Event()
    open_regular = keeper.open_regular

    def hanging(path):
        if path.endswith(b"/020.txt"):
            answers.wait()
        return open_regular(path)

    monkeypatch.setattr(keeper, "open_regular", hanging)
    with Extractor(timeout=2) as extractor:
        found = dict(extractor.extract(texts))
    assert found[texts[20]] == Failure("failed", "took longer than 2 s")
    assert set(bodies(found)) == set(texts) - {texts[20]}
    answers.set()
    assert wait_until(lambda: opened(texts) == 0)


def test_a_file_that_hangs_when_it_is_checked_costs_one_file(monkeypatch, texts):
    answers = threading.Event()
    check_unchanged = keeper.check_unchanged
    slow = os.stat(texts[20]).st_ino  # noqa: PTH116

    def hanging(file):
        if os.fstat(file.descriptor).st_ino == slow:
            answers.wait()
        check_unchanged(file)

    monkeypatch.setattr(keeper, "check_unchanged", hanging)
    with Extractor(timeout=2) as extractor:
        found = dict(extractor.extract(texts))
    answers.set()
    assert found[texts[20]] == Failure("failed", "took longer than 2 s")
    assert set(bodies(found)) == set(texts) - {texts[20]}
    assert wait_until(lambda: opened(texts) == 0)


def test_files_that_cannot_be_opened_keep_their_place(texts):
    for path in (texts[0], texts[17], texts[18], texts[99]):
        path.unlink()
    with Extractor() as extractor:
        found = list(extractor.extract(texts))
    assert [path for path, _ in found] == texts
    assert [path for path, result in found if isinstance(result, Failure)] == [
        texts[0],
        texts[17],
        texts[18],
        texts[99],
    ]


def test_too_many_descriptors_on_their_way_are_tried_again_later(monkeypatch, texts):
    def refusing(*_):
        raise OSError(errno.ETOOMANYREFS, "Too many references")

    monkeypatch.setattr(keeper.socket, "send_fds", refusing)
    with Extractor() as extractor:
        found = dict(extractor.extract(texts[:3]))
    assert set(found.values()) == {Failure("waiting", "too many open files")}
    assert wait_until(lambda: opened(texts) == 0)
