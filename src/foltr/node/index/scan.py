"""Comparing the folders under the roots with the index: what is new, changed, gone or excluded.

Links are never followed, so loops are harmless and nothing outside of the roots is read through one; a folder that is
itself a root belongs to that root only. A folder that cannot be listed is one row with the error; whatever else goes
wrong with an entry or a folder is a state of it too, and the scan goes on. Where a whole root is absent, such as a
drive that is not mounted, its documents stay until it is back or removed.
"""

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from foltr.errors import StorageError
from foltr.node.extract.file_version import file_version, reason_of, reason_text
from foltr.node.index import files
from foltr.node.index.away import away, store_device
from foltr.node.index.entries import Seen, entries_of, failed, judged
from foltr.node.index.rules import FolderRules, Rules
from foltr.node.index.store import joined
from foltr.node.index.writing import Result, Writer

_PASSING = ("no permission", "vanished")  # errors that another time may not occur
_AT_ONCE = 2000  # changed rows of one transaction
_MANY = 200  # new files: their names are searchable before their texts are read; fewer are read soon enough
_LASTING = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Scanned(NamedTuple):
    """Counts of a scan so far."""

    folders: int
    files: int
    waiting: int  # new or changed
    removed: int
    named: int = 0  # that became searchable by their names


class _Pending:
    """Changes of the index that wait for a transaction."""

    def __init__(self) -> None:
        self.added: list[tuple[int, Seen]] = []  # folder, entry
        self.waiting: list[tuple[int, int, int, int]] = []  # size, mtime_ns, inode, file
        self.replaced: list[Result] = []  # files whose documents go, with their new state
        self.removed: list[int] = []

    def __len__(self) -> int:
        return len(self.added) + len(self.waiting) + len(self.replaced) + len(self.removed)


def scan(writer: Writer, rules: Rules) -> Iterator[Scanned]:
    """Brings the rows of files up to date, folder by folder; yields now and then. Roots that left the settings go."""
    yield from _Scan(writer, rules).run()


def scan_folders(writer: Writer, rules: Rules, folders: Iterable[str]) -> Iterator[Scanned]:
    """Scans some folders below the roots: their entries, and all that is below folders that are new."""
    yield from _Scan(writer, rules).run_shallow(folders)


class _Scan:
    def __init__(self, writer: Writer, rules: Rules) -> None:
        self._writer, self._rules = writer, rules
        self._connection = writer.connection
        self._pending = _Pending()
        self._visited: set[int] = set()
        self._unlisted: list[bytes] = []  # folders whose content is unknown: what was below them stays
        self._folders = self._files = self._waiting = self._removed = self._named = 0

    def run(self) -> Iterator[Scanned]:
        for root, number in files.roots(self._connection).items():
            if root not in self._rules.roots:
                remove_root(self._writer, number)
        for root in dict.fromkeys(self._rules.roots):
            number = files.add_root(self._connection, root)
            try:
                yield from self._root(root, number)
            except (StorageError, sqlite3.Error):
                raise
            except Exception as problem:
                self._flush()
                _set_root(self._connection, number, "failed", reason_of(problem))
        yield self._progress()

    def run_shallow(self, folders: Iterable[str]) -> Iterator[Scanned]:
        known = files.roots(self._connection)
        for folder in dict.fromkeys(folders):
            root = self._rules.root_of(folder)
            if root is None or root not in known:
                continue
            if folder == root or not self._is_entered(folder, known[root]):
                if folder == root and _why_unscanned(self._connection, known[root], root) is None:
                    yield from self._walk(root, known[root], self._rules.enter(root), deep=False)
                continue
            try:
                here = _rules_at(self._rules, root, folder)
            except Exception as problem:  # of an ignore file above the folder
                self._fail_folder(self._rules.enter(root), known[root], reason_of(problem))
                continue
            yield from self._walk(folder, known[root], here, deep=False)
        self._flush()
        yield self._progress()

    def _is_entered(self, folder: str, root: int) -> bool:
        """Whether a folder is there and was entered by the last scan; what is new is found from the folder above."""
        row = self._connection.execute(
            "SELECT 1 FROM folders WHERE root = ? AND path = ?", (root, os.fsencode(folder))
        ).fetchone()
        return row is not None and os.path.isdir(folder) and self._rules.verdict(folder) is None  # noqa: PTH112

    def _root(self, root: str, number: int) -> Iterator[Scanned]:
        connection, excluded = self._connection, self._rules.root_verdict(root)
        unscanned = _Unscanned("excluded", excluded) if excluded else _why_unscanned(connection, number, root)
        _set_root(connection, number, *(unscanned or ("indexed", None)))
        if excluded:
            _remove_all(self._writer, number)
        if unscanned:
            return
        if not stat.S_ISDIR(Path(root).stat().st_mode):
            self._single_file(root, number)
            return
        yield from self._walk(root, number, self._rules.enter(root))
        self._remove_unvisited(number, os.fsencode(root))
        self._flush()

    def _single_file(self, path: str, root: int) -> None:
        """A root that is a file: the row of its folder holds this file only."""
        folder, _, name = path.rpartition("/")
        number = files.add_folder(self._connection, folder or "/", root)
        seen = Seen(os.fsencode(name), False, *file_version(Path(path).stat()), "waiting", None, named=True)
        self._compare(number, {seen.name: seen}, keep_others=True)
        self._flush()

    def _walk(self, top: str, root: int, rules: FolderRules, *, deep: bool = True) -> Iterator[Scanned]:
        stack = [rules]
        other_roots = {root for root in self._rules.roots if root != top}
        while stack:
            here = stack.pop()
            try:
                stack += self._folder(here, root, other_roots, deep=deep)
            except (StorageError, sqlite3.Error):
                raise
            except Exception as problem:
                self._fail_folder(here, root, reason_of(problem))
            if len(self._pending) >= _AT_ONCE:
                self._flush()
                yield self._progress()

    def _folder(self, here: FolderRules, root: int, other_roots: set[str], *, deep: bool) -> list[FolderRules]:
        """Compares one folder; returns the folders in it that are to be entered."""
        entries = entries_of(here)
        if isinstance(entries, OSError):
            self._unlistable(here, root, entries)
            return []
        here = here.with_ignore_files(entries)
        number = files.add_folder(self._connection, here.folder or "/", root)
        self._visited.add(number)
        self._folders += 1
        seen: dict[bytes, Seen] = {}
        entered = []
        for name, status in entries.items():
            if other_roots and f"{here.folder}/{name}" in other_roots:
                continue
            entry = judged(here, name, status, entries)
            if isinstance(entry, Seen):
                seen[entry.name] = entry
            elif deep or not self._is_entered(entry.folder, root):
                entered.append(entry)
        self._compare(number, seen)
        if not deep:
            self._remove_missing_folders(root, here.folder, entries.keys() - {os.fsdecode(name) for name in seen})
        return entered

    def _compare(self, folder: int, seen: dict[bytes, Seen], *, keep_others: bool = False) -> None:
        """Notes the differences between a folder and its rows."""
        known = files.in_folder(self._connection, folder)
        pending = self._pending
        self._files += len(seen)
        for name, entry in seen.items():
            row = known.get(name)
            if row is not None and row.is_folder != entry.is_folder:
                pending.removed.append(row.id)
                row = None
            if row is None:
                pending.added.append((folder, entry))
                self._waiting += entry.state == "waiting"
            elif entry.state == "waiting":
                self._compare_file(row, entry)
            elif (row.state, row.reason) != (entry.state, entry.reason) or (entry.named and _differs(row, entry)):
                pending.replaced.append(Result(row.id, entry.state, entry.reason, *entry[2:5], named=entry.named))
                self._removed += 1
        if not keep_others:
            gone = [row.id for name, row in known.items() if name not in seen]
            pending.removed += gone
            self._removed += len(gone)

    def _compare_file(self, row: files.File, entry: Seen) -> None:
        """The documents of a changed file are shown until it has been read again."""
        may_work_now = row.state == "failed" and (row.reason or "").startswith(_PASSING)
        if _differs(row, entry) or row.state == "excluded" or may_work_now:
            self._pending.waiting.append((entry.size, entry.mtime_ns, entry.inode, row.id))
        elif row.state != "waiting":
            return
        self._waiting += 1

    def _unlistable(self, here: FolderRules, root: int, problem: OSError) -> None:
        if not here.below_root or problem.errno not in _LASTING:
            self._unlisted.append(os.fsencode(here.folder))
            return
        if problem.errno != errno.ENOENT:
            self._add_failed_folder(here, root, reason_text(f"cannot be listed: {problem.strerror}"))

    def _fail_folder(self, here: FolderRules, root: int, reason: str) -> None:
        """Records an unexpected error of a folder; what was indexed below it stays."""
        self._unlisted.append(os.fsencode(here.folder))
        if here.below_root:
            self._add_failed_folder(here, root, reason)
        else:
            _set_root(self._connection, root, "failed", reason)

    def _add_failed_folder(self, here: FolderRules, root: int, reason: str) -> None:
        folder, _, name = here.folder.rpartition("/")
        number = files.add_folder(self._connection, folder or "/", root)
        known = files.in_folder(self._connection, number).get(os.fsencode(name))
        if known is not None and known.id in self._pending.removed and known.reason == reason:
            self._pending.removed.remove(known.id)  # its folder was compared before it was entered
            self._removed -= 1
        elif known is None or known.id in self._pending.removed:
            self._pending.added.append((number, failed(os.fsencode(name), True, reason)))

    def _remove_unvisited(self, root: int, top: bytes) -> None:
        """Removes the rows of folders that are not there any more."""
        rows = self._connection.execute("SELECT id, path FROM folders WHERE root = ?", (root,)).fetchall()
        for number, path in rows:
            below = path == top or path.startswith(top.rstrip(b"/") + b"/")
            unknown = any(path == folder or path.startswith(folder + b"/") for folder in self._unlisted)
            if below and not unknown and number not in self._visited:
                self._remove_folder(number)

    def _remove_missing_folders(self, root: int, folder: str, entered: Collection[str]) -> None:
        """Removes the rows below folders that are gone from a folder, or excluded now."""
        start = os.fsencode(folder) + b"/"
        rows = self._connection.execute(
            "SELECT id, path FROM folders WHERE root = ? AND path > ? AND path < ?", (root, start, start[:-1] + b"0")
        ).fetchall()
        names = {os.fsencode(name) for name in entered}
        for number, path in rows:
            if path[len(start) :].split(b"/", 1)[0] not in names:
                self._remove_folder(number)

    def _remove_folder(self, number: int) -> None:
        gone = [row.id for row in files.in_folder(self._connection, number).values()]
        self._removed += len(gone)
        self._writer.write([], gone)
        self._connection.execute("DELETE FROM folders WHERE id = ?", (number,))

    def _flush(self) -> None:
        pending, self._pending = self._pending, _Pending()
        if not len(pending):
            return
        if pending.replaced or pending.removed:
            self._writer.write_batch(pending.replaced, pending.removed)
        try:
            self._store(pending.added, pending.waiting)
        except StorageError:
            raise
        except Exception:  # of one entry: the others get in
            for folder, entry in pending.added:
                self._store_one([(folder, entry)], [])
            for changed in pending.waiting:
                self._store_one([], [changed])

    def _store(self, added: list[tuple[int, Seen]], waiting: list[tuple[int, int, int, int]]) -> None:
        with self._writer.transaction() as connection:
            numbers = _insert(connection, added)
            named = [
                number
                for number, (_, entry) in zip(numbers, added, strict=True)
                if entry.named and (entry.state != "waiting" or len(added) > _MANY)
            ]
            self._writer.add_names(named)
            connection.executemany(
                "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, state = 'waiting', reason = NULL WHERE id = ?",
                waiting,
            )
        self._named += len(named)

    def _store_one(self, added: list[tuple[int, Seen]], waiting: list[tuple[int, int, int, int]]) -> None:
        try:
            self._store(added, waiting)
        except StorageError:
            raise
        except Exception as problem:
            reason = reason_of(problem)
            self._store([(folder, failed(entry.name, entry.is_folder, reason)) for folder, entry in added], [])
            self._writer.write([Result(file, "failed", reason, 0, 0, 0) for *_, file in waiting])

    def _progress(self) -> Scanned:
        return Scanned(self._folders, self._files, self._waiting, self._removed, self._named)


def remove_root(writer: Writer, number: int) -> None:
    """Removes a root with all its documents, files and folders."""
    _remove_all(writer, number)
    writer.connection.execute("DELETE FROM roots WHERE id = ?", (number,))


def exclude_away(writer: Writer, rules: Rules) -> None:
    """Removes the documents of roots that are away which the rules exclude by their path; a scan does not see them."""
    for root, number in files.roots(writer.connection).items():
        if away(writer.connection, root) is None:
            continue
        rows = writer.connection.execute(
            "SELECT f.id, o.path, f.name, f.size, f.mtime_ns, f.inode FROM files f JOIN folders o ON o.id = f.folder "
            "WHERE o.root = ? AND f.state != 'excluded'", (number,),
        ).fetchall()  # fmt: skip
        judged_rows = [(row, rules.verdict(joined(row[1], row[2]))) for row in rows]
        excluded = [Result(row[0], "excluded", verdict, *row[3:]) for row, verdict in judged_rows if verdict]
        for start in range(0, len(excluded), _AT_ONCE):
            writer.write_batch(excluded[start : start + _AT_ONCE])


def _remove_all(writer: Writer, root: int) -> None:
    connection = writer.connection
    rows = connection.execute("SELECT f.id FROM files f JOIN folders o ON o.id = f.folder WHERE o.root = ?", (root,))
    gone = [row[0] for row in rows]
    for start in range(0, len(gone), _AT_ONCE):
        writer.write([], gone[start : start + _AT_ONCE])
    connection.execute("DELETE FROM folders WHERE root = ?", (root,))


def _insert(connection: sqlite3.Connection, added: list[tuple[int, Seen]]) -> list[int]:
    """Stores new entries and returns their numbers, which rise."""
    last = connection.execute("SELECT coalesce(max(id), 0) FROM files").fetchone()[0]
    connection.executemany(
        "INSERT INTO files (folder, name, is_folder, size, mtime_ns, inode, state, reason) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(folder, *entry[:7]) for folder, entry in added],
    )
    return [number for (number,) in connection.execute("SELECT id FROM files WHERE id > ? ORDER BY id", (last,))]


def _differs(row: files.File, entry: Seen) -> bool:
    """Whether a file is another version than its row."""
    return (row.size, row.mtime_ns, row.inode) != entry[2:5]


def _set_root(connection: sqlite3.Connection, number: int, state: str, reason: str | None) -> None:
    stored = reason and reason_text(reason)
    connection.execute("UPDATE roots SET state = ?, reason = ? WHERE id = ?", (state, stored, number))


def _rules_at(rules: Rules, root: str, folder: str) -> FolderRules:
    """The rules in a folder, with the ignore files above it."""
    here = rules.enter(root)
    for name in folder[len(root.rstrip("/")) + 1 :].split("/"):
        entries = entries_of(here)
        here = here.with_ignore_files(() if isinstance(entries, OSError) else entries)
        here = here.below(name)
    return here


class _Unscanned(NamedTuple):
    """Why a root is not scanned."""

    state: str
    reason: str


def _why_unscanned(connection: sqlite3.Connection, number: int, root: str) -> _Unscanned | None:
    """Why a root cannot be scanned; its documents stay. None: it is there, and its device is stored."""
    reason = away(connection, root)
    if reason:
        return _Unscanned("away", reason)
    try:
        os.listdir(root) if Path(root).is_dir() else Path(root).stat()  # noqa: PTH208
        with contextlib.suppress(sqlite3.Error):
            store_device(connection, number, root)
    except OSError as problem:
        return _Unscanned("failed", f"cannot be read: {problem.strerror}")
    return None
