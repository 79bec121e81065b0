"""A file system that is really full while indexing and choosing: errors with advice, nothing half-written."""

import contextlib
import ctypes
import os
from pathlib import Path

import pytest
from small_index import node_at, run, searched
from test_index_statistics import assert_exact

import foltr.node
from foltr.errors import FoltrError, StorageError
from foltr.node.index.layout import Reader

FILES = 150


@pytest.fixture
def small(tmp_path):
    """A folder on a file system of its own, of eight megabytes."""
    libc = ctypes.CDLL(None, use_errno=True)
    target = tmp_path / "home"
    target.mkdir()
    if libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", 0, b"size=8m") != 0:
        pytest.skip(f"mounting a tmpfs: {os.strerror(ctypes.get_errno())}")
    yield target
    libc.umount2(os.fsencode(target), 2)


@contextlib.contextmanager
def filled(folder, leaving):
    """The file system of a folder with a number of free bytes."""
    ballast = folder / "ballast"
    usage = os.statvfs(folder)
    ballast.write_bytes(b"x" * max(0, usage.f_bavail * usage.f_frsize - leaving))
    try:
        yield
    finally:
        ballast.unlink()


def write_documents(root):
    root.mkdir()
    for i in range(FILES):
        (root / f"{i}.txt").write_text(" ".join(f"word{i}x{j}" for j in range(150)) + " apple")


@pytest.mark.parametrize("leaving", [0, 100_000, 400_000, 900_000])
def test_a_full_file_system_stops_indexing_and_harms_nothing(small, tmp_path, leaving):
    root = tmp_path / "docs"
    write_documents(root)
    places, settings = node_at(tmp_path, root)
    with filled(small, leaving), pytest.raises(StorageError, match=r"full|free some space|delete the file|cannot be"):
        run(places, settings)
    assert run(places, settings)[-1].phase == "done"
    reader = Reader(places)
    assert reader.store.states()["indexed"] == FILES
    assert searched(reader, "word7x3") == {"7.txt"}
    assert_exact(reader.store)
    reader.close()


def test_searching_and_what_was_acknowledged_survive_a_full_file_system(small, tmp_path):
    root = tmp_path / "docs"
    write_documents(root)
    with foltr.node.open(small) as node:
        node.add([root])
        list(node.index())
        first = node.search("apple word7x3")
        node.choose(first, first.rows[0].id)
        expected = [row.path for row in node.search("apple word7x3").rows]
        acknowledged = 1
        with filled(small, 0):
            assert [row.path for row in node.search("apple word7x3").rows] == expected
            for number in range(40):
                found = node.search(f"word{number}x1")
                try:
                    node.choose(found, found.rows[0].id)
                except (FoltrError, OSError):
                    break
                acknowledged += 1
            else:
                pytest.fail("a log on a full file system took every choice")
        found = node.search("word9x1")
        node.choose(found, found.rows[0].id)  # it goes on when there is space again
    with foltr.node.open(small) as node:
        assert node.status().clicks == acknowledged + 1
        assert Path(node.search("word7x3").rows[0].path).name == "7.txt"
