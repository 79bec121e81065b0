"""The cache: whole or absent, whatever happens."""

import errno
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from foltr.errors import DataError, StorageError
from foltr.files import cache_home
from foltr.lab.data import cache, files, letor

TEXT = "".join(f"{i % 3} qid:{i // 4} 1:{i} 2:{i * i % 7} 3:1\n" for i in range(40))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(TEXT)
    return str(path)


def keep(source, scaling="none", zscore=None):
    return cache.keep([source], lambda: letor.blocks([source], letor.Rules(3)), cache.Scaling(scaling, zscore))


def entries():
    folder = cache_home() / "data"
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


def same(ours, theirs):
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def no_parsing(*_):
    raise AssertionError("parsed again")


def test_an_entry_holds_what_was_read(source, monkeypatch):
    plain = letor.read(source)
    assert same(keep(source).data, plain)
    monkeypatch.setattr(letor, "_chunks", no_parsing)
    again = keep(source).data
    assert same(again, plain)
    assert isinstance(again.features.base, np.memmap)
    assert not again.features.flags.writeable
    assert again.features.flags.c_contiguous
    assert again.features.ctypes.data % 64 == 0
    assert [str(array.dtype) for array in again] == ["float32", "int8", "int64", "int64"]
    assert len(entries()) == 1


def test_scaling_and_content_name_the_entry(source):
    plain, scaled = keep(source), keep(source, "query-minmax")
    assert plain.content == scaled.content
    assert len(entries()) == 2
    first = scaled.data.features[:4]  # 0 1 2 3; 0 1 4 2; constant
    assert first[:, 0] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert first[:, 1].tolist() == [0, 0.25, 1, 0.5]
    assert not first[:, 2].any()


@pytest.mark.parametrize("scaling", ["query-minmax", "zscore"])
def test_scaling_in_pieces_is_scaling_at_once(source, scaling, monkeypatch):
    at_once = keep(source, scaling)
    monkeypatch.setattr(cache, "_BLOCK_BYTES", 9 * 4 * 3)  # nine rows: two queries
    monkeypatch.setattr(cache, "FORMAT", -1)
    in_pieces = keep(source, scaling)
    assert same(in_pieces.data, at_once.data)
    assert len(entries()) == 2


def test_zscore_of_the_training_set_scales_the_others(source):
    train = keep(source, "zscore")
    assert train.data.features.mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-6)
    assert train.data.features.std(axis=0) == pytest.approx([1, 1, 0], abs=1e-6)
    other = keep(source, "zscore", np.array([[1.0, 0, 0], [2.0, 1, 1]]))
    assert other.data.features[:3, 0].tolist() == [-2, 0, 2]
    assert other.zscore is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("writes_before", [0, 1, 2])
def test_a_full_disk_leaves_nothing_and_says_what_to_do(source, monkeypatch, code, writes_before):
    real, done = cache._write, []

    def write(file, data):
        if len(done) == writes_before:
            raise OSError(code, os.strerror(code))
        done.append(1)
        real(file, data)

    monkeypatch.setattr(cache, "_write", write)
    with pytest.raises(StorageError) as caught:
        keep(source)
    assert str(cache_home() / "data") in str(caught.value)
    assert "FOLTR_CACHE" in str(caught.value)
    assert entries() == []
    monkeypatch.setattr(cache, "_write", real)
    assert same(keep(source).data, letor.read(source))


def test_a_wrong_file_leaves_nothing(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(TEXT + "oops\n")
    with pytest.raises(DataError, match=r"bad\.txt:41:1"):
        keep(str(path))
    assert entries() == []


def test_an_interrupt_leaves_nothing(source):
    def interrupted():
        yield from letor.blocks([source], letor.Rules(3))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.keep([source], interrupted, cache.Scaling())
    assert entries() == []


def test_what_a_killed_process_left_is_swept_after_a_day(source):
    keep(source)
    (place,) = entries()
    old, young = place.with_name(f".{place.name}-old"), place.with_name(f".{place.name}-young")
    for folder in (old, young):
        folder.mkdir()
        (folder / "features.npy").write_bytes(b"half")
    os.utime(old, times=(time.time() - 90_000,) * 2)
    (place / "labels.npy").unlink()
    keep(source)
    assert young.exists()
    assert not old.exists()


def damage_nothing_left(place):
    for path in place.iterdir():
        path.unlink()


DAMAGES = {
    "features cut": lambda place: os.truncate(place / "features.npy", 200),
    "features longer": lambda place: os.truncate(place / "features.npy", 10_000),
    "labels missing": lambda place: (place / "labels.npy").unlink(),
    "offsets empty": lambda place: os.truncate(place / "offsets.npy", 0),
    "no entry.json": lambda place: (place / "entry.json").unlink(),
    "entry.json cut": lambda place: os.truncate(place / "entry.json", 5),
    "entry.json of another kind": lambda place: (place / "entry.json").write_text("[]"),
    "queries are text": lambda place: (place / "queries.npy").write_bytes(
        b"x" * (place / "queries.npy").stat().st_size
    ),
    "nothing left": damage_nothing_left,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_built_again(source, damage):
    expected = letor.read(source)
    keep(source)
    (place,) = entries()
    DAMAGES[damage](place)
    assert same(keep(source).data, expected)
    assert entries() == [place]
    assert same(keep(source).data, expected)


def test_without_a_writable_cache_the_data_is_in_memory(source, tmp_path, monkeypatch):
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    monkeypatch.setenv("FOLTR_CACHE", str(blocked / "cache"))
    entry = keep(source, "query-minmax")
    assert not isinstance(entry.data.features.base, np.memmap)
    assert not entry.data.features.flags.writeable
    assert entry.data.features[:4, 1].tolist() == [0, 0.25, 1, 0.5]


FILL = """
import sys
from foltr.lab.data import cache
from foltr.lab.data import letor

def slowly():
    yield from letor.blocks([sys.argv[1]], letor.Rules(3))
    print("read", flush=True)
    sys.stdin.readline()

print(cache.keep([sys.argv[1]], slowly, cache.Scaling()).data.labels.sum())
"""


def test_two_processes_may_fill_the_same_entry(source):
    command = [sys.executable, "-c", FILL, source]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in both:  # both have begun before either may finish
        assert process.stdout.readline() == "read\n"
    results = [process.communicate("go\n")[0] for process in both]
    assert results == [f"{letor.read(source).labels.sum()}\n"] * 2
    assert [process.returncode for process in both] == [0, 0]
    assert len(entries()) == 1


def test_a_file_is_hashed_once_until_it_changes(tmp_path, monkeypatch):
    path = tmp_path / "some.bin"
    path.write_bytes(b"abc")
    first = files.content_hash(path)
    assert first == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", no_parsing)
        assert files.content_hash(path) == first
    path.write_bytes(b"abcd")
    assert files.content_hash(path) != first
    (cache_home() / "data" / "files.json").write_text("{broken")
    assert files.content_hash(path) != first
