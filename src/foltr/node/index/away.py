"""Roots that are away: a disk that is not mounted, a network folder that cannot be reached.

The documents of a root that is away stay in the index. They are found and marked; a file that is missing from a root
that is there was deleted, and is not shown.
"""

import errno
import os
import sqlite3
import stat
from pathlib import Path

from foltr.node.extract.file_version import signed

_AWAY = (
    errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN,
    errno.EHOSTUNREACH, errno.ETIMEDOUT,
)  # fmt: skip


def away(connection: sqlite3.Connection, root: str) -> str | None:
    """Why a root is away; None where it is there, also where it cannot be read for another reason."""
    try:
        status = Path(root).stat()
        is_empty = stat.S_ISDIR(status.st_mode) and not os.listdir(root)  # noqa: PTH208
    except OSError as problem:
        if problem.errno not in _AWAY or _is_deleted_file(connection, root):
            return None
        return f"it cannot be reached: {problem.strerror}"
    stored = stored_device(connection, root)
    if is_empty and stored is not None and stored != signed(status.st_dev):
        return "it is empty and on another device than before, as a disk that is not mounted"
    return None


def _is_deleted_file(connection: sqlite3.Connection, root: str) -> bool:
    """Whether a root that is missing was a file, in a folder that is there."""
    row = connection.execute("SELECT 1 FROM folders WHERE path = ?", (os.fsencode(root),)).fetchone()
    return row is None and Path(root).parent.is_dir()


def stored_device(connection: sqlite3.Connection, root: str) -> int | None:
    """The device that a root was on when it was last scanned."""
    row = connection.execute(
        "SELECT m.value FROM roots r JOIN meta m ON m.key = 'device ' || r.id WHERE r.path = ?", (os.fsencode(root),)
    ).fetchone()
    return None if row is None else int(row[0])


def store_device(connection: sqlite3.Connection, number: int, root: str) -> None:
    device = signed(Path(root).stat().st_dev)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"device {number}", device))
