"""Erasing from the log, down to the bytes. `erase` decides what goes when a person deletes searches or everything.

| scope | searches, what was opened | memory | pinned and hidden results | weights |
|---|---|---|---|---|
| `Searches` | these | that rests on them | of a text that no other search has | stay |
| `Period` | of this time | of this time | made in this time, or of a text that no other search has | stay |
| `ALL_SEARCHES` | all | all | all | stay, or are reset where the person says so |
| `EVERYTHING` | all | all | all | reset |

A text is gone with its last search: imported memory of the same text goes with it. Weights hold no text; the next fit
starts at the start weights and learns from the searches that are left. `EVERYTHING` is the log's part of "forget me";
`Node.forget` adds index and settings.

Every function leaves files in which `grep` finds nothing of what was erased. SQLite overwrites deleted rows with zeros
(`secure_delete`), but copies that it made while it moved rows between pages can stay in the unused parts of pages. So
the tables that hold texts, which are small, are written anew; pages of the old ones are overwritten as a whole, and the
write-ahead log is emptied. While another process reads, emptying waits for it and may fail: `empty_journal` says
whether it is done and can be called again.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from foltr.node.learning import memory, versions
from foltr.node.learning.log import INDEXES, TEXT_TABLES, Log, decoded, encoded
from foltr.node.learning.memory import DAY

_GAP_DAYS = 365  # without a search, after which the clock may have been set wrongly


class Searches(NamedTuple):
    numbers: tuple[int, ...]


class Period(NamedTuple):
    since: float = 0.0  # seconds since 1970
    until: float = float("inf")  # not included


class Whole(Enum):
    ALL_SEARCHES = "all searches"
    EVERYTHING = "everything"


ALL_SEARCHES, EVERYTHING = Whole.ALL_SEARCHES, Whole.EVERYTHING
Scope: TypeAlias = Searches | Period | Whole


class Erased(NamedTuple):
    """Result of an erasure, and what became of the learned weights."""

    searches: int
    weights: Literal["none", "unchanged", "reset"]  # none: the start weights rank, nothing was learned
    complete: bool = True  # False: another process held the journal; bytes stay there until it is emptied


def erase(log: Log, scope: Scope, *, reset_weights: bool = False) -> Erased:
    """Erases what a scope names (see the table above); `reset_weights` also deletes all learned versions."""
    reset, learned = reset_weights or scope is EVERYTHING, bool(versions.versions(log))
    with _erasing(log) as connection:
        texts = _query_texts(connection)
        if isinstance(scope, Searches):
            numbers = [(int(number),) for number in scope.numbers]
            delete = "DELETE FROM impressions WHERE id = ?"
            deleted = connection.executemany(delete, numbers).rowcount if numbers else 0
        elif isinstance(scope, Period):
            limits = (scope.since, scope.until)
            connection.execute("DELETE FROM choices WHERE time >= ? AND time < ?", limits)
            connection.execute("DELETE FROM pins WHERE time >= ? AND time < ?", limits)
            deleted = connection.execute("DELETE FROM impressions WHERE time >= ? AND time < ?", limits).rowcount
        else:
            for table in ("choices", "pins", "queries"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of this function
            deleted = connection.execute("DELETE FROM impressions").rowcount
        _drop_orphans(connection)
        gone = texts - _query_texts(connection)
        rows = [(text,) for text in gone]
        connection.executemany("DELETE FROM choices WHERE impression IS NULL AND typed = ?", rows)
        _delete_texts(connection, gone)
        if reset:
            versions.reset(log)
    if scope is EVERYTHING:
        log.rows("VACUUM")
    weights: Literal["none", "unchanged", "reset"] = "none" if not learned else "reset" if reset else "unchanged"
    return Erased(deleted, weights, empty_journal(log))


def summary(erased: Erased) -> str:
    """Says in words what was erased, and what became of the weights that were fitted to it."""
    sentences = [f"Deleted {erased.searches:,} {'search' if erased.searches == 1 else 'searches'}."]
    if erased.weights == "unchanged":
        sentences.append(
            "The learned weights stay and still rank: they hold no text, but were fitted to what is deleted. The next "
            "fit starts at the start weights and uses only the searches that are left."
        )
    if erased.weights == "reset":
        sentences.append("The learned weights are reset: the start weights rank.")
    if not erased.complete:
        sentences.append("Another program still reads the log: delete again once it has ended, to empty the journal.")
    return " ".join(sentences)


def scrub(log: Log, documents: Collection[str] = (), *, folders: Collection[str] = ()) -> int:
    """Erases documents from lists, memory and curations, by key or below a folder; returns how many.

    Query texts of lists that showed them are erased too, and the same texts elsewhere: a text may quote what a
    document says. Features and clicks stay, which name nothing.
    """
    with log.transaction() as connection:
        numbers = _numbers(connection, documents, folders)
        curated = [(key,) for (key,) in connection.execute("SELECT DISTINCT key FROM pins")
                  if _is_named(key, documents, folders)]  # fmt: skip
    if not numbers and not curated:  # the usual case when a file that was never shown is removed
        return 0
    with _erasing(log) as connection:
        connection.executemany("DELETE FROM pins WHERE key = ?", curated)
        _delete_texts(connection, _texts_that_showed(connection, numbers))
        rows = [(number,) for number in numbers]
        connection.executemany("UPDATE choices SET typed = NULL WHERE document = ?", rows)
        connection.executemany("DELETE FROM choices WHERE impression IS NULL AND document = ?", rows)
        connection.executemany("UPDATE documents SET key = NULL WHERE id = ?", rows)
    return len(numbers)


def remove_curation(log: Log, query: str, document: str) -> bool:
    """Erases a pinned or hidden result; False where there is none."""
    with log.transaction() as connection:
        curation = (memory.typed_text(query), encoded(document))
        deleted = connection.execute("DELETE FROM pins WHERE typed = ? AND key = ?", curation).rowcount
        _write_anew(connection, "pins", TEXT_TABLES["pins"])
    empty_journal(log)
    return deleted > 0


def prune(log: Log, now: float) -> int:
    """Deletes what is beyond the retention limits; returns how many lists. Curations stay: the person made them.

    A clock that is set wrongly by years must not delete everything: after a gap of more than a year nothing is too old
    until searches on two days have been logged behind it.
    """
    oldest, most = now - log.retention.days * DAY, log.retention.impressions
    if _may_have_jumped(log, now):
        oldest = float("-inf")
    beyond = log.rows(
        "SELECT id FROM impressions WHERE time < ? OR id <= (SELECT id FROM impressions ORDER BY id DESC "
        "LIMIT 1 OFFSET ?)",
        (oldest, most),
    )
    if beyond or log.rows("SELECT 1 FROM choices WHERE time < ? LIMIT 1", (oldest,)):
        with _erasing(log) as connection:
            connection.executemany("DELETE FROM impressions WHERE id = ?", beyond)
            connection.execute("DELETE FROM choices WHERE time < ?", (oldest,))
    return len(beyond)


def _may_have_jumped(log: Log, now: float) -> bool:
    """Whether there is a gap of more than a year before `now`, or before the last day that has searches."""
    rows = log.rows(
        "SELECT DISTINCT CAST(time / ? AS INTEGER) AS day FROM impressions ORDER BY day DESC LIMIT 2", (DAY,)
    )
    days = [int(now // DAY), *(day for (day,) in rows)]
    return any(later - earlier > _GAP_DAYS for later, earlier in pairwise(days))


def empty_journal(log: Log) -> bool:
    """Moves the write-ahead log into the database and cuts it to nothing; False while another process reads."""
    busy, *_ = log.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
    return not busy


@contextmanager
def _erasing(log: Log) -> Iterator[sqlite3.Connection]:
    """A transaction that also deletes unreferenced rows, overwrites the bytes of deleted ones, and discards the
    results of fits that run meanwhile."""
    with log.changing_choices() as connection:
        yield connection
        _drop_orphans(connection)
        _drop_unused_documents(connection)
        versions.count_erasure(connection)
        for table, columns in TEXT_TABLES.items():
            _write_anew(connection, table, columns)
    empty_journal(log)


def _drop_orphans(connection: sqlite3.Connection) -> None:
    """Deletes texts and choices of lists that are gone."""
    connection.execute("DELETE FROM queries WHERE impression NOT IN (SELECT id FROM impressions)")
    connection.execute(
        "DELETE FROM choices WHERE impression IS NOT NULL AND impression NOT IN (SELECT id FROM impressions)"
    )


def _query_texts(connection: sqlite3.Connection) -> set[str]:
    """The texts of all lists, as memory compares them."""
    return {memory.typed_text(text) for (text,) in connection.execute("SELECT text FROM queries")}


def _delete_texts(connection: sqlite3.Connection, texts: Collection[str]) -> None:
    """Deletes query texts wherever the log has them: lists and choices lose the text, curations go."""
    rows = connection.execute("SELECT impression, text FROM queries").fetchall()
    lists = [(number,) for number, text in rows if memory.typed_text(text) in texts]
    values = [(text,) for text in texts]
    connection.executemany("DELETE FROM queries WHERE impression = ?", lists)
    connection.executemany("UPDATE choices SET typed = NULL WHERE typed = ?", values)
    connection.executemany("DELETE FROM pins WHERE typed = ?", values)


def _write_anew(connection: sqlite3.Connection, table: str, columns: str) -> None:
    """Copies a table's rows to fresh pages; numbers that were given out do not come again."""
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    connection.execute(f"CREATE TABLE fresh {columns}")
    connection.execute(f"INSERT INTO fresh SELECT * FROM {table} ORDER BY 1")  # noqa: S608 - names of this module
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE fresh RENAME TO {table}")
    for name, on in INDEXES.get(table, {}).items():
        connection.execute(f"CREATE INDEX {name} ON {table} {on}")
    if last is not None:
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last[0]))


def _numbers(connection: sqlite3.Connection, documents: Collection[str], folders: Collection[str]) -> list[int]:
    rows = connection.execute("SELECT id, key FROM documents WHERE key IS NOT NULL")
    return [number for number, key in rows if _is_named(key, documents, folders)]


def _is_named(key: bytes, documents: Collection[str], folders: Collection[str]) -> bool:
    """Whether a stored key is one of these documents, or below one of these folders."""
    return decoded(key) in documents or key.startswith(tuple(encoded(folder.rstrip("/") + "/") for folder in folders))


def _texts_that_showed(connection: sqlite3.Connection, numbers: Collection[int]) -> set[str]:
    """Texts of the lists that showed one of these documents."""
    shown, texts = np.array(sorted(numbers), dtype="<i8"), set()
    rows = connection.execute("SELECT q.text, i.documents FROM queries q JOIN impressions i ON i.id = q.impression")
    for text, documents in rows:
        if np.isin(np.frombuffer(documents, dtype="<i8"), shown).any():
            texts.add(memory.typed_text(text))
    return texts


def _drop_unused_documents(connection: sqlite3.Connection) -> None:
    """Deletes the paths of documents that no list and no choice names any more."""
    used = {number for (number,) in connection.execute("SELECT document FROM choices")}
    for (documents,) in connection.execute("SELECT documents FROM impressions"):
        used.update(np.frombuffer(documents, dtype="<i8").tolist())
    rows = connection.execute("SELECT id FROM documents").fetchall()
    unused = [(number,) for (number,) in rows if number not in used]
    connection.executemany("DELETE FROM documents WHERE id = ?", unused)
