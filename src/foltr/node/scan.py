"""Comparing the folders under the roots with the index: what is new, changed, gone or excluded.

Links are never followed, so loops are harmless and nothing outside of the roots is read through one; a folder that is
itself a root belongs to that root only. A folder that cannot be listed is one row with the error. Where a whole root is
absent, such as a drive that is not mounted, its documents stay until it is back or removed.
"""

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from foltr.node import files
from foltr.node.rules import FolderRules, Rules
from foltr.node.writing import Result, Writer

_PASSING = ("no permission", "vanished")  # errors that another time may not occur
_AT_ONCE = 2000  # changed rows of one transaction
_LASTING = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Scanned(NamedTuple):
    """What a scan has seen so far."""

    folders: int
    files: int
    waiting: int  # new or changed
    removed: int


class Seen(NamedTuple):
    """An entry of a folder as it should stand in the index."""

    name: bytes
    is_folder: bool
    size: int
    mtime_ns: int
    inode: int
    state: str
    reason: str | None


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
    """The same for some folders below the roots: their entries, and all that is below folders that are new."""
    yield from _Scan(writer, rules).run_shallow(folders)


class _Scan:
    def __init__(self, writer: Writer, rules: Rules) -> None:
        self._writer, self._rules = writer, rules
        self._connection = writer.connection
        self._pending = _Pending()
        self._visited: set[int] = set()
        self._unlisted: list[bytes] = []  # folders whose content is unknown: what was below them stays
        self._folders = self._files = self._waiting = self._removed = 0

    def run(self) -> Iterator[Scanned]:
        for root, number in files.roots(self._connection).items():
            if root not in self._rules.roots:
                remove_root(self._writer, number)
        for root in dict.fromkeys(self._rules.roots):
            yield from self._root(root)
        yield self._progress()

    def run_shallow(self, folders: Iterable[str]) -> Iterator[Scanned]:
        known = files.roots(self._connection)
        for folder in dict.fromkeys(folders):
            root = self._rules.root_of(folder)
            if root is None or root not in known:
                continue
            if folder == root or not self._is_entered(folder, known[root]):
                if folder == root and _root_problem(self._connection, known[root], root) is None:
                    yield from self._walk(root, known[root], self._rules.enter(root), deep=False)
                continue
            yield from self._walk(folder, known[root], _rules_at(self._rules, root, folder), deep=False)
        self._flush()
        yield self._progress()

    def _is_entered(self, folder: str, root: int) -> bool:
        """Whether a folder is there and was entered by the last scan; what is new is found from the folder above."""
        row = self._connection.execute(
            "SELECT 1 FROM folders WHERE root = ? AND path = ?", (root, os.fsencode(folder))
        ).fetchone()
        return row is not None and os.path.isdir(folder) and self._rules.verdict(folder) is None  # noqa: PTH112

    def _root(self, root: str) -> Iterator[Scanned]:
        connection = self._connection
        number = files.add_root(connection, root)
        problem = self._rules.root_verdict(root) or _root_problem(connection, number, root)
        state = ("excluded" if self._rules.root_verdict(root) else "failed") if problem else "indexed"
        connection.execute("UPDATE roots SET state = ?, reason = ? WHERE id = ?", (state, problem, number))
        if state == "excluded":
            _remove_all(self._writer, number)
        if problem:
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
        status = Path(path).stat()
        seen = Seen(os.fsencode(name), False, status.st_size, status.st_mtime_ns, status.st_ino, "waiting", None)
        self._compare(number, {seen.name: seen}, keep_others=True)
        self._flush()

    def _walk(self, top: str, root: int, rules: FolderRules, *, deep: bool = True) -> Iterator[Scanned]:
        stack = [rules]
        other_roots = {one for one in self._rules.roots if one != top}
        while stack:
            here = stack.pop()
            entries = _list(here)
            if isinstance(entries, OSError):
                self._unlistable(here, root, entries)
                continue
            here = here.with_ignore_files(entries)
            number = files.add_folder(self._connection, here.folder or "/", root)
            self._visited.add(number)
            self._folders += 1
            seen: dict[bytes, Seen] = {}
            for name, status in entries.items():
                if other_roots and f"{here.folder}/{name}" in other_roots:
                    continue
                one = _look(here, name, status, entries)
                if isinstance(one, Seen):
                    seen[one.name] = one
                elif deep or not self._is_entered(one.folder, root):
                    stack.append(one)
            self._compare(number, seen)
            if not deep:
                self._remove_missing_folders(root, here.folder, entries.keys() - {os.fsdecode(name) for name in seen})
            if len(self._pending) >= _AT_ONCE:
                self._flush()
                yield self._progress()

    def _compare(self, folder: int, seen: dict[bytes, Seen], *, keep_others: bool = False) -> None:
        """Notes the differences between a folder and its rows."""
        known = files.in_folder(self._connection, folder)
        pending = self._pending
        self._files += len(seen)
        for name, one in seen.items():
            row = known.get(name)
            if row is not None and row.is_folder != one.is_folder:
                pending.removed.append(row.id)
                row = None
            if row is None:
                pending.added.append((folder, one))
                self._waiting += one.state == "waiting"
            elif one.state == "waiting":
                self._compare_file(row, one)
            elif (row.state, row.reason) != (one.state, one.reason):
                pending.replaced.append(Result(row.id, one.state, one.reason, *one[2:5]))
                self._removed += 1
        if not keep_others:
            gone = [row.id for name, row in known.items() if name not in seen]
            pending.removed += gone
            self._removed += len(gone)

    def _compare_file(self, row: files.File, one: Seen) -> None:
        """The documents of a changed file are shown until it has been read again."""
        may_work_now = row.state == "failed" and (row.reason or "").startswith(_PASSING)
        if (row.size, row.mtime_ns, row.inode) != one[2:5] or row.state == "excluded" or may_work_now:
            self._pending.waiting.append((one.size, one.mtime_ns, one.inode, row.id))
        elif row.state != "waiting":
            return
        self._waiting += 1

    def _unlistable(self, here: FolderRules, root: int, problem: OSError) -> None:
        if not here.below_root or problem.errno not in _LASTING:
            self._unlisted.append(os.fsencode(here.folder))
            return
        if problem.errno == errno.ENOENT:
            return
        folder, _, name = here.folder.rpartition("/")
        number = files.add_folder(self._connection, folder or "/", root)
        known = files.in_folder(self._connection, number).get(os.fsencode(name))
        reason = f"cannot be listed: {problem.strerror}"
        if known is None:
            self._pending.added.append((number, Seen(os.fsencode(name), True, 0, 0, 0, "failed", reason)))
        elif known.id in self._pending.removed:  # its folder was compared before it was entered
            self._pending.removed.remove(known.id)
            self._removed -= 1

    def _remove_unvisited(self, root: int, top: bytes) -> None:
        """Removes the rows of folders that are not there any more."""
        rows = self._connection.execute("SELECT id, path FROM folders WHERE root = ?", (root,)).fetchall()
        for number, path in rows:
            below = path == top or path.startswith(top.rstrip(b"/") + b"/")
            unknown = any(path == one or path.startswith(one + b"/") for one in self._unlisted)
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
            self._writer.write(pending.replaced, pending.removed)
        with self._writer.transaction() as connection:
            _insert(connection, pending.added)
            connection.executemany(
                "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, state = 'waiting', reason = NULL WHERE id = ?",
                pending.waiting,
            )

    def _progress(self) -> Scanned:
        return Scanned(self._folders, self._files, self._waiting, self._removed)


def remove_root(writer: Writer, number: int) -> None:
    """Removes a root with all its documents, files and folders."""
    _remove_all(writer, number)
    writer.connection.execute("DELETE FROM roots WHERE id = ?", (number,))


def _remove_all(writer: Writer, root: int) -> None:
    connection = writer.connection
    rows = connection.execute("SELECT f.id FROM files f JOIN folders o ON o.id = f.folder WHERE o.root = ?", (root,))
    gone = [row[0] for row in rows]
    for start in range(0, len(gone), _AT_ONCE):
        writer.write([], gone[start : start + _AT_ONCE])
    connection.execute("DELETE FROM folders WHERE root = ?", (root,))


def _insert(connection: sqlite3.Connection, added: list[tuple[int, Seen]]) -> None:
    connection.executemany(
        "INSERT INTO files (folder, name, is_folder, size, mtime_ns, inode, state, reason) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(folder, *one) for folder, one in added],
    )


def _look(
    here: FolderRules, name: str, status: os.stat_result | OSError, beside: Collection[str]
) -> Seen | FolderRules:
    """What an entry should be in the index, or the rules of a folder that is to be entered."""
    if isinstance(status, OSError):
        return Seen(os.fsencode(name), False, 0, 0, 0, "failed", str(status.strerror))
    is_folder = stat.S_ISDIR(status.st_mode)
    reason = here.verdict(name, is_folder=is_folder, beside=beside)
    if is_folder:
        inside = here.below(name)
        reason = reason or inside.verdict_inside()
        # what is in an excluded folder changes without being looked at
        return Seen(os.fsencode(name), True, 0, 0, 0, "excluded", reason) if reason else inside
    state = "excluded" if reason else "waiting"
    if reason is None and not stat.S_ISREG(status.st_mode):
        state, reason = "skipped", "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
    return Seen(os.fsencode(name), False, status.st_size, status.st_mtime_ns, status.st_ino, state, reason)


def _list(here: FolderRules) -> dict[str, os.stat_result | OSError] | OSError:
    """The entries of a folder. It is not opened through a link that took its place since it was seen."""
    link = os.O_NOFOLLOW if here.below_root else 0
    try:
        descriptor = os.open(here.folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | link)
    except OSError as problem:
        return problem
    found: dict[str, os.stat_result | OSError] = {}
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    found[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it has just vanished
                except OSError as problem:
                    found[entry.name] = problem
    except OSError as problem:
        return problem
    finally:
        os.close(descriptor)
    return found


def _rules_at(rules: Rules, root: str, folder: str) -> FolderRules:
    """The rules in a folder, with the ignore files above it."""
    here = rules.enter(root)
    for name in folder[len(root.rstrip("/")) + 1 :].split("/"):
        entries = _list(here)
        here = here.with_ignore_files(() if isinstance(entries, OSError) else entries)
        here = here.below(name)
    return here


def _root_problem(connection: sqlite3.Connection, number: int, root: str) -> str | None:
    """Why a root cannot be scanned. An empty folder where there were files, on another device: it is not mounted."""
    try:
        device = Path(root).stat().st_dev
        is_empty = stat.S_ISDIR(Path(root).stat().st_mode) and not os.listdir(root)  # noqa: PTH208
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"
    key = f"device {number}"
    stored = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if stored is not None and stored[0] != device and is_empty:
        return "empty, and on another device than before: not mounted?"
    with contextlib.suppress(sqlite3.Error):
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, device))
    return None
