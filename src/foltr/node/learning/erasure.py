"""Erasing from the log, down to the bytes: one list, a stretch of time, everything, or all traces of documents.

Every function leaves files in which `grep` finds nothing of what was erased. SQLite overwrites deleted rows with zeros
(`secure_delete`), but copies that it made while it moved rows between pages can stay in the unused parts of pages. So
the tables that hold texts, which are small, are written anew; pages of the old ones are overwritten as a whole, and the
write-ahead log is emptied. While another process reads, emptying waits for it and may fail: `empty_journal` says
whether it is done and can be called again.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from foltr.node.learning import memory
from foltr.node.learning.log import Log, encoded
from foltr.node.learning.log_schema import INDEXES, TEXT_TABLES
from foltr.node.learning.memory import DAY


def delete(log: Log, impressions: Iterable[int]) -> int:
    """Deletes lists and their choices; how many lists there were."""
    with _erasing(log) as connection:
        chosen = [(int(number),) for number in impressions]
        return _rowcounts(connection, "DELETE FROM impressions WHERE id = ?", chosen)


def delete_between(log: Log, since: float, until: float) -> int:
    """Deletes lists and choices of a stretch of time, `until` not included, and the memory that rests on them."""
    with _erasing(log) as connection:
        connection.execute("DELETE FROM choices WHERE time >= ? AND time < ?", (since, until))
        return connection.execute("DELETE FROM impressions WHERE time >= ? AND time < ?", (since, until)).rowcount


def delete_all(log: Log) -> int:
    """Deletes every list, choice and memory; versions of the weights stay (`learning.reset` deletes them)."""
    with _erasing(log) as connection:
        connection.execute("DELETE FROM choices")
        return connection.execute("DELETE FROM impressions").rowcount


def scrub(
    log: Log, documents: Collection[str] = (), *, files: Collection[str] = (), folders: Collection[str] = ()
) -> int:
    """Erases documents from lists and memory: by key, with all parts of a file, or below a folder; how many.

    Query texts of lists that showed them are erased too, and the same texts elsewhere: a text may quote what a
    document says. Features and clicks stay, which name nothing.
    """
    with log.transaction() as connection:
        numbers = [(one,) for one in _numbers(connection, documents, files, folders)]
    if not numbers:  # the usual case when a file that was never found is removed
        return 0
    with _erasing(log) as connection:
        texts = _texts_that_showed(connection, {one for (one,) in numbers})
        rows = connection.execute("SELECT impression, text FROM queries").fetchall()
        same = [(number,) for number, text in rows if memory.typed_text(text) in texts]
        connection.executemany("DELETE FROM queries WHERE impression = ?", same)
        connection.executemany("UPDATE choices SET typed = NULL WHERE typed = ?", [(text,) for text in texts])
        connection.executemany("UPDATE choices SET typed = NULL WHERE document = ?", numbers)
        connection.executemany("DELETE FROM choices WHERE impression IS NULL AND document = ?", numbers)
        connection.executemany("UPDATE documents SET key = NULL WHERE id = ?", numbers)
    return len(numbers)


def scrub_texts(log: Log, erase: Callable[[str], bool]) -> int:
    """Erases the query texts for which `erase` is true, such as those with a word that no document has any more."""
    rows = log.rows("SELECT text FROM queries UNION SELECT typed FROM choices WHERE typed IS NOT NULL")
    texts = [(text,) for (text,) in rows if erase(text)]
    if texts:
        with _erasing(log) as connection:
            connection.executemany("DELETE FROM queries WHERE text = ?", texts)
            connection.executemany("UPDATE choices SET typed = NULL WHERE typed = ?", texts)
            connection.execute("DELETE FROM choices WHERE impression IS NULL AND typed IS NULL")
    return len(texts)


def prune(log: Log, now: float) -> int:
    """Deletes what is beyond the retention limits; how many lists."""
    oldest, most = now - log.retention.days * DAY, log.retention.impressions
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


def empty_journal(log: Log) -> bool:
    """Moves the write-ahead log into the database and cuts it to nothing; False while another process reads."""
    busy, *_ = log.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
    return not busy


@contextmanager
def _erasing(log: Log) -> Iterator[sqlite3.Connection]:
    """A transaction after which what nothing names any more is gone, and its bytes with it."""
    with log.changing_choices() as connection:
        yield connection
        connection.execute("DELETE FROM queries WHERE impression NOT IN (SELECT id FROM impressions)")
        connection.execute(
            "DELETE FROM choices WHERE impression IS NOT NULL AND impression NOT IN (SELECT id FROM impressions)"
        )
        _drop_unused_documents(connection)
        for table, columns in TEXT_TABLES.items():
            _write_anew(connection, table, columns)
    empty_journal(log)


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


def _rowcounts(connection: sqlite3.Connection, statement: str, values: list[tuple[int]]) -> int:
    return connection.executemany(statement, values).rowcount if values else 0


def _numbers(
    connection: sqlite3.Connection, documents: Collection[str], files: Collection[str], folders: Collection[str]
) -> list[int]:
    known = connection.execute("SELECT id, key FROM documents WHERE key IS NOT NULL").fetchall()
    wanted = {encoded(one) for one in (*documents, *files)}
    beginnings = (*(memory.document_key(one, "-")[:-1] for one in files), *(one.rstrip("/") + "/" for one in folders))
    below = tuple(encoded(one) for one in beginnings)
    return [number for number, key in known if key in wanted or key.startswith(below)]


def _texts_that_showed(connection: sqlite3.Connection, numbers: Collection[int]) -> set[str]:
    wanted, texts = np.array(sorted(numbers), dtype="<i8"), set()
    rows = connection.execute("SELECT q.text, i.documents FROM queries q JOIN impressions i ON i.id = q.impression")
    for text, documents in rows:
        if np.isin(np.frombuffer(documents, dtype="<i8"), wanted).any():
            texts.add(memory.typed_text(text))
    return texts


def _drop_unused_documents(connection: sqlite3.Connection) -> None:
    """Deletes the paths of documents that no list and no choice names any more."""
    used = {number for (number,) in connection.execute("SELECT document FROM choices")}
    for (documents,) in connection.execute("SELECT documents FROM impressions"):
        used.update(np.frombuffer(documents, dtype="<i8").tolist())
    unused = [(one,) for (one,) in connection.execute("SELECT id FROM documents").fetchall() if one not in used]
    connection.executemany("DELETE FROM documents WHERE id = ?", unused)
