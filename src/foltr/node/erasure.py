"""Erasing from the log, down to the bytes: one list, a stretch of time, everything, or all traces of documents.

Every function leaves files in which `grep` finds nothing of what was erased: SQLite overwrites deleted content with
zeros, and the write-ahead log is emptied afterwards. While another process reads, emptying waits for it; it is tried
again at the next erasure (`empty_journal` says whether it is done).
"""

import sqlite3
from collections.abc import Collection, Iterable

import numpy as np

from foltr.node import memory
from foltr.node.log import Log, encoded
from foltr.node.memory import DAY


def delete(log: Log, impressions: Iterable[int]) -> int:
    """Deletes lists and their choices; how many lists there were."""
    with log.transaction() as connection:
        found = 0
        for number in impressions:
            found += connection.execute("DELETE FROM impressions WHERE id = ?", (int(number),)).rowcount
        _drop_unused(connection)
    empty_journal(log)
    return found


def delete_between(log: Log, since: float, until: float) -> int:
    """Deletes lists and choices of a stretch of time, `until` not included, and the memory that rests on them."""
    with log.transaction() as connection:
        found = connection.execute("DELETE FROM impressions WHERE time >= ? AND time < ?", (since, until)).rowcount
        connection.execute("DELETE FROM choices WHERE time >= ? AND time < ?", (since, until))
        _drop_unused(connection)
    empty_journal(log)
    return found


def delete_all(log: Log) -> int:
    """Deletes every list, choice and memory; versions of the weights stay (`learning.reset` deletes them)."""
    with log.transaction() as connection:
        connection.execute("DELETE FROM choices")
        found = connection.execute("DELETE FROM impressions").rowcount
        connection.execute("DELETE FROM documents")
    empty_journal(log)
    return found


def scrub(log: Log, documents: Collection[str] = (), *, folders: Collection[str] = ()) -> int:
    """Erases documents, by key or by folder, from lists and memory; how many there were.

    Query texts of lists that showed them are erased too, and the same texts elsewhere: a text may quote what a
    document says. Features and clicks stay, which name nothing.
    """
    with log.transaction() as connection:
        numbers = _numbers(connection, documents, folders)
        texts = _texts_that_showed(connection, numbers)
        rows = connection.execute("SELECT id, query FROM impressions WHERE query IS NOT NULL").fetchall()
        erased = [(number,) for number, query in rows if memory.typed_text(query) in texts]
        connection.executemany("UPDATE impressions SET query = NULL WHERE id = ?", erased)
        connection.executemany("UPDATE choices SET typed = NULL WHERE typed = ?", [(text,) for text in texts])
        connection.executemany("UPDATE choices SET typed = NULL WHERE document = ?", [(one,) for one in numbers])
        connection.executemany("DELETE FROM choices WHERE impression IS NULL AND document = ?", [(n,) for n in numbers])
        connection.executemany("UPDATE documents SET key = NULL WHERE id = ?", [(one,) for one in numbers])
    empty_journal(log)
    return len(numbers)


def prune(log: Log, now: float) -> int:
    """Deletes what is beyond the retention limits; how many lists."""
    limits = log.retention
    with log.transaction() as connection:
        found = connection.execute("DELETE FROM impressions WHERE time < ?", (now - limits.days * DAY,)).rowcount
        connection.execute("DELETE FROM choices WHERE time < ?", (now - limits.days * DAY,))
        found += connection.execute(
            "DELETE FROM impressions WHERE id <= (SELECT id FROM impressions ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (limits.impressions,),
        ).rowcount
        if found:
            _drop_unused(connection)
    if found:
        empty_journal(log)
    return found


def empty_journal(log: Log) -> bool:
    """Moves the write-ahead log into the database and cuts it to nothing; False while another process reads."""
    busy, *_ = log.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
    return not busy


def _numbers(connection: sqlite3.Connection, documents: Collection[str], folders: Collection[str]) -> list[int]:
    known = connection.execute("SELECT id, key FROM documents WHERE key IS NOT NULL").fetchall()
    wanted = {encoded(one) for one in documents}
    below = tuple(encoded(one.rstrip("/") + "/") for one in folders)
    return [number for number, key in known if key in wanted or key.startswith(below)]


def _texts_that_showed(connection: sqlite3.Connection, numbers: Collection[int]) -> set[str]:
    wanted, texts = np.array(sorted(numbers), dtype="<i8"), set()
    for query, documents in connection.execute("SELECT query, documents FROM impressions WHERE query IS NOT NULL"):
        if np.isin(np.frombuffer(documents, dtype="<i8"), wanted).any():
            texts.add(memory.typed_text(query))
    return texts


def _drop_unused(connection: sqlite3.Connection) -> None:
    """Deletes the paths of documents that no list and no choice names any more."""
    used = {number for (number,) in connection.execute("SELECT document FROM choices")}
    for (documents,) in connection.execute("SELECT documents FROM impressions"):
        used.update(np.frombuffer(documents, dtype="<i8").tolist())
    unused = [(one,) for (one,) in connection.execute("SELECT id FROM documents").fetchall() if one not in used]
    connection.executemany("DELETE FROM documents WHERE id = ?", unused)
