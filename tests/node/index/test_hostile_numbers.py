"""Dates, inode numbers and names that no index expects: the file is indexed once, and so are all others."""

import datetime
import json
import os
import shutil
import sqlite3
import tempfile
import types
import zlib
from pathlib import Path

import pytest
from small_index import node_at, run, searched
from test_index_statistics import assert_exact

import foltr.node
from foltr.cli.node_output import day, moment, row_lines
from foltr.errors import StorageError
from foltr.node.extract.file_version import LARGEST, SMALLEST, bounded_time, file_version, signed
from foltr.node.index import entries, scan
from foltr.node.index.layout import Reader
from foltr.node.index.rules import Rules
from foltr.node.index.writing import Writer
from foltr.node.page import search as page_search
from foltr.node.search.results import to_plain
from foltr.node.settings import Settings
from foltr.node.status import why

MEMORY = Path("/dev/shm")  # noqa: S108 - a tmpfs holds any date, ext4 none after 2446
DATES = {
    "2286": 10**10,
    "2446, the last of ext4": 15_032_385_535,
    "1901, the first of ext4": -(2**31),
    "33658": 10**12,
    "beyond 64 bits of nanoseconds and a sign": 2**35,
    "1200 before our era": -(10**11),
    "the largest that a file system takes": 2**40,
}


@pytest.fixture
def folder(tmp_path, request):
    """A folder on a file system that can hold the date."""
    if -(2**31) <= request.param <= 15_032_385_535:
        yield tmp_path / "docs"
        return
    if not MEMORY.is_dir():
        pytest.skip("no tmpfs that can hold the date")
    base = Path(tempfile.mkdtemp(dir=MEMORY))
    yield base / "docs"
    shutil.rmtree(base)


@pytest.mark.parametrize(("folder", "seconds"), [(one, one) for one in DATES.values()], ids=DATES, indirect=["folder"])
def test_a_file_of_any_date_is_indexed_once_and_shown(folder, seconds, tmp_path):
    folder.mkdir()
    for name in ("far.txt", "near.txt", "other.txt"):
        (folder / name).write_text(f"apple {name}")
    os.utime(folder / "far.txt", (seconds, seconds))
    assert (folder / "far.txt").stat().st_mtime == seconds
    with foltr.node.open(tmp_path / "home") as node:
        node.add([folder])
        assert list(node.index())[-1].total == 3
        assert list(node.index())[-1].total == 0  # the date is stable
        assert node.status().states["indexed"] == 3
        assert node.why(folder / "far.txt").state == "indexed"
        for newest_first in (False, True):
            results = node.search("apple", newest_first=newest_first)
            assert len(results.rows) == 3
            json.dumps(to_plain(results), allow_nan=False)
            for row in results.rows:
                assert row_lines(row)
        place = 0 if seconds > 0 else 2
        assert results.rows[place].path.endswith("far.txt")
        assert page_search.list_view(node, page_search.asked_of("apple")).rows
        assert page_search.filters(node, page_search.asked_of("apple")) is not None
        since = {row.path.rpartition("/")[2] for row in node.search("apple after:2200").rows}
        assert since == ({"far.txt"} if seconds > 0 else set())
        before = {row.path.rpartition("/")[2] for row in node.search("apple before:1950").rows}
        assert before == ({"far.txt"} if seconds < 0 else set())
        assert len(node.search("apple before:9999-12-31").rows) == 3
        assert node.search("").rows


@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 -1200", "Mon, 01 Jan 0001 00:00:00 +1400",
                                  "Mon, 1 Jan 99999 10:00:00 +0000", "Mon, 1 Jan 2024 99:99:99 +9999",
                                  "Tue, 1 Jan 1500 00:00:00 +0000"])  # fmt: skip
def test_a_mail_of_any_date_is_indexed_and_shown(tmp_path, date):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/mail.eml").write_text(f"From: a@example.org\nSubject: apple\nDate: {date}\n\napple\n")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "docs"])
        list(node.index())
        (row,) = node.search("apple", newest_first=True).rows
        json.dumps(to_plain(node.search("apple")), allow_nan=False)
        assert row_lines(row)
        assert page_search.list_view(node, page_search.asked_of("apple", "date")).rows


@pytest.mark.parametrize("seconds", [9.99e10, -9.99e10, 253402300799.9, -62135596800.0, 1e300, float("nan")])
def test_dates_are_printed_or_left_out(seconds):
    for shown in (day, moment, page_search.day, page_search.moment):
        assert isinstance(shown(seconds), str)
    assert moment(9.99e10).startswith("5135")


def with_numbers(monkeypatch, **numbers):
    """Gives files of a scan other numbers than the file system: {name: {st_ino: ...}}."""
    names = ("st_mode", "st_size", "st_mtime_ns", "st_ino", "st_dev")

    def changed(here):
        found = entries.entries_of(here)
        return {
            name: types.SimpleNamespace(
                **{one: getattr(status, one) for one in names} | numbers.get(Path(name).stem, {})
            )
            for name, status in found.items()
        }

    monkeypatch.setattr(scan, "entries_of", changed)


def test_inodes_beyond_63_bits_keep_their_identity(tmp_path, monkeypatch):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(4):
        (root / f"file{i}.txt").write_text("apple")
    with_numbers(monkeypatch, **{f"file{i}": {"st_ino": 2**63 + i} for i in range(4)})
    places, settings = node_at(tmp_path, root)
    assert run(places, settings)[-1].total == 4
    assert run(places, settings)[-1].total == 0
    with_numbers(monkeypatch, **{f"file{i}": {"st_ino": 2**63 + i + (i == 2)} for i in range(4)})
    assert run(places, settings)[-1].total == 1  # another file has taken the name
    reader = Reader(places)
    assert len(searched(reader, "apple")) == 4
    reader.close()


def test_numbers_beyond_every_bound_stop_nothing(tmp_path, monkeypatch):
    root = tmp_path / "docs"
    root.mkdir()
    for name in ("huge", "small", "plain"):
        (root / f"{name}.txt").write_text("apple")
    huge = {"st_ino": 2**64 - 1, "st_mtime_ns": 2**100, "st_size": 2**70, "st_dev": 2**64 - 1}
    with_numbers(monkeypatch, huge=huge, small={"st_ino": 0, "st_mtime_ns": -(2**100), "st_size": -5})
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert reader.store.states()["indexed"] == 3
    assert len(searched(reader, "apple")) == 3
    reader.close()


def test_bounds_are_those_of_sqlite():
    assert [signed(one) for one in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [0, LARGEST, SMALLEST, -1]
    assert len({signed(one) for one in (2**63, 2**63 + 1, 2**64 - 1, 1)}) == 4
    assert bounded_time(2**80) == LARGEST
    assert bounded_time(-(2**80)) == SMALLEST
    status = types.SimpleNamespace(st_size=2**63, st_mtime_ns=2**63, st_ino=2**63)
    assert all(SMALLEST <= number <= LARGEST for number in file_version(status))
    latest = datetime.datetime.fromtimestamp(LARGEST / 1e9, tz=datetime.UTC)
    assert latest.year == 2262


def test_a_device_number_of_64_bits_stops_nothing(tmp_path, monkeypatch):
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.txt").write_text("apple")
    real = Path.stat

    def of_another_device(path, **options):
        status = real(path, **options)
        if path != root:
            return status
        return types.SimpleNamespace(st_mode=status.st_mode, st_dev=2**64 - 1, st_ino=status.st_ino)

    monkeypatch.setattr(Path, "stat", of_another_device)
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert searched(reader, "apple") == {"a.txt"}
    reader.close()


def test_reasons_that_quote_a_name_that_is_no_unicode_are_stored(tmp_path):
    """A rule names the file that it comes from, or the name that it fits."""
    root = tmp_path / "docs"
    odd = root / os.fsdecode(b"caf\xe9")
    odd.mkdir(parents=True)
    (odd / ".gitignore").write_text("private.txt\n")
    (odd / "private.txt").write_text("apple")
    (root / os.fsdecode(b"id_rsa.\xff")).write_text("apple")
    (root / "plain.txt").write_text("apple")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    assert run(places, settings)[-1].total == 0
    reader = Reader(places)
    assert searched(reader, "apple") == {"plain.txt"}
    found = why(reader.store, Rules(settings, places), str(odd / "private.txt"))
    assert found.state == "excluded"
    assert "\\udce9/.gitignore, line 1" in found.reason
    assert why(reader.store, Rules(settings, places), str(root / os.fsdecode(b"id_rsa.\xff"))).state == "excluded"
    reader.close()


def test_statistics_are_exact_after_a_batch_that_was_written_file_by_file(tmp_path, monkeypatch):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(20):
        (root / f"{i}.txt").write_text(f"apple pear number{i} " + "poison venom " * (i == 7))
    real = Writer._insert

    def insert(writer, added, generation):
        if any(b"poison" in zlib.decompress(new.body) for new in added):
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        real(writer, added, generation)

    monkeypatch.setattr(Writer, "_insert", insert)
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert len(searched(reader, "apple")) == 19
    assert reader.store.states() == {"waiting": 0, "indexed": 19, "excluded": 0, "skipped": 0, "failed": 1}
    assert_exact(reader.store)
    words = reader.store.connection.execute("SELECT count(*) FROM words WHERE word IN ('poison', 'venom')").fetchone()
    assert words == (0,)
    reader.close()


def test_a_damaged_index_stops_the_run_and_says_what_to_do(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.txt").write_text("apple")
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    path = reader.store.path
    reader.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sequences SET content = x'00'")
    connection.close()
    (root / "a.txt").write_text("pear pear")
    with pytest.raises(StorageError, match=r"is damaged .*; delete .*, it is rebuilt"):
        run(places, Settings(roots=settings.roots))
