"""Roots, folders and files in the index: every file under a root has a row and exactly one state.

waiting    found or changed, not yet read
indexed    its documents can be found
excluded   by a rule, which the reason names; an excluded folder is one row for all that is below it
skipped    it has no text, or one that is not read on purpose; the reason says why
failed     an error; the reason says which

What is skipped or failed is found by its name, unless it looks like a secret or is no regular file. Of a waiting file
the name may be searched already.
"""

import json
import os
import sqlite3
from typing import NamedTuple

from foltr.node.extract.secrets import REASONS as SECRET_REASONS
from foltr.node.index.store import joined


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


CUT = "the text is longer than the limits; its beginning is indexed"


class Problem(NamedTuple):
    """A file that could not be read, or was left out."""

    path: str
    state: str
    reason: str


class Waiting(NamedTuple):
    """A file with the version that a scan saw; `size`, `mtime_ns` and `inode` come last, as in a result."""

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


def root_problems(connection: sqlite3.Connection) -> dict[str, str]:
    """State and reason of the roots that are not indexed."""
    rows = connection.execute("SELECT path, state, reason FROM roots WHERE reason IS NOT NULL ORDER BY id")
    return {os.fsdecode(path): f"{state}, {reason}" for path, state, reason in rows}


def add_folder(connection: sqlite3.Connection, path: str, root: int) -> int:
    name = os.fsencode(path)
    found = connection.execute("SELECT id FROM folders WHERE root = ? AND path = ?", (root, name)).fetchone()
    if found is not None:
        return int(found[0])
    number = connection.execute("INSERT INTO folders (path, root) VALUES (?, ?)", (name, root)).lastrowid
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


def of_document(connection: sqlite3.Connection, document: int) -> Waiting:
    """The file of a document."""
    row = connection.execute(
        "SELECT f.id, o.path, f.name, f.size, f.mtime_ns, f.inode FROM documents d JOIN files f ON f.id = d.file "
        "JOIN folders o ON o.id = f.folder WHERE d.id = ?",
        (document,),
    ).fetchone()
    return Waiting(row[0], joined(row[1], row[2]), *row[3:])


def inode_of(connection: sqlite3.Connection, path: str) -> int | None:
    """The inode that a file had when it was last seen; None where the index does not have it, or excludes it."""
    folder, _, name = os.fsencode(path).rpartition(b"/")
    row = connection.execute(
        "SELECT f.inode FROM files f JOIN folders o ON o.id = f.folder WHERE o.path = ? AND f.name = ? "
        "AND f.is_folder = 0 AND f.state != 'excluded'",
        (folder or b"/", name),
    ).fetchone()
    return None if row is None else int(row[0])


def state_of(connection: sqlite3.Connection, path: str) -> tuple[int, int, str, str | None] | None:
    """Number, whether it is a folder, state and reason of a path; None where no scan saw it."""
    folder, _, name = os.fsencode(path).rpartition(b"/")
    row: tuple[int, int, str, str | None] | None = connection.execute(
        "SELECT f.id, f.is_folder, f.state, f.reason FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE o.path = ? AND f.name = ?",
        (folder or b"/", name),
    ).fetchone()
    return row


def count_documents(connection: sqlite3.Connection, file: int) -> int:
    """Documents that were read from a file."""
    return int(connection.execute("SELECT count(*) FROM documents WHERE file = ?", (file,)).fetchone()[0])


def count_waiting(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM files WHERE state = 'waiting'").fetchone()[0])


def reasons(connection: sqlite3.Connection, limit: int = 200) -> list[tuple[str, str, int]]:
    """(state, reason, files) of files that are not simply indexed, the most frequent first."""
    rows = connection.execute(
        "SELECT state, reason, count(*) FROM files WHERE state != 'waiting' AND (state != 'indexed' OR reason IS NOT "
        "NULL) GROUP BY state, reason ORDER BY count(*) DESC, state, reason LIMIT ?",
        (limit,),
    )
    return [(state, reason or "", int(count)) for state, reason, count in rows]


class Hidden(NamedTuple):
    """Files of one folder that a rule about secrets leaves out."""

    reason: str
    folder: str
    files: int


class LeftOut(NamedTuple):
    """A file or folder that a rule leaves out."""

    id: int
    path: str
    is_folder: bool


_SECRETS = json.dumps(SECRET_REASONS)


def secrets(connection: sqlite3.Connection, limit: int = 200) -> list[Hidden]:
    """Secrets by rule and folder; their names are told by `left_out` alone."""
    rows = connection.execute(
        "SELECT f.reason, o.path, count(*) FROM files f JOIN folders o ON o.id = f.folder WHERE "
        "(f.state = 'excluded' AND (f.reason LIKE 'secrets: %' OR f.reason LIKE 'browser profiles: %')) "
        "OR (f.state = 'skipped' AND f.reason IN (SELECT value FROM json_each(?))) "
        "GROUP BY f.reason, o.path ORDER BY f.reason, o.path LIMIT ?",
        (_SECRETS, limit),
    )
    return [Hidden(reason, os.fsdecode(folder), int(count)) for reason, folder, count in rows]


def left_out(connection: sqlite3.Connection, reason: str, folder: str, limit: int = 200) -> list[LeftOut]:
    """Files and folders that a rule leaves out of a folder."""
    rows = connection.execute(
        "SELECT f.id, o.path, f.name, f.is_folder FROM files f JOIN folders o ON o.id = f.folder WHERE f.reason = ? "
        "AND f.state IN ('excluded', 'skipped') AND o.path = ? ORDER BY f.name LIMIT ?",
        (reason, os.fsencode(folder), limit),
    )
    return [LeftOut(number, joined(path, name), bool(is_folder)) for number, path, name, is_folder in rows]


def excluded(connection: sqlite3.Connection, file: int) -> tuple[str, str, bool] | None:
    """Path, reason and whether it is a folder, of an excluded entry; None where it is not excluded."""
    row = connection.execute(
        "SELECT o.path, f.name, f.reason, f.is_folder FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE f.id = ? AND f.state = 'excluded'",
        (file,),
    ).fetchone()
    return None if row is None else (joined(row[0], row[1]), row[2] or "", bool(row[3]))


def problems(connection: sqlite3.Connection, limit: int = 200) -> list[Problem]:
    """Files that could not be read, and those that were skipped; the names of secrets are not told."""
    rows = connection.execute(
        "SELECT o.path, f.name, f.state, f.reason FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE f.state IN ('failed', 'skipped') "
        "AND coalesce(f.reason, '') NOT IN (SELECT value FROM json_each(?)) "
        "ORDER BY f.state, o.path, f.name LIMIT ?",
        (_SECRETS, limit),
    )
    return [Problem(joined(folder, name), state, reason or "") for folder, name, state, reason in rows]
