"""Roots, folders and files in the index: every file under a root has a row and exactly one state.

waiting    found or changed, not yet read
indexed    its documents can be found
excluded   by a rule, which the reason names; an excluded folder is one row for all that is below it
skipped    read, or looked at, and left out on purpose; the reason says why
failed     an error; the reason says which
"""

import os
import sqlite3
from typing import NamedTuple

from foltr.node.store import joined


class File(NamedTuple):
    """A row, as a scan compares it."""

    id: int
    name: bytes
    is_folder: bool
    size: int
    mtime_ns: int
    inode: int
    state: str
    reason: str | None


class Waiting(NamedTuple):
    id: int
    path: str
    size: int
    mtime_ns: int
    inode: int


def add_root(connection: sqlite3.Connection, path: str) -> int:
    """The number of a root; a new one is stored."""
    name = os.fsencode(path)
    connection.execute("INSERT OR IGNORE INTO roots (path, state) VALUES (?, 'waiting')", (name,))
    return int(connection.execute("SELECT id FROM roots WHERE path = ?", (name,)).fetchone()[0])


def roots(connection: sqlite3.Connection) -> dict[str, int]:
    return {os.fsdecode(path): number for number, path in connection.execute("SELECT id, path FROM roots ORDER BY id")}


def add_folder(connection: sqlite3.Connection, path: str, root: int) -> int:
    name = os.fsencode(path)
    found = connection.execute("SELECT id FROM folders WHERE root = ? AND path = ?", (root, name)).fetchone()
    if found is not None:
        return int(found[0])
    number = connection.execute("INSERT INTO folders (path, root) VALUES (?, ?)", (name, root)).lastrowid
    assert number is not None
    return number


def add_file(connection: sqlite3.Connection, folder: int, name: bytes, *, state: str = "waiting") -> int:
    """A file of which nothing but the name is known."""
    number = connection.execute(
        "INSERT INTO files (folder, name, is_folder, size, mtime_ns, inode, state) VALUES (?, ?, 0, 0, 0, 0, ?)",
        (folder, name, state),
    ).lastrowid
    assert number is not None
    return number


def in_folder(connection: sqlite3.Connection, folder: int) -> dict[bytes, File]:
    rows = connection.execute(
        "SELECT id, name, is_folder, size, mtime_ns, inode, state, reason FROM files WHERE folder = ?", (folder,)
    )
    return {row[1]: File(*row) for row in rows}


def waiting(connection: sqlite3.Connection) -> list[Waiting]:
    """Files to be read, the newest first: what somebody works on is findable first."""
    rows = connection.execute(
        "SELECT f.id, o.path, f.name, f.size, f.mtime_ns, f.inode FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE f.state = 'waiting' ORDER BY f.mtime_ns DESC, f.id"
    )
    return [Waiting(row[0], joined(row[1], row[2]), *row[3:]) for row in rows]
