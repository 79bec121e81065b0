"""The process that follows changes dies: it is started again, and page and status say that it died and why."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest
from page_client import PORT
from typer.testing import CliRunner

import foltr.node
from foltr.cli.node import app
from foltr.node.index import follower
from foltr.node.page.app import create_app
from foltr.node.page.following import Following

PATIENCE = 60  # seconds, of a loaded machine


class Waits:
    """Stands for waiting: tells the test how long the wait would be, and ends it when the test says so."""

    def __init__(self):
        self.begun, self.over = queue.Queue(), queue.Queue()

    def __call__(self, ended, seconds):
        self.begun.put(seconds)
        return self.over.get()

    def next(self):
        return self.begun.get(timeout=PATIENCE)

    def end(self):
        self.over.put(False)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text("apple")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "docs"])
        list(node.index())
    return tmp_path / "home"


@pytest.fixture
def waits():
    return Waits()


@pytest.fixture
def clock():
    """A clock that the test sets."""
    return [0.0]


@pytest.fixture
def following(node, waits, clock):
    opened = Following(node.places, clock=lambda: clock[0], wait=waits)
    yield opened
    waits.end()
    opened.stop()


@pytest.fixture
def application(node, following):
    """The page with a follower, for `browser_client`."""
    return create_app(node, PORT, following)


def until(condition):
    """Asks a child process until it has done something."""
    last, nothing = time.monotonic() + PATIENCE, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < last, "nothing happened"
        nothing.wait(0.02)  # leaves the processor to the child
    return found


def status_line(home):
    answer = CliRunner().invoke(app, ["status"], env={"FOLTR_NODE_HOME": str(home)})
    assert answer.exit_code == 0
    return " ".join(answer.output.split())


def test_a_killed_follower_is_shown_and_started_again(following, waits, node, home, browser_client, tmp_path):
    following.start()
    until(lambda: following.state.get("mode") == "watching")
    assert "Up to date" in browser_client.get("/index").text
    assert "changes are followed" in status_line(home)
    first = following._child.pid
    os.kill(first, signal.SIGKILL)
    assert waits.next() == 1.0
    for address in ("/index", "/", "/history"):
        text = browser_client.get(address).text
        assert "not followed" in text
        assert "killed by SIGKILL" in text
        assert "Up to date" not in text
    assert "Up to date" not in browser_client.get("/index", headers={"x-part": "true"}).text
    assert "NOT followed: the process that follows changes was killed by SIGKILL" in status_line(home)
    waits.end()
    until(lambda: following.state.get("mode") == "watching")
    assert following._child.pid != first
    (tmp_path / "docs/new.txt").write_text("apple")
    until(lambda: len(node.search("apple").rows) == 2)
    text = browser_client.get("/index").text
    assert "was started again: the process that follows changes was killed by SIGKILL" in " ".join(text.split())
    assert "not followed" not in browser_client.get("/").text
    assert "changes are followed; started again, since" in status_line(home)


def test_the_page_does_not_say_up_to_date_in_the_moment_of_a_death(following, home, browser_client, monkeypatch):
    """The server has not noticed yet: whether the process lives is looked up."""
    following.start()
    until(lambda: following.state.get("phase") == "done")
    monkeypatch.setattr(following, "_note_death", lambda *_: None)
    child = following._child
    child.kill()
    child.wait(PATIENCE)
    following.state = {"phase": "done", "mode": "watching", "folders": 1}
    assert "Up to date" not in browser_client.get("/index").text
    assert "NOT followed: the process that follows changes has ended" in status_line(home)
    until(lambda: following._child is None)


def broken_python(tmp_path, script):
    """A Python that does what a script says instead: a crash at import looks like that from outside."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_delays_grow_to_a_bound_and_start_anew_after_a_steady_time(following, waits, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", broken_python(tmp_path, "exit 3"))
    following.start()
    delays = []
    for _ in range(12):
        delays.append(waits.next())
        waits.end()
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    waits.next()
    blocked = broken_python(tmp_path, "read line; exit 3")  # it ends when its standard input does
    monkeypatch.setattr(sys, "executable", blocked)
    waits.end()
    until(lambda: following._child)
    clock[0] += 601.0
    following._child.stdin.close()
    assert waits.next() == 1.0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "ended with exit code 3"),
        ("exit 0", "ended with exit code 0"),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("""echo '{"error": "OverflowError: too large"}'; exit 1""", "exit code 1: OverflowError: too large"),
        ("""echo '<b>[1]'; echo 7; exit 1""", "exit code 1"),
    ],
    ids=["a crash", "an end", "a signal", "an error", "other output"],
)
def test_the_reason_of_a_death_is_told_in_words(following, waits, home, tmp_path, monkeypatch, script, said):
    monkeypatch.setattr(sys, "executable", broken_python(tmp_path, script))
    following.start()
    waits.next()
    assert said in status_line(home)
    answer = CliRunner().invoke(app, ["status", "--json"], env={"FOLTR_NODE_HOME": str(home)})
    stated = json.loads(answer.output)["following"]
    assert stated["running"] is False
    assert said in stated["problem"]
    assert stated["again"] > 0


def test_a_follower_that_cannot_be_started_is_tried_again(following, waits, home, tmp_path, monkeypatch):
    working = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    following.start()
    assert waits.next() == 1.0
    assert "cannot be started (No such file or directory)" in status_line(home)
    monkeypatch.setattr(sys, "executable", working)
    waits.end()
    until(lambda: following.state.get("mode"))
    assert "changes are followed" in status_line(home)


def test_an_unexpected_error_ends_the_process_and_tells_which(node, tmp_path):
    """The real child, in which following fails as no error of ours does."""
    program = (
        "import sys, foltr.node.index.watch as watch\n"
        "def follow(*_, **__): raise OverflowError('Python int too large')\n"
        "watch.follow = follow\n"
        "from foltr.node.page.following import main\n"
        "main(sys.argv[1])\n"
    )
    arguments = json.dumps({name: str(folder) for name, folder in msgspec.structs.asdict(node.places).items()})
    command = [sys.executable, "-c", program, arguments]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        assert child.wait(PATIENCE) == 1
        (said,) = json.loads(child.stdout.read()).items()
        assert said == ("error", "an error that was not expected (OverflowError: Python int too large)")


def test_stopping_ends_a_wait_and_leaves_no_record(node, home, tmp_path, monkeypatch):
    begun = threading.Event()

    def wait(ended, seconds):
        begun.set()
        return ended.wait(PATIENCE)

    following = Following(node.places, wait=wait)
    monkeypatch.setattr(sys, "executable", broken_python(tmp_path, "exit 3"))
    following.start()
    assert begun.wait(PATIENCE)
    following.stop()
    assert following._child is None
    assert follower.read(node.places) is None
    assert "followed" not in status_line(home)


def test_a_server_that_was_killed_is_told(node, home):
    """Also where its number has been given to another process since."""
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = follower.process(gone.pid)
    follower.write(node.places, follower.Record(server, follower.process(os.getpid())))
    assert follower.read(node.places).running
    gone.kill()
    gone.wait(PATIENCE)
    gone.stdin.close()
    assert "server of the page, which follows changes, was killed" in status_line(home)
    mine = follower.process(os.getpid())
    for other in (follower.Process(mine.number, "1"), follower.Process(2**31 - 1), follower.Process(2**70)):
        assert not follower.is_alive(other)
    assert follower.is_alive(mine)
    follower.remove(node.places, server)
    (node.places.data / "following.json").write_text("{}")
    assert follower.read(node.places) is None


def test_servers_have_records_of_their_own_and_one_that_follows_is_enough(node, home):
    mine, gone = follower.process(os.getpid()), follower.Process(2**31 - 1, "1")
    other = follower.process(os.getppid())
    (node.places.data / "following.json").write_text(json.dumps(
        {"server": {"number": gone.number, "started": "1"}, "follower": None}))  # fmt: skip
    assert not follower.read(node.places).running
    follower.write(node.places, follower.Record(mine, mine))
    follower.write(node.places, follower.Record(other, None, 3, "it died"))
    assert follower.read(node.places).running
    assert len(list(node.places.data.glob("following*.json"))) == 2  # not that of the server that is gone
    follower.remove(node.places, other)
    assert follower.read(node.places).running
    follower.write(node.places, follower.Record(other, None, 3, "it died"))
    follower.remove(node.places, mine)
    assert follower.read(node.places) == follower.Follower(False, 3, "it died", None)
