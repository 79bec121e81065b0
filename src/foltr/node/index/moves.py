"""Files that were renamed or moved, so that what a person taught the node about them goes along.

The files that the log names are *followed*: the index stores device, inode, size, time, a digest of the content and one
of the text, as of the last look at which the file was there. A file that has vanished since has moved to a new file

    with the same device and inode, and the time of before (a file system uses inodes again), or else
    with the same content, or the same text where the content was never looked at.

New is what no scan had seen at the last look: a copy that was made before inherits nothing. Where two new files match,
or one new file matches two that vanished, nothing moves. A file whose root is away has not vanished.
"""

import hashlib
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from foltr.node.extract.file_version import file_version, signed
from foltr.node.index.away import away
from foltr.node.index.rules import Rules
from foltr.node.index.store import joined

_LARGEST = 256 << 20  # bytes of a file whose content is compared
_PIECE = 1 << 20


class Move(NamedTuple):
    old: str
    new: str


class _Followed(NamedTuple):
    """A followed file as of the last look; -1 and b"" where it was never there."""

    path: bytes
    device: int
    inode: int
    size: int
    mtime_ns: int
    digest: bytes
    text: bytes
    seen: int  # the last number of a file at that look

    @property
    def version(self) -> tuple[int, ...]:
        return self[1:5]


def look(connection: sqlite3.Connection, paths: Collection[str]) -> None:
    """Stores what is known of the followed files, and drops others; those that vanished stay as they were."""
    known = _stored(connection)
    wanted = {os.fsencode(path) for path in paths}
    last = connection.execute("SELECT coalesce(max(id), 0) FROM files").fetchone()[0]
    rows = [row for path in wanted if (row := _looked_at(connection, path, known.get(path), last)) is not None]
    changed = [row for row in rows if row != known.get(row.path)]
    gone = [(path,) for path in known if path not in wanted]
    if changed or gone:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM followed WHERE path = ?", gone)
        connection.executemany("INSERT OR REPLACE INTO followed VALUES (?, ?, ?, ?, ?, ?, ?, ?)", changed)
        connection.execute("COMMIT")


def moved(connection: sqlite3.Connection, rules: Rules) -> list[Move]:
    """The followed files that vanished since they were last looked at, and where they are now."""
    vanished = [one for one in _stored(connection).values() if _has_vanished(connection, one, rules)]
    new = _new_files(connection, vanished)
    targets = {one.path: _target(connection, one, new) for one in vanished}
    times = Counter(targets.values())
    return [
        Move(os.fsdecode(old), path)
        for old, path in targets.items()
        if path is not None and times[path] == 1
    ]  # fmt: skip


def _stored(connection: sqlite3.Connection) -> dict[bytes, _Followed]:
    rows = connection.execute("SELECT path, device, inode, size, mtime_ns, digest, text, seen FROM followed")
    return {row[0]: _Followed(*row) for row in rows}


def _looked_at(connection: sqlite3.Connection, path: bytes, known: _Followed | None, last: int) -> _Followed | None:
    """A followed file as it is now. One that is gone before it was ever looked at is as the last scan saw it."""
    status = _status(path)
    if status is None:
        return known or _as_scanned(connection, path, last)
    version = signed(status.st_dev), *_version(status)
    if known is not None and known.version == version and known.text:
        return known._replace(seen=last)
    digest = known.digest if known is not None and known.version == version else _digest(path, status.st_size)
    return _Followed(path, *version, digest, _text_digest(connection, path), last)


def _as_scanned(connection: sqlite3.Connection, path: bytes, last: int) -> _Followed | None:
    folder, _, name = path.rpartition(b"/")
    row = connection.execute(
        "SELECT f.inode, f.size, f.mtime_ns FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE o.path = ? AND f.name = ? AND f.is_folder = 0",
        (folder or b"/", name),
    ).fetchone()
    if row is None:
        return None
    try:
        device = signed(os.stat(folder or b"/").st_dev)  # noqa: PTH116 - bytes
    except OSError:
        device = -1  # any: its folder is gone too
    inode, size, mtime_ns = row
    return _Followed(path, device, inode, size, mtime_ns, b"", _text_digest(connection, path), last)


def _has_vanished(connection: sqlite3.Connection, one: _Followed, rules: Rules) -> bool:
    root = rules.root_of(os.fsdecode(one.path))
    return root is not None and _status(one.path) is None and away(connection, root) is None


class _New(NamedTuple):
    number: int
    path: str
    size: int
    mtime_ns: int
    inode: int


def _new_files(connection: sqlite3.Connection, vanished: Collection[_Followed]) -> list[_New]:
    """Files that are new to one of those that vanished, or that may have its text."""
    if not vanished:
        return []
    rows = connection.execute(
        "SELECT f.id, o.path, f.name, f.size, f.mtime_ns, f.inode FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE f.id > ? AND f.is_folder = 0 AND f.state != 'excluded'",
        (min(one.seen for one in vanished),),
    )
    return [_New(row[0], joined(row[1], row[2]), *row[3:]) for row in rows]


def _target(connection: sqlite3.Connection, one: _Followed, new: Iterable[_New]) -> str | None:
    """The one new file that a vanished file is now; None where none matches, or several do."""
    later = [file for file in new if file.number > one.seen]
    renamed = [file.path for file in later if file.inode == one.inode and _is_renamed(one, file)]
    if renamed:
        return renamed[0] if len(renamed) == 1 else None
    equal = [file.path for file in later if _has_content(connection, one, file)]
    return equal[0] if len(equal) == 1 else None


def _is_renamed(one: _Followed, file: _New) -> bool:
    status = _status(os.fsencode(file.path))
    if status is None or one.device not in (-1, signed(status.st_dev)) or signed(status.st_ino) != one.inode:
        return False
    return file.mtime_ns == one.mtime_ns


def _has_content(connection: sqlite3.Connection, one: _Followed, file: _New) -> bool:
    if _has_bytes(one, file):
        return True
    unread = one.text != b"" and not one.digest and one.size == file.size  # it was gone before it could be read
    return unread and _text_digest(connection, os.fsencode(file.path)) == one.text


def _has_bytes(one: _Followed, file: _New) -> bool:
    return 0 < one.size == file.size and one.digest != b"" and _digest(os.fsencode(file.path), file.size) == one.digest


def _text_digest(connection: sqlite3.Connection, path: bytes) -> bytes:
    """A digest of the texts that the index has of a file; empty where it has none."""
    folder, _, name = path.rpartition(b"/")
    rows = connection.execute(
        "SELECT d.part, d.title, b.content FROM documents d JOIN bodies b ON b.document = d.id "
        "JOIN files f ON f.id = d.file JOIN folders o ON o.id = f.folder WHERE o.path = ? AND f.name = ? ORDER BY d.id",
        (folder or b"/", name),
    ).fetchall()
    digest = hashlib.blake2b(digest_size=16)
    for part, title, content in rows:
        for value in (part.encode(), title.encode(), content):
            digest.update(len(value).to_bytes(8, "little") + value)
    return digest.digest() if rows else b""


def _digest(path: bytes, size: int) -> bytes:
    """A digest of the content of a regular file; empty for one that is empty, too large or cannot be read."""
    if not 0 < size <= _LARGEST:
        return b""
    digest = hashlib.blake2b(digest_size=16)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            left = size
            while left > 0 and (piece := file.read(min(left, _PIECE))):
                digest.update(piece)
                left -= len(piece)
    except OSError:
        return b""
    return digest.digest()


def _status(path: bytes) -> os.stat_result | None:
    """The status of a regular file; None where there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _version(status: os.stat_result) -> tuple[int, int, int]:
    size, mtime_ns, inode = file_version(status)
    return inode, size, mtime_ns
