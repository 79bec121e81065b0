"""Another version of the tables: the old index serves, unchanged, until the new one is complete, whatever happens."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from small_index import byte_search
from test_index_statistics import assert_exact
from typer.testing import CliRunner

import foltr.node
from foltr.cli.node import app
from foltr.errors import StorageError
from foltr.node import places as node_places
from foltr.node.index import indexing, layout, schema
from foltr.node.index.store import Store
from foltr.rng import stream

FILES = 60
OLD, NEW = schema.SCHEMA, schema.SCHEMA + 1

# tables as an earlier program may have written them: two names differ, and one column is not there yet
RENAMED = """
ALTER TABLE documents RENAME COLUMN title TO caption;
ALTER TABLE documents DROP COLUMN recipients;
ALTER TABLE bodies RENAME TO texts;
"""
AS_TODAY = """
CREATE TEMP VIEW documents AS
    SELECT id, file, part, caption AS title, kind, date, sender, '' AS recipients, generation, has_text
    FROM main.documents;
CREATE TEMP VIEW bodies AS SELECT document, content FROM texts;
"""

CHILD = """
import os, shutil, signal, sys
import foltr.node
from foltr.node.index import indexing, layout, schema
schema.SCHEMA, schema.VIEWS[int(sys.argv[2])] = int(sys.argv[2]) + 1, sys.argv[3]
indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS = 5, 0.0
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[4] == "before the switch":
    layout.publish = die
elif sys.argv[4] == "before the old one is deleted":
    layout._delete_others = die
elif sys.argv[4] == "while the old one is deleted":
    def some(folder, ignore_errors=False):
        if (folder / "index.sqlite").exists():
            (folder / "index.sqlite").unlink()
            die()
    shutil.rmtree = some
with foltr.node.open(sys.argv[1]) as node:
    for progress in node.index():
        print(progress.phase, flush=True)
"""


@pytest.fixture
def home(tmp_path):
    """A node with a choice, whose index a program of version OLD has written."""
    (tmp_path / "docs").mkdir()
    for i in range(FILES):
        (tmp_path / f"docs/{i}.md").write_text(f"# Note {i}\n\napple pear number{i} " + "word " * (i % 7))
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "docs"])
        list(node.index())
        found = node.search("apple", limit=FILES)
        node.choose(found, next(row.id for row in found.rows if row.path.endswith("/41.md")))
    return tmp_path / "home"


@pytest.fixture(params=["", AS_TODAY], ids=["same tables", "other tables"])
def raised(request, home, monkeypatch):
    """The program is of version NEW from here on."""
    if request.param:
        rewrite(home, RENAMED)
        monkeypatch.setitem(schema.VIEWS, OLD, request.param)
    monkeypatch.setattr(schema, "SCHEMA", NEW)
    return request.param


def rewrite(home, script):
    connection = sqlite3.connect(live(home) / "index.sqlite")
    connection.executescript(script + "PRAGMA wal_checkpoint(TRUNCATE);")
    connection.close()


def live(home):
    return layout.live_folder(node_places.find(home))


def digest(folder):
    return hashlib.sha256((folder / "index.sqlite").read_bytes()).hexdigest()


def found(node, text="apple", limit=10):
    return [row.path.rpartition("/")[2] for row in node.search(text, limit=limit).rows]


def test_the_old_index_serves_until_the_new_one_is_complete(home, raised, monkeypatch):
    monkeypatch.setattr(indexing, "_BATCH_DOCUMENTS", 5)
    before = live(home)
    with foltr.node.open(home) as node, foltr.node.open(home) as other:
        first = found(node)
        assert first[0] == "41.md"  # what was chosen
        numbers = {row.id for row in node.search("apple", limit=FILES).rows}
        served = 0
        for _ in other.index():
            if live(home) == before:
                assert found(node) == first
                assert found(node, "number17")[0] == "17.md"
                served += 1
        assert served > FILES // 5
        assert not before.exists()
        assert found(node) == first
        assert {row.id for row in node.search("apple", limit=FILES).rows}.isdisjoint(numbers)
        with node.reading() as reader:
            assert reader.store.version == NEW


def test_reading_an_old_index_does_not_change_it(home, raised):
    content = digest(live(home))
    with foltr.node.open(home) as node:
        assert len(found(node, limit=FILES)) == FILES
        assert node.status().documents == FILES
        assert node.search("pear").rows[0].snippet.text
    assert digest(live(home)) == content


@pytest.mark.parametrize("why", ["too old", "a column is missing", "from the future"])
def test_an_index_that_cannot_be_read_says_so_and_is_built_anew(home, monkeypatch, why):
    if why == "a column is missing":
        rewrite(home, RENAMED)
    if why == "too old":
        monkeypatch.setattr(schema, "OLDEST_READABLE", NEW)
    monkeypatch.setattr(schema, "SCHEMA", OLD - 1 if why == "from the future" else NEW)
    with foltr.node.open(home) as node:
        with pytest.raises(StorageError, match="index again"):
            node.search("apple")
        list(node.index())
        assert found(node)[0] == "41.md"


@pytest.mark.parametrize("step", ["before the switch", "before the old one is deleted", "while the old one is deleted"])
def test_killed_at_the_switch(home, raised, step):
    before = live(home)
    killed = child(home, raised, step)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with foltr.node.open(home) as node:
        assert (live(home) == before) == (step == "before the switch")
        assert len(found(node, limit=FILES)) == FILES
        list(node.index())
        assert found(node)[0] == "41.md"
    assert not before.exists()
    assert list((home / "cache").glob("index-*")) == [live(home)]


def test_killed_anywhere(home, raised):
    moments = stream(3, purpose="choice").uniform(8)
    halfway = 0
    for moment in moments:
        process = child(home, raised, "")
        for _ in range(int(moment * 12)):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        process.stdout.close()
        halfway += len(list((home / "cache").glob("index-*"))) == 2
        with foltr.node.open(home) as node:
            assert len(found(node, limit=FILES)) == FILES
            assert found(node)[0] == "41.md"
    assert halfway >= 3
    with foltr.node.open(home) as node:
        list(node.index())
    store = Store(live(home) / "index.sqlite")
    assert store.version == NEW
    assert_exact(store)
    store.close()


def child(home, views, step):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), str(OLD), views, step],
        stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def half_built(node):
    """An index of the new version that was begun and not completed."""
    building = node.index()
    next(building)
    building.close()


def test_what_must_be_erased_does_not_wait_for_the_new_index(home, raised, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more/kept.md").write_text("apple kept")
    with foltr.node.open(home) as node:
        node.add([tmp_path / "more"])
        half_built(node)
        assert len(byte_search(home, "number17")) > 0
        node.remove(tmp_path / "docs")
        for word in ("number17", "pear"):
            assert byte_search(home, word) == []
        list(node.index())
        assert found(node) == ["kept.md"]


def test_a_change_that_is_taken_back_leaves_no_second_index(home, monkeypatch):
    before = live(home)
    monkeypatch.setattr(schema, "SCHEMA", NEW)
    with foltr.node.open(home) as node:
        half_built(node)
        assert len(list((home / "cache").glob("index-*"))) == 2
        monkeypatch.setattr(schema, "SCHEMA", OLD)
        list(node.index())
    assert list((home / "cache").glob("index-*")) == [before]


def test_the_status_says_how_far_the_new_index_is(home, raised, monkeypatch):
    monkeypatch.setattr(indexing, "_BATCH_DOCUMENTS", 5)
    monkeypatch.setenv("FOLTR_NODE_HOME", str(home))
    assert "earlier index is searched until the new one is complete; foltr node index" in said("status")
    with foltr.node.open(home) as node, foltr.node.open(home) as other:
        assert node.status().rebuilding == (0, 0)
        seen = [(progress.phase, node.status().rebuilding) for progress in other.index()]
        assert seen.pop() == ("done", None)
        done = [new.done for phase, new in seen if phase == "index"]
        assert done == sorted(set(done))
        assert 0 < done[0] < done[-1] <= FILES
        assert {new.total for phase, new in seen if phase == "index"} == {FILES}
    assert "earlier index" not in said("status")


def test_a_half_built_index_is_named_in_the_status(home, monkeypatch):
    monkeypatch.setattr(schema, "SCHEMA", NEW)
    monkeypatch.setenv("FOLTR_NODE_HOME", str(home))
    with foltr.node.open(home) as node:
        half_built(node)
        total = node.status().rebuilding.total
    assert total > 0
    assert f"complete: 0 of {total} files are done" in said("status")
    assert json.loads(said("status", "--json"))["rebuilding"] == {"done": 0, "total": total}


def said(*words):
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    return " ".join(answer.output.split())
