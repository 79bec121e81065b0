"""The pool: late, dead and hostile children cost one file; order, abandoning, several workers."""

import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sample_files import bodies, mbox, plain_message

from foltr.errors import FoltrError, InputError
from foltr.node.extract import Extractor, Failure, Limits, child
from foltr.node.extract.child import Child, Task
from foltr.node.extract.records import Frames, FrameTooLong, Start, frame


@pytest.fixture
def texts(tmp_path):
    """100 small files."""
    paths = [tmp_path / f"{number:03}.txt" for number in range(100)]
    for path in paths:
        path.write_text(f"text of {path.stem}")
    return paths


def test_one_worker_keeps_the_order(texts):
    with Extractor() as extractor:
        assert [path for path, _ in extractor.extract(texts)] == texts
        (process,) = extractor.processes()
        assert [path for path, _ in extractor.extract(iter(texts))] == texts
        assert extractor.processes() == [process]
        assert list(extractor.extract([])) == []


def test_several_workers_answer_each_file_once(texts):
    with Extractor(workers=3) as extractor:
        found = list(extractor.extract(texts))
        assert len(extractor.processes()) == 3
    assert len(found) == 100
    assert bodies(dict(found)) == {path: f"text of {path.stem}" for path in texts}


def test_paths_are_taken_as_they_are_needed(texts):
    taken = []

    def paths():
        for path in texts:
            taken.append(path)
            yield path

    with Extractor() as extractor:
        next(extractor.extract(paths()))
        assert len(taken) < 40


def test_an_abandoned_iterator_leaves_nothing_behind(texts):
    with Extractor() as extractor:
        first = extractor.extract(texts)
        assert next(first)[0] == texts[0]
        with pytest.raises(InputError, match="already extracting"):
            next(extractor.extract(texts))
        first.close()
        assert [path for path, _ in extractor.extract(texts[50:53])] == texts[50:53]


def test_closing_ends_the_children_and_a_later_file_starts_new_ones(texts):
    extractor = Extractor()
    list(extractor.extract(texts[:2]))
    (process,) = extractor.processes()
    extractor.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert len(list(extractor.extract(texts[:2]))) == 2
    extractor.close()


def test_a_child_that_hangs_is_killed(texts):
    """A stopped process answers nothing and reacts to no signal but SIGKILL."""
    with Extractor(timeout=3) as extractor:
        list(extractor.extract(texts[:1]))
        (process,) = extractor.processes()
        os.kill(process, signal.SIGSTOP)
        found = dict(extractor.extract(texts[1:30]))
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert found[texts[1]] == Failure("failed", "took longer than 3 s")
    assert list(bodies(found)) == texts[2:30]


def test_a_child_that_died_between_two_files_costs_none(texts):
    with Extractor() as extractor:
        list(extractor.extract(texts[:1]))
        os.kill(extractor.processes()[0], signal.SIGKILL)
        assert list(bodies(dict(extractor.extract(texts[1:30])))) == texts[1:30]


def test_a_child_that_grew_is_replaced(tmp_path, texts):
    big = tmp_path / "big.html"
    big.write_bytes(b"<p>word</p>" * 300_000)
    with Extractor(memory=512 << 20, limits=Limits(characters=100)) as extractor:
        list(extractor.extract([texts[0]]))
        (process,) = extractor.processes()
        assert len(bodies(dict(extractor.extract([big, *texts])))) == 101
        assert extractor.processes() != [process]


def test_children_that_cannot_start(monkeypatch, texts):
    monkeypatch.setattr(child, "_PROGRAM", "raise SystemExit(5)")
    with Extractor() as extractor, pytest.raises(FoltrError, match=r"cannot be started \(exit code 5\)"):
        list(extractor.extract(texts))


@pytest.mark.parametrize("options", [{"workers": 0}, {"timeout": 0}, {"memory": 1 << 20}])
def test_impossible_options(options):
    with pytest.raises(InputError, match="at least one worker"):
        Extractor(**options)


# ---- a mailbox that changes while a child reads it


@pytest.fixture
def reading(tmp_path):
    """A child that waits, in the middle of a mailbox, until its first part is received."""
    path = tmp_path / "a.mbox"
    path.write_bytes(mbox(*(plain_message(number, "word " * 20_000) for number in range(100))))
    awake, wake = os.pipe()
    running = Child(Start(Limits(), 1 << 30, 600.0), 60.0, wake)
    running.give([Task(path, os.fsencode(path))])
    received = b""
    with selectors.DefaultSelector() as selector:
        selector.register(running.socket, selectors.EVENT_READ)
        while len(received) < 200:  # more than the answer that says that it is ready: a part is on its way
            selector.select()
            received = running.socket.recv(1 << 18, socket.MSG_PEEK)
            if len(received) < 200:
                running.receive()
    yield path, running
    running.end()
    os.close(awake)
    os.close(wake)


def answer(running):
    """The answer to the only task of a child."""
    while not (results := list(running.results())):
        with selectors.DefaultSelector() as selector:
            selector.register(running.socket, selectors.EVENT_READ)
            if selector.select(0.01):
                running.receive()
    return results[0][1]


def test_a_mailbox_that_is_appended_to(reading):
    path, running = reading
    with path.open("ab") as more:
        more.write(mbox(plain_message(200)))
    assert answer(running) == Failure("waiting", "changed while it was read")


def test_a_mailbox_that_shrinks(reading):
    path, running = reading
    os.truncate(path, 1000)
    assert answer(running) == Failure("waiting", "changed while it was read")


def test_a_mailbox_that_vanishes(reading):
    path, running = reading
    path.unlink()
    assert answer(running) == Failure("failed", "vanished while it was read")


def test_a_mailbox_that_stays(reading):
    _, running = reading
    assert len(answer(running).documents) == 100


# ---- what a child has


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_child_has_a_low_priority_and_only_its_socket(texts):
    with Extractor() as extractor:
        list(extractor.extract(texts[:1]))
        (process,) = extractor.processes()
        assert os.getpriority(os.PRIO_PROCESS, process) == max(10, os.getpriority(os.PRIO_PROCESS, 0))
        assert os.getsid(process) == process  # no terminal, and Ctrl-C does not reach it
        folder = Path("/proc", str(process))
        opened = {str(link.readlink()).partition(":")[0] for link in (folder / "fd").iterdir()}
        own = {str(texts[0])}  # its file, until it has closed it
        assert opened - own == {"/dev/null", "socket", f"/proc/{process}/statm"}
        names = {entry.partition(b"=")[0] for entry in (folder / "environ").read_bytes().split(b"\0") if entry}
        assert names <= {b"LD_LIBRARY_PATH", b"TZ"}


ORPHAN = """
import sys
from foltr.node.extract import Extractor
extractor = Extractor()
list(extractor.extract(sys.argv[1:]))
print(extractor.processes()[0], flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open of Linux")
def test_a_child_ends_with_its_parent(texts):
    command = [sys.executable, "-c", ORPHAN, texts[0]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        descriptor = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    with selectors.DefaultSelector() as selector:  # a descriptor of a process is readable when it has ended
        selector.register(descriptor, selectors.EVENT_READ)
        assert selector.select(60)
    os.close(descriptor)


# ---- messages in pieces


def test_frames_in_any_pieces():
    sent = frame(b"one") + frame(b"") + frame(b"three")
    for size in range(1, len(sent) + 1):
        frames = Frames(10)
        pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
        assert [message for piece in pieces for message in frames.feed(piece)] == [b"one", b"", b"three"]


def test_a_frame_that_is_too_long_is_refused_by_its_announcement():
    with pytest.raises(FrameTooLong):
        list(Frames(10).feed(frame(b"x" * 11)[:4]))
