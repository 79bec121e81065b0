"""Pinned and hidden documents: what a person says about one query, beside what is remembered and learned.

    pinned    first for exactly this query, as long as the document matches the query and its conditions
    hidden    not shown for exactly this query ("never here")

Queries are compared as the memory of choices compares them: case, width and spaces do not matter. Statements stand in
a table of the log's database, durable when a function returns, and are erased with a folder and with everything else.
"""

import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from foltr.node.learning import memory
from foltr.node.learning.erasure import empty_journal
from foltr.node.learning.log import Log, decoded, encoded
from foltr.node.learning.memory import Remembered
from foltr.node.search.ranking import Context, Ranking, key_of
from foltr.node.search.results import Row

Kind = Literal["pinned", "hidden"]

_TABLE = """
CREATE TABLE IF NOT EXISTS pins (
  typed TEXT NOT NULL, key BLOB NOT NULL, kind TEXT NOT NULL, time REAL NOT NULL, PRIMARY KEY (typed, key)
) WITHOUT ROWID
"""


class Pins(NamedTuple):
    """What was said about a query, as keys of documents."""

    pinned: tuple[str, ...] = ()  # the newest first
    hidden: frozenset[str] = frozenset()


class Pin(NamedTuple):
    query: str
    document: str  # key
    kind: Kind
    time: float


def put(log: Log, query: str, document: str, kind: Kind) -> None:
    """Pins or hides a document for a query; the newest statement holds."""
    with log.transaction() as connection:
        connection.execute(_TABLE)
        connection.execute(
            "INSERT OR REPLACE INTO pins VALUES (?, ?, ?, ?)",
            (memory.typed_text(query), encoded(document), kind, time.time()),
        )


def remove(log: Log, query: str, document: str) -> bool:
    """Takes a statement back; False where there was none."""
    with log.transaction() as connection:
        connection.execute(_TABLE)
        wanted = (memory.typed_text(query), document)
        found = [one for one in every(log) if (one.query, one.document) == wanted]
        _erase(connection, every(log), found)
    empty_journal(log)
    return bool(found)


def every(log: Log) -> list[Pin]:
    """All statements, the newest first."""
    if not _exists(log):
        return []
    rows = log.rows("SELECT typed, key, kind, time FROM pins ORDER BY time DESC, typed, key")
    return [Pin(typed, decoded(key), kind, time) for typed, key, kind, time in rows]


def of(log: Log, query: str) -> Pins:
    """What was said about a query."""
    if not _exists(log):
        return Pins()
    rows = log.rows("SELECT key, kind FROM pins WHERE typed = ? ORDER BY time DESC, key", (memory.typed_text(query),))
    return Pins(
        tuple(decoded(key) for key, kind in rows if kind == "pinned"),
        frozenset(decoded(key) for key, kind in rows if kind == "hidden"),
    )


def erase(log: Log, documents: Collection[str] = (), *, folders: Collection[str] = ()) -> int:
    """Deletes the statements about documents, by key or by folder."""
    wanted, below = set(documents), tuple(one.rstrip("/") + "/" for one in folders)
    with log.transaction() as connection:
        connection.execute(_TABLE)
        found = [one for one in every(log) if one.document in wanted or one.document.startswith(below)]
        _erase(connection, every(log), found)
    empty_journal(log)
    return len(found)


def erase_all(log: Log) -> None:
    with log.transaction() as connection:
        connection.execute("DROP TABLE IF EXISTS pins")
    empty_journal(log)


def as_candidates(context: Context, said: Pins) -> Context:
    """Pinned documents are candidates by the rule of the memory: those that match the query and its conditions."""
    known = {one.document for one in context.remembered}
    new = [Remembered(key, 0.0, 1.0, memory.typed_text(context.text)) for key in said.pinned if key not in known]
    return context._replace(remembered=[*context.remembered, *new])


def placed(ranking: Ranking, said: Pins, hidden_numbers: Collection[int] = ()) -> Ranking:
    """A list with pinned documents first and without hidden ones; `hidden_numbers` are theirs, for the tail."""
    if not said.pinned and not said.hidden:
        return ranking
    keys = [key_of(one) for one in ranking.documents]
    first = [keys.index(key) for key in said.pinned if key in keys]
    others = [row for row, key in enumerate(keys) if row not in first and key not in said.hidden]
    rows = np.array([*first, *others], dtype=int)
    lifted = np.arange(len(rows)) < len(first)
    return ranking._replace(
        documents=[ranking.documents[row] for row in rows],
        scores=ranking.scores[rows],
        raw=ranking.raw[rows],
        scaled=ranking.scaled[rows],
        propensities=np.where(lifted, 1.0, ranking.propensities[rows]),
        teams=None if ranking.teams is None else ranking.teams[rows],
        tail=[one for one in ranking.tail if one not in set(hidden_numbers)],
    )


def explained(rows: Iterable[Row], keys: Sequence[str], said: Pins) -> tuple[Row, ...]:
    """Rows whose reason says that they are pinned; `keys` are those of the rows."""
    return tuple(
        row._replace(reason="pinned by you for this search", remembered=False) if key in said.pinned else row
        for row, key in zip(rows, keys, strict=True)
    )


def _exists(log: Log) -> bool:
    return bool(log.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pins'"))


def _erase(connection: sqlite3.Connection, before: Iterable[Pin], erased: Collection[Pin]) -> None:
    """Writes the table anew without some statements, so that no page holds a copy of them."""
    rest = [(one.query, encoded(one.document), one.kind, one.time) for one in before if one not in erased]
    connection.execute("DROP TABLE pins")
    connection.execute(_TABLE)
    connection.executemany("INSERT INTO pins VALUES (?, ?, ?, ?)", rest)
