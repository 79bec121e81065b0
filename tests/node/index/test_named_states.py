"""Files and folders that give trouble end in a state that has a name: large mailboxes, growing logs, permissions."""

import os
import subprocess
import sys
import threading
from itertools import pairwise

import pytest
from watchfiles import Change

import foltr.node
from foltr.node.extract import keeper
from foltr.node.index import watch
from foltr.node.index.indexing import indexer


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


@pytest.fixture
def node(docs, tmp_path):
    with foltr.node.open(tmp_path / "home") as opened:
        opened.add([docs])
        yield opened


def index(node):
    assert list(node.index())[-1].phase == "done"


def test_a_mailbox_of_300_megabytes_is_indexed_up_to_the_limit_and_says_so(node, docs):
    """Its messages go beyond the limit of characters; what follows them is a hole of the file system, never read."""
    body = "".join(f"word{i % 50} garden tree letter house\n" for i in range(30_000))
    with (docs / "big.mbox").open("w") as mailbox:
        for number in range(40):
            mailbox.write("From a@b.example Mon Jan  1 00:00:00 2024\nFrom: a@b.example\n")
            mailbox.write(f"Subject: letter {number}\n\n{body}\n")
    os.truncate(docs / "big.mbox", 300_000_000)
    index(node)
    why = node.why(docs / "big.mbox")
    assert (why.state, why.reason) == ("indexed", "the text is longer than the limits; its beginning is indexed")
    assert 10 < why.documents < 40
    rows = node.search("letter").rows
    assert rows
    assert all(row.cut for row in rows)


def test_a_log_that_grows_all_the_time_waits_and_its_earlier_text_is_found(node, docs, monkeypatch):
    log = docs / "growing.txt"
    log.write_text("apples\n")
    index(node)
    check = keeper.check_unchanged

    def grown(file):
        with log.open("a") as stream:
            stream.write("pears\n")
        check(file)

    with monkeypatch.context() as patch:
        patch.setattr(keeper, "check_unchanged", grown)
        with log.open("a") as stream:
            stream.write("plums\n")
        for _ in range(3):  # each run ends
            index(node)
            why = node.why(log)
            assert (why.state, why.reason) == ("waiting", "changed while it was read")
            assert len(node.search("apples").rows) == 1
    index(node)
    assert node.why(log).state == "indexed"
    assert len(node.search("plums pears").rows) == 1


def test_a_file_that_changes_every_second_is_read_less_and_less_often(node, monkeypatch):
    """For twenty minutes; then it is quiet, and its last change and the first one of another day are read."""
    now, path = [1000.0], "/docs/growing.txt"
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    with indexer(node.places, node.settings) as opened:
        follower = watch._Follower(opened, threading.Event(), 100, 60.0)

        def folders_to_read(changes):
            follower._pending = set()
            follower._note(changes)
            return follower._pending

        read_at = []
        for second in range(1200):
            now[0] = 1000.0 + second
            if folders_to_read({(Change.modified, path)}):
                read_at.append(second)
        assert read_at[:6] == [0, 2, 6, 14, 30, 62]
        assert {later - earlier for earlier, later in pairwise(read_at[7:])} == {120}
        assert folders_to_read({(Change.modified, "/docs/other.txt")}) == {"/docs"}  # other files do not wait
        assert folders_to_read({(Change.deleted, path)}) == {"/docs"}
        now[0] += 120
        assert folders_to_read(set()) == {"/docs"}  # the last change, without another event
        now[0] += 86_400
        assert folders_to_read(set()) == set()
        assert folders_to_read({(Change.modified, path)}) == {"/docs"}


@pytest.mark.slow
def test_a_hundred_thousand_small_files_are_indexed_and_nothing_is_left_waiting(node, docs):
    for folder in range(200):
        (docs / f"folder{folder}").mkdir()
        for number in range(500):
            (docs / f"folder{folder}" / f"note{number}.txt").write_text(
                f"note {number} of {folder}, word{number % 97}\n"
            )
    index(node)
    status = node.status()
    assert {state: count for state, count in status.states.items() if count} == {"indexed": 100_000}
    assert status.documents == 100_000
    assert node.search("folder137 note421").rows[0].path.endswith("/folder137/note421.txt")
    (docs / "folder3" / "note7.txt").write_text("changed afterwards\n")
    index(node)
    assert [row.path.rpartition("/docs/")[2] for row in node.search("changed afterwards").rows] == ["folder3/note7.txt"]


# a superuser without the right to pass over permissions, as any user is
WITHOUT_RIGHTS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(28, 3, 0, 0, 0)  # PR_SET_SECUREBITS: programs that are started get no rights back
header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capset(header, none) == 0
import foltr.node
with foltr.node.open(sys.argv[1]) as node:
    list(node.index())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="gives up rights as Linux does")
def test_permissions_that_come_and_go_between_runs(node, docs, tmp_path):
    for name in ("open", "closing"):
        (docs / name).mkdir()
        (docs / name / "a.txt").write_text("apples")

    def run():
        command = [sys.executable, "-c", WITHOUT_RIGHTS, str(tmp_path / "home")]
        subprocess.run(command, check=True, timeout=300)
        return {path.parent.name: node.why(path).state for path in docs.glob("*/a.txt")}

    assert run() == {"open": "indexed", "closing": "indexed"}
    (docs / "closing").chmod(0)
    try:
        assert run() == {"open": "indexed", "closing": "failed"}
        assert "Permission denied" in node.why(docs / "closing" / "a.txt").reason
        assert len(node.search("apples").rows) == 1
    finally:
        (docs / "closing").chmod(0o700)
    assert run() == {"open": "indexed", "closing": "indexed"}
    assert len(node.search("apples").rows) == 2
