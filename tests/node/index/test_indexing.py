"""Indexing real folders: every file in one state, exact statistics, hostile trees, changes, forgetting."""

import os
import socket
import stat
import subprocess
import sys

import pytest
from small_index import byte_search, node_at, run, searched
from test_index_statistics import assert_exact

from foltr.errors import StorageError
from foltr.node import places as node_places
from foltr.node.index import background, indexing, layout
from foltr.node.index.layout import Reader
from foltr.node.index.rules import Rules
from foltr.node.settings import Settings
from foltr.node.status import why

UNIQUE = "quetzalcoatlus"


def entries(root):
    """Every file below a root, entering no excluded folder: what the states have to add up to."""
    reader_rules = Rules(Settings(roots=(str(root),)))
    found = set()
    for folder, folders, names in os.walk(root):
        for name in list(folders):
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.islink(path) or reader_rules.verdict(path):  # noqa: PTH114
                folders.remove(name)
                found.add(path)
        found.update(os.path.join(folder, name) for name in names)  # noqa: PTH118
    return found


def stored(reader):
    rows = reader.store.connection.execute("SELECT o.path, f.name FROM files f JOIN folders o ON o.id = f.folder")
    return [os.fsdecode(folder.rstrip(b"/") + b"/" + name) for folder, name in rows]


def test_every_file_is_in_exactly_one_state_and_the_counts_add_up(tmp_path):
    root = tmp_path / "docs"
    for path in ("a.txt", "sub/b.md", "sub/deep/c.html", ".git/config", "node_modules/x/y.js", ".ssh/id_rsa", "p.png"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"<p>hello {UNIQUE} {path}</p>")
    (root / "empty.txt").write_bytes(b"")
    (root / "binary.txt").write_bytes(bytes(range(256)) * 20)
    (root / "loop").symlink_to(root)
    (root / "outside").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9\n\x1b[31m.txt")).write_text(f"coffee {UNIQUE}")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    rows = stored(reader)
    assert len(rows) == len(set(rows))
    assert set(rows) == entries(root)
    states = reader.store.states()
    assert sum(states.values()) == len(rows)
    assert states["waiting"] == 0
    assert states["failed"] == 0
    assert searched(reader, UNIQUE) == {"a.txt", "b.md", "c.html", os.fsdecode(b"caf\xe9\n\x1b[31m.txt")}
    assert_exact(reader.store)
    rules = Rules(settings)

    def said(path):
        found = why(reader.store, rules, str(path))
        return found.state, found.reason

    assert said(root / "a.txt") == ("indexed", None)
    assert said(root / ".git") == ("excluded", "the whole folder, by version control: .git/")
    assert said(root / ".git/config") == ("excluded", f"it is in {root}/.git: version control: .git/")
    assert said(root / ".ssh/id_rsa")[0] == "excluded"
    assert said(root / "p.png")[0] == "skipped"
    assert "found by its name" in said(root / "p.png")[1]
    assert said(root / "loop") == ("skipped", "a symbolic link")
    assert said(root / "pipe") == ("skipped", "not a regular file")
    assert said(root / "binary.txt")[0] == "skipped"
    assert said(tmp_path / "else.txt")[0] == "outside"
    assert said(root / "no.txt") == ("absent", "there is no such file")
    (root / "late.txt").write_text("x")
    assert said(root / "late.txt")[0] == "waiting"
    (root / "a.txt").unlink()
    assert said(root / "a.txt")[0] == "absent"
    reader.close()


def test_only_what_changed_is_read_again(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(20):
        (root / f"{i}.txt").write_text(f"apple {i}")
    places, settings = node_at(tmp_path, root)
    assert run(places, settings)[-1].total == 20
    assert run(places, settings)[-1].total == 0
    (root / "3.txt").write_text("pear pear")
    (root / "4.txt").unlink()
    (root / "5.txt").rename(root / "fifth.txt")
    assert run(places, settings)[-1].total == 2
    reader = Reader(places)
    assert searched(reader, "pear") == {"3.txt"}
    assert reader.store.collection().documents == 19
    assert "fifth.txt" in searched(reader, "apple")
    assert_exact(reader.store)
    reader.close()


def test_nested_roots_and_single_files_are_counted_once(tmp_path):
    outer, inner = tmp_path / "docs", tmp_path / "docs/.notes"
    inner.mkdir(parents=True)
    (outer / "a.txt").write_text(UNIQUE)
    (outer / "b.txt").write_text(UNIQUE)
    (inner / "c.txt").write_text(UNIQUE)
    (tmp_path / "single.txt").write_text(UNIQUE)
    places, settings = node_at(tmp_path, outer, inner, tmp_path / "single.txt", outer / "b.txt")
    run(places, settings)
    reader = Reader(places)
    assert searched(reader, UNIQUE) == {"a.txt", "b.txt", "c.txt", "single.txt"}
    assert reader.store.collection().documents == 4
    reader.close()
    fewer = Settings(roots=(str(outer),))
    run(places, fewer)
    reader = Reader(places)
    assert searched(reader, UNIQUE) == {"a.txt", "b.txt"}
    assert_exact(reader.store)
    reader.close()


# a superuser without the right to pass over permissions, as any user is: closed folders stay closed
WITHOUT_RIGHTS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(28, 3, 0, 0, 0)  # PR_SET_SECUREBITS: programs that are started get no rights back
header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capset(header, none) == 0
from small_index import node_at, run
from pathlib import Path
run(*node_at(Path(sys.argv[1]), sys.argv[2]))
"""


def test_folders_and_files_without_permission_fail_and_nothing_else(tmp_path):
    root = tmp_path / "docs"
    (root / "closed").mkdir(parents=True)
    (root / "closed/a.txt").write_text("apple")
    (root / "b.txt").write_text("apple")
    (root / "c.txt").write_text("apple")
    (root / "closed").chmod(0)
    (root / "c.txt").chmod(0)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):  # the same again: nothing changes
        subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, str(tmp_path), str(root)], check=True, env=environment, timeout=300
        )
        places, settings = node_at(tmp_path, root)
        reader = Reader(places)
        assert why(reader.store, Rules(settings), str(root / "closed/a.txt")).reason.endswith("Permission denied")
        assert why(reader.store, Rules(settings), str(root / "c.txt")).reason == "no permission to read it"
        assert reader.store.states() == {"waiting": 0, "indexed": 1, "excluded": 0, "skipped": 0, "failed": 2}
        assert searched(reader, "apple") == {"b.txt"}
        reader.close()
    (root / "closed").chmod(0o700)


def test_an_absent_root_keeps_its_documents_and_a_folder_that_vanished_loses_them(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        (root / "sub").mkdir(parents=True)
        (root / "sub" / f"{root.name}.txt").write_text(UNIQUE)
    places, settings = node_at(tmp_path, first, second)
    run(places, settings)
    first.rename(tmp_path / "unmounted")
    (second / "sub" / "second.txt").unlink()
    (second / "sub").rmdir()
    run(places, settings)
    reader = Reader(places)
    assert searched(reader, UNIQUE) == {"first.txt"}
    state, reason = reader.store.connection.execute("SELECT state, reason FROM roots ORDER BY id LIMIT 1").fetchone()
    assert (state, reason) == ("away", "it cannot be reached: No such file or directory")
    reader.close()


def test_deep_and_wide_trees_and_odd_files(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(60):  # beyond the longest path that can be named
        os.mkdir("d" * 100, dir_fd=here)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    server = socket.socket(socket.AF_UNIX)
    os.chdir(root)
    server.bind("s")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert reader.store.states()["failed"] == 1
    assert why(reader.store, Rules(settings), str(root / "s")).reason == "not a regular file"
    reader.close()
    server.close()
    os.chdir("/")
    os.system(f"rm -rf '{root}'")  # noqa: S605 - shutil cannot name the inner folders either


def test_removing_a_root_and_new_rules_reach_the_bytes(tmp_path):
    public, private = tmp_path / "public", tmp_path / "private"
    for root in (public, private):
        (root / "sub").mkdir(parents=True)
        for i in range(30):
            (root / f"sub/{i}.txt").write_text(f"shared words {root.name}word{i} {i}")
    (private / f"{UNIQUE}.txt").write_text(f"From: {UNIQUE}\n" + f"{UNIQUE} is unique " * 50)
    (public / "draft.log").write_text("megalosaurus is in a draft")
    places, settings = node_at(tmp_path, public, private)
    run(places, settings)
    assert byte_search(places.cache, UNIQUE)
    assert byte_search(places.cache, "megalosaurus")
    indexing.apply_removals(places, Settings(roots=(str(public),), exclude=("*.log",)))
    for word in (UNIQUE, "megalosaurus", "privateword"):
        assert byte_search(places.cache, word) == []
    assert byte_search(places.cache, "publicword")
    reader = Reader(places)
    assert searched(reader, "shared") == {f"{i}.txt" for i in range(30)}
    assert_exact(reader.store)
    reader.close()
    indexing.erase(places)
    assert byte_search(places.cache, "publicword") == []
    with pytest.raises(StorageError, match="no index yet"):
        Reader(places)


def test_ordinary_deletions_reach_the_bytes_with_the_next_scan(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.txt").write_text(f"{UNIQUE} here")
    (root / "b.txt").write_text("other words")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    (root / "a.txt").unlink()
    run(places, settings)
    assert byte_search(places.cache, UNIQUE) == []


def test_the_index_stays_small_under_single_updates(tmp_path):
    """80 updates of single files, twice the documents."""
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(40):
        (root / f"{i}.txt").write_text(" ".join(f"word{(i * 7 + j) % 900}" for j in range(300)))
    places, settings = node_at(tmp_path, root)
    with indexing.indexer(places, settings) as opened:
        list(opened.run())
        for i in range(80):
            text = " ".join(f"word{(i * 11 + j) % 900} new{i}" for j in range(150))
            (root / f"{i % 40}.txt").write_text(text)
            list(opened.run([str(root)]))
        assert_exact(opened.writer.store)
    fresh, _ = node_at(tmp_path / "fresh", root)
    run(fresh, settings)
    assert size(places.cache) < 1.5 * size(fresh.cache)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_another_analysis_is_built_beside_the_old_index_which_serves_meanwhile(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(5):
        (root / f"{i}.txt").write_text("Häuser und laufende Katzen")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    before = layout.live_folder(places)
    german = Settings(roots=settings.roots, language="german")
    reader = Reader(places)
    with indexing.indexer(places, german) as opened:
        for _ in opened.run():
            if layout.live_folder(places) == before:
                assert searched(reader.refresh(), "katzen") == {f"{i}.txt" for i in range(5)}
    assert layout.live_folder(places) != before
    assert not before.exists()
    assert searched(reader.refresh(), "katze") == {f"{i}.txt" for i in range(5)}
    assert reader.store.analysis.language == "german"
    assert run(places, german)[-1].total == 0
    reader.close()


def test_pausing_stops_between_batches_and_nothing_is_lost(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(1200):
        (root / f"{i}.txt").write_text(f"apple {i}")
    places, settings = node_at(tmp_path, root)
    phases = []
    for progress in indexing.index(places, settings):
        phases.append(progress.phase)
        if progress.phase == "index":
            background.pause(places)
    assert phases[-1] == "paused"
    reader = Reader(places)
    states = reader.store.states()
    assert states["waiting"] > 0
    assert states["waiting"] + states["indexed"] == 1200
    assert [one.phase for one in indexing.index(places, settings)] == ["paused"]
    background.resume(places)
    assert run(places, settings)[-1].phase == "done"
    assert reader.store.states()["indexed"] == 1200
    reader.close()


def test_a_second_indexing_process_is_refused(tmp_path):
    places, settings = node_at(tmp_path, tmp_path)
    with (
        indexing.indexer(places, settings),
        pytest.raises(StorageError, match="is indexing"),
        indexing.indexer(places, settings),
    ):
        pass


def test_folders_are_private_and_the_cache_is_marked(tmp_path, monkeypatch):
    for variable, folder in (("CONFIG", "c"), ("DATA", "d"), ("CACHE", "k")):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / folder))
    monkeypatch.delenv("FOLTR_NODE_HOME", raising=False)
    places = node_places.create(node_places.find())
    assert places.config == tmp_path / "c/foltr"
    assert places.data == tmp_path / "d/foltr/node"
    assert places.cache == tmp_path / "k/foltr/node"
    run(places, Settings(roots=(str(tmp_path / "d"),)))
    assert (places.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    for folder in (places.data, places.cache):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in places.cache.rglob("index.sqlite*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.setenv("FOLTR_NODE_HOME", str(tmp_path / "one"))
    assert node_places.find().cache == tmp_path / "one/cache"
