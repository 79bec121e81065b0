"""The tables of the log, and how its database is opened: durable at every commit, deleted content overwritten."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foltr.errors import StorageError

SCHEMA_VERSION = 1
_BUSY_SECONDS = 30.0
# Texts (paths, queries) stand in small tables of their own, which erasing rewrites (`erasure`)
TEXT_TABLES = {
    "documents": "(id INTEGER PRIMARY KEY, key BLOB UNIQUE)",
    "queries": "(impression INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    "choices": """(
        id INTEGER PRIMARY KEY AUTOINCREMENT, impression INTEGER, document INTEGER NOT NULL, position INTEGER NOT NULL,
        typed TEXT, time REAL NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0
    )""",
}
INDEXES = {"choices": {"choices_by_impression": "(impression)", "choices_by_text": "(typed)"}}
_OTHER_TABLES = {
    "feature_sets": "(id INTEGER PRIMARY KEY, digest BLOB UNIQUE NOT NULL, names TEXT NOT NULL)",
    "impressions": """(
        id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, model_version INTEGER NOT NULL,
        feature_set INTEGER NOT NULL, candidates INTEGER NOT NULL, documents BLOB NOT NULL, propensities BLOB NOT NULL,
        scores BLOB NOT NULL, teams BLOB, features BLOB NOT NULL
    )""",
    "versions": """(
        version INTEGER PRIMARY KEY AUTOINCREMENT, weights TEXT NOT NULL, state TEXT NOT NULL, clicks INTEGER NOT NULL
    )""",
    "learning": "(key TEXT PRIMARY KEY, value TEXT NOT NULL)",
}


def connect(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # SQLite's own files copy its mode
        path.chmod(0o600)
    except OSError as problem:
        raise StorageError(f"{path}: cannot be opened ({problem.strerror}); check the folder's owner") from None
    with explained(path):
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON",
                   "trusted_schema = OFF", "temp_store = MEMORY"):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # nobody else was faster
            for table, columns in (TEXT_TABLES | _OTHER_TABLES).items():
                create(connection, table, columns)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != SCHEMA_VERSION:
        raise StorageError(f"{path}: a log of version {found}, this foltr reads {SCHEMA_VERSION}; update foltr")


def create(connection: sqlite3.Connection, table: str, columns: str) -> None:
    """A table with its indexes."""
    connection.execute(f"CREATE TABLE {table} {columns}")
    for name, on in INDEXES.get(table, {}).items():
        connection.execute(f"CREATE INDEX {name} ON {table} {on}")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors with the place and what to do."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        advice = {"full": "free some space", "locked": "another program holds it; try again"}
        what = next((say for word, say in advice.items() if word in str(problem)), "check the folder and its disk")
        raise StorageError(f"{path}: {problem}; {what}") from None
    except sqlite3.DatabaseError as problem:
        raise StorageError(
            f"{path}: {problem}; the log is damaged: move the file away to begin a new one, or restore a copy"
        ) from None
