"""The coordinator's database: one SQLite file, on the disk before any message leaves that follows from it.

A transaction that returned is on the disk (write-ahead log, synchronous FULL). Deleted rows are overwritten. The file
has no secret: contributions are sealed, codes of invitations are stored as digests, and keys lie in files of their own.
Addresses of nodes are not stored. `acts` is append-only: triggers refuse to change or delete a row.

    rounds      announced, open, closed, listed, agreed, opened, published, or failed with a reason
    inbox       one contribution of each node and round, until the round has its sum or failed
    receipts    who sent what and when: its digest; kept when the contribution is deleted
    answers     of the second operator: its signed list, agreement and half of a round
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foltr.errors import StorageError
from foltr.files import private_file, private_folders

VERSION = 1
_BUSY_SECONDS = 30.0  # a command waits so long for the server's transaction
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE members (
  client INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, joined REAL NOT NULL, seen REAL NOT NULL,
  version INTEGER NOT NULL DEFAULT 0, admitted INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE invitations (
  code BLOB PRIMARY KEY, role TEXT NOT NULL, number INTEGER NOT NULL, expires REAL NOT NULL,
  version INTEGER NOT NULL, used BLOB, revoked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE registries (number INTEGER PRIMARY KEY, edition BLOB NOT NULL);
CREATE TABLE statements (
  operator INTEGER, round INTEGER, statement BLOB NOT NULL, PRIMARY KEY (operator, round)
) WITHOUT ROWID;
CREATE TABLE rounds (
  round INTEGER PRIMARY KEY, state TEXT NOT NULL, registry INTEGER NOT NULL, version INTEGER NOT NULL,
  ranker BLOB NOT NULL, keys BLOB NOT NULL, announcement BLOB NOT NULL, opened REAL NOT NULL, closes REAL NOT NULL,
  rehearsal INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', sum BLOB, included BLOB
);
CREATE TABLE openings (round INTEGER, client INTEGER, PRIMARY KEY (round, client)) WITHOUT ROWID;
CREATE TABLE inbox (round INTEGER, client INTEGER, message BLOB NOT NULL, PRIMARY KEY (round, client));
CREATE TABLE receipts (
  round INTEGER, client INTEGER, digest BLOB NOT NULL, received REAL NOT NULL, reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (round, client)
) WITHOUT ROWID;
CREATE TABLE answers (round INTEGER, kind TEXT, content BLOB NOT NULL, PRIMARY KEY (round, kind)) WITHOUT ROWID;
CREATE TABLE steps (version INTEGER PRIMARY KEY, step BLOB NOT NULL);
CREATE TABLE acts (number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, act TEXT NOT NULL);
CREATE TRIGGER acts_stay BEFORE DELETE ON acts BEGIN SELECT RAISE(ABORT, 'acts are append-only'); END;
CREATE TRIGGER acts_are_fixed BEFORE UPDATE ON acts BEGIN SELECT RAISE(ABORT, 'acts are append-only'); END;
"""


class Store:
    """A connection that all threads of a process share, one transaction at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        private_folders(path.parent)
        private_file(path)  # 0600 before SQLite writes; its companions get the same mode
        try:
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._migrate()
        except sqlite3.Error as problem:
            raise StorageError(f"{path}: cannot be used as a database ({problem}); restore a backup") from None

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """No other thread reads or writes; each transaction within reaches the disk for itself."""
        with self._lock:
            yield

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within reach the disk together, or none. Within a transaction, part of it."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self.commit()

    def commit(self) -> None:
        """The durable write of a transaction."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as problem:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._explained(problem) from None

    def execute(self, statement: str, *values: Any) -> None:
        with self.transaction():
            self._execute(statement, *values)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._execute(query, *values).fetchall()

    def row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self.rows(query, *values)
        return rows[0] if rows else None

    def value(self, query: str, *values: Any) -> Any:
        """The only value of a query's first row; None where there is no row."""
        row = self.row(query, *values)
        return row[0] if row else None

    def get(self, key: str) -> bytes | None:
        return self.value("SELECT value FROM meta WHERE key = ?", key)

    def put(self, key: str, value: bytes) -> None:
        self.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)

    def note(self, now: float, act: str) -> None:
        """An act of an operator, or an event that one has to know of: no document, query, click or address in it."""
        self.execute("INSERT INTO acts (time, act) VALUES (?, ?)", now, act)

    def copy_to(self, path: Path) -> None:
        """A consistent copy, while the coordinator runs."""
        private_file(path)
        with self._lock, contextlib.closing(sqlite3.connect(path)) as target:
            self._connection.backup(target)

    def _execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as problem:
            raise self._explained(problem) from None

    def _explained(self, problem: sqlite3.Error) -> StorageError:
        return StorageError(f"{self.path}: {problem}; nothing was changed: free some space or restore a backup")

    def _migrate(self) -> None:
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found == 0:
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif found != VERSION:
            raise StorageError(f"{self.path}: a database of version {found}; this foltr knows version {VERSION}")
