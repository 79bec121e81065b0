"""The log of a node: displayed lists, what was opened from them, and versions of the learned weights. SQLite.

An impression is a settled list: the query, the documents as shown with their propensities, the version that ranked,
and the scaled features and scores of ALL candidates, displayed ones first. A choice is an opening of one of them.

Durability: a write-ahead log that is synchronised at every commit; what a method returned from survives kill -9 and a
power cut. Erasure is in `erasure`. Paths stand in one table: erasing a document erases it from all lists.
Several processes and threads may use one log. Files are readable by their owner only.
"""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.errors import InputError, StorageError
from foltr.files import private_file, private_folders
from foltr.node.learning import counting, habits, impressions, memory
from foltr.node.learning.habits import Openings
from foltr.node.learning.impressions import LATEST, Impression
from foltr.node.learning.memory import DAY, Remembered, Use
from foltr.types import Array

QUICK_RETURN, FORGOTTEN = 1, 2  # why a choice was withdrawn
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
    "pins": """(
        typed TEXT NOT NULL, key BLOB NOT NULL, kind TEXT NOT NULL, time REAL NOT NULL, PRIMARY KEY (typed, key)
    ) WITHOUT ROWID""",
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


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the log."""

    days: int = 365
    impressions: int = 10_000


DEFAULT_RETENTION = Retention()


class Choice(NamedTuple):
    impression: int | None  # None: imported memory
    document: str | None  # None: erased
    position: int
    time: float
    withdrawn: int  # 0, QUICK_RETURN or FORGOTTEN


class Displayed(NamedTuple):
    """A row of the history."""

    impression: int
    time: float
    query: str | None  # None: erased
    documents: tuple[str | None, ...]
    choices: tuple[Choice, ...]


class Log:
    """A connection to the log of a node; close it, or use it as a context manager."""

    def __init__(self, path: Path, retention: Retention = DEFAULT_RETENTION) -> None:
        self.path, self.retention = path, retention
        self._lock, self._counted = threading.RLock(), habits.NO_OPENINGS
        self._counted_at: tuple[Any, ...] = ()
        self._of_body_words: dict[int, bool] = {}  # list -> whether its query was a single word of bodies
        self._choice_changes = 0  # by this connection
        self._connection = _connect(path)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; on the disk when it is left. Inside another transaction it is a part of it."""
        with self._lock, _explained(self.path):
            nested = self._connection.in_transaction
            if nested:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def changing_choices(self) -> Iterator[sqlite3.Connection]:
        """A transaction after which openings are counted again."""
        with self.transaction() as connection:
            self._choice_changes += 1
            yield connection

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _explained(self.path):
            return self._connection.execute(question, values).fetchall()

    def state(self) -> tuple[Any, ...]:
        """A value that changes with every change of the log, by this process or by another."""
        with self._lock:
            return (self.rows("PRAGMA data_version")[0][0], self._connection.total_changes)

    # ---- writing

    def record(self, impression: Impression) -> int:
        """Stores a settled list; its number."""
        impressions.check(impression)
        features, scores = (np.ascontiguousarray(one, dtype="<f4") for one in (impression.features, impression.scores))
        teams = None if impression.teams is None else np.asarray(impression.teams, dtype=np.uint8).tobytes()
        with self.transaction() as connection:
            numbers = np.array([_number(connection, one) for one in impression.documents], dtype="<i8")
            found = connection.execute(
                "INSERT INTO impressions (time, model_version, feature_set, candidates, documents, propensities, "
                "scores, teams, features) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (float(impression.time), int(impression.model_version),
                 _feature_set(connection, impression.feature_names), len(features), numbers.tobytes(),
                 np.asarray(impression.propensities, dtype="<f4").tobytes(), scores.tobytes(), teams,
                 features.tobytes()),
            )  # fmt: skip
            stored = int(found.lastrowid or 0)
            if impression.query is not None:
                text = memory.stored_text(impression.query)
                connection.execute("INSERT INTO queries (impression, text) VALUES (?, ?)", (stored, text))
            return stored

    def choose(self, impression: int, document: str, time: float) -> int:
        """Stores that a displayed document was opened; durable when it returns. The number of the choice."""
        with self.transaction() as connection:
            _, documents = _list(connection, impression)
            number = _known(connection, document)
            positions = np.flatnonzero(documents == (-1 if number is None else number))
            if not len(positions):
                raise InputError(f"list {impression} did not show {document!r}; choose one of its documents")
            return self.choose_position(impression, int(positions[0]), time)

    def choose_position(self, impression: int, position: int, time: float, *, withdrawn: int = 0) -> int:
        """Logs a choice by its place in the list, counted from 0."""
        with self.changing_choices() as connection:
            query, documents = _list(connection, impression)
            if not 0 <= position < len(documents):
                raise InputError(f"list {impression} has {len(documents)} documents; there is no place {position + 1}")
            if not 0 <= time < LATEST:
                raise InputError(f"a choice at {time!r}: expected seconds since 1970")
            found = connection.execute(
                "INSERT INTO choices (impression, document, position, typed, time, withdrawn) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (impression, int(documents[position]), position, None if query is None else memory.typed_text(query),
                 float(time), withdrawn),
            )  # fmt: skip
            return int(found.lastrowid or 0)

    def take_back(self, impression: int, document: str) -> bool:
        """Withdraws the last choice of a document of a list after a quick return; False where there is none."""
        with self.changing_choices() as connection:
            found = connection.execute(
                "UPDATE choices SET withdrawn = ? WHERE id = (SELECT max(id) FROM choices WHERE impression = ? AND "
                "document = ? AND withdrawn = 0)",
                (QUICK_RETURN, impression, _known(connection, document)),
            )
            return found.rowcount > 0

    def forget_choice(self, query: str, document: str) -> int:
        """Withdraws every choice of a document that memory would find for a query; the history still lists them."""
        typed_now = memory.typed_text(query)
        with self.changing_choices() as connection:
            rows = connection.execute(
                "SELECT id, typed FROM choices WHERE document = ? AND withdrawn = 0 AND typed IS NOT NULL",
                (_known(connection, document),),
            ).fetchall()
            found = [(FORGOTTEN, number) for number, typed in rows if memory.counts(typed, typed_now)]
            connection.executemany("UPDATE choices SET withdrawn = ? WHERE id = ?", found)
            return len(found)

    def remember(self, uses: Iterable[Use]) -> int:
        """Stores choices without a list: memory that comes from another machine."""
        with self.changing_choices() as connection:
            rows = [(_number(connection, one.document), memory.typed_text(one.typed), float(one.time)) for one in uses]
            connection.executemany("INSERT INTO choices (document, position, typed, time) VALUES (?, -1, ?, ?)", rows)
            return len(rows)

    # ---- reading

    def lookup(self, query: str, now: float) -> list[Remembered]:
        """Remembered choices for a query (`memory.lookup`)."""
        typed_now = memory.typed_text(query)
        last = typed_now + "\U0010ffff" if len(typed_now) >= memory.SHORTEST_BEGINNING else typed_now
        rows = self.rows(
            "SELECT c.typed, d.key, c.time FROM choices c JOIN documents d ON d.id = c.document WHERE c.typed >= ? AND "
            "c.typed <= ? AND c.withdrawn = 0 AND d.key IS NOT NULL ORDER BY c.time, c.id",
            (typed_now, last),
        )
        uses = (Use(typed, decoded(key), time) for typed, key, time in rows)
        return memory.lookup(memory.entries(uses).items(), query, now)

    def uses(self) -> list[Use]:
        """Everything that memory rests on, in the order of time."""
        rows = self.rows(
            "SELECT c.typed, d.key, c.time FROM choices c JOIN documents d ON d.id = c.document WHERE c.withdrawn = 0 "
            "AND c.typed IS NOT NULL AND d.key IS NOT NULL ORDER BY c.time, c.id"
        )
        return [Use(typed, decoded(key), time) for typed, key, time in rows]

    def openings(self, now: float) -> Openings:
        """Decayed counts of openings, as of the day of `now`; computed again when choices or the day change."""
        with self._lock:
            state = (now // DAY, self.rows("PRAGMA data_version"), self._choice_changes)
            if self._counted_at != state:
                self._counted = counting.openings_of(self.rows, self._of_body_words, now)
                self._counted_at = state
            return self._counted

    def impressions(self) -> int:
        return int(self.rows("SELECT count(*) FROM impressions")[0][0])

    def clicks(self) -> int:
        """Choices from lists that were not withdrawn."""
        rows = self.rows("SELECT count(*) FROM choices WHERE withdrawn = 0 AND impression IS NOT NULL")
        return int(rows[0][0])

    def history(self, *, limit: int = 50, before: int | None = None, text: str = "") -> list[Displayed]:
        """The newest lists whose query has a text in it, newest first; `before` an impression to page on."""
        rows = self.rows(
            "SELECT i.id FROM impressions i LEFT JOIN queries q ON q.impression = i.id "
            "WHERE i.id < ? AND (? = '' OR instr(lower(q.text), lower(?)) > 0) ORDER BY i.id DESC LIMIT ?",
            (before if before is not None else 2**62, text, text, limit),
        )
        return [self.displayed(number) for (number,) in rows]

    def displayed(self, impression: int) -> Displayed:
        """One list and its choices."""
        rows = self.rows(
            "SELECT i.id, i.time, q.text, i.documents FROM impressions i LEFT JOIN queries q ON q.impression = i.id "
            "WHERE i.id = ?",
            (impression,),
        )
        if not rows:
            raise InputError(f"there is no list {impression} in the log; `foltr node history` lists them")
        number, time, query, documents = rows[0]
        keys = self._keys(np.frombuffer(documents, dtype="<i8").tolist())
        choices = self.rows(
            "SELECT c.impression, d.key, c.position, c.time, c.withdrawn FROM choices c JOIN documents d "
            "ON d.id = c.document WHERE c.impression = ? ORDER BY c.id",
            (number,),
        )
        found = tuple(Choice(one[0], _decoded_or_none(one[1]), *one[2:]) for one in choices)
        return Displayed(number, time, query, keys, found)

    def document_keys(self) -> list[str]:
        """Keys of all documents that lists, choices or curations name."""
        rows = self.rows("SELECT key FROM documents WHERE key IS NOT NULL UNION SELECT key FROM pins")
        return [decoded(key) for (key,) in rows]

    def _keys(self, numbers: list[int]) -> tuple[str | None, ...]:
        marks = ", ".join("?" * len(numbers))
        found = dict(self.rows(f"SELECT id, key FROM documents WHERE id IN ({marks})", numbers))  # noqa: S608 - marks only
        return tuple(_decoded_or_none(found.get(number)) for number in numbers)


# ---- the database


def _connect(path: Path) -> sqlite3.Connection:
    private_folders(path.parent)
    private_file(path)  # SQLite's own files copy its mode
    with _explained(path):
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
                _create(connection, table, columns)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != SCHEMA_VERSION:
        raise StorageError(f"{path}: a log of version {found}, this foltr reads {SCHEMA_VERSION}; update foltr")
    # logs of version 1 got the table of pins with the first pin: many have none
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'pins'").fetchone():
        connection.execute(f"CREATE TABLE IF NOT EXISTS pins {TEXT_TABLES['pins']}")


def _create(connection: sqlite3.Connection, table: str, columns: str) -> None:
    """A table with its indexes."""
    connection.execute(f"CREATE TABLE {table} {columns}")
    for name, on in INDEXES.get(table, {}).items():
        connection.execute(f"CREATE INDEX {name} ON {table} {on}")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
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


# ---- rows


def encoded(key: str) -> bytes:
    """A key as it is stored: file names are bytes, valid UTF-8 or not."""
    return key.encode("utf-8", "surrogateescape")


def decoded(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _decoded_or_none(key: bytes | None) -> str | None:
    return None if key is None else decoded(key)


def _known(connection: sqlite3.Connection, document: str) -> int | None:
    row = connection.execute("SELECT id FROM documents WHERE key = ?", (encoded(document),)).fetchone()
    return None if row is None else int(row[0])


def _number(connection: sqlite3.Connection, document: str | None) -> int:
    known = None if document is None else _known(connection, document)
    if known is not None:
        return known
    key = None if document is None else encoded(document)
    return int(connection.execute("INSERT INTO documents (key) VALUES (?)", (key,)).lastrowid or 0)


def _list(connection: sqlite3.Connection, impression: int) -> tuple[str | None, Array]:
    """Query and documents of a list."""
    row = connection.execute(
        "SELECT q.text, i.documents FROM impressions i LEFT JOIN queries q ON q.impression = i.id WHERE i.id = ?",
        (impression,),
    ).fetchone()
    if row is None:
        raise InputError(f"there is no list {impression} in the log; search again")
    return row[0], np.frombuffer(row[1], dtype="<i8")


def _feature_set(connection: sqlite3.Connection, names: tuple[str, ...]) -> int:
    text = json.dumps(list(names), allow_nan=False)
    digest = hashlib.sha256(text.encode()).digest()
    connection.execute("INSERT OR IGNORE INTO feature_sets (digest, names) VALUES (?, ?)", (digest, text))
    return int(connection.execute("SELECT id FROM feature_sets WHERE digest = ?", (digest,)).fetchone()[0])
