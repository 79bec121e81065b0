"""Pinned and hidden results: what a person wants for one query, beside what is remembered and learned.

    pinned    first for exactly this query, as long as the document matches the query and its conditions
    hidden    not shown for exactly this query ("never here")

Queries are compared as the memory of choices compares them: case, width and spaces do not matter. Curations are rows of
the log's database; `erasure` deletes them with a folder, with their search and with everything else.
"""

from typing import Literal, NamedTuple

from foltr.node.learning import memory
from foltr.node.learning.log import Log, decoded, encoded

Kind = Literal["pinned", "hidden"]


class Curation(NamedTuple):
    query: str
    document: str  # key
    kind: Kind
    time: float  # seconds since 1970


class Curations(NamedTuple):
    """The curations for one query, as keys of documents."""

    pinned: tuple[str, ...] = ()  # the newest first
    hidden: frozenset[str] = frozenset()


def put(log: Log, query: str, document: str, kind: Kind, time: float) -> None:
    """Pins or hides a document for a query; the newest curation replaces an older one."""
    with log.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO pins (typed, key, kind, time) VALUES (?, ?, ?, ?)",
            (memory.typed_text(query), encoded(document), kind, time),
        )


def every(log: Log) -> list[Curation]:
    """All curations, the newest first."""
    rows = log.rows("SELECT typed, key, kind, time FROM pins ORDER BY time DESC, typed, key")
    return [Curation(typed, decoded(key), kind, time) for typed, key, kind, time in rows]


def of(log: Log, query: str) -> Curations:
    """The curations for a query."""
    rows = log.rows("SELECT key, kind FROM pins WHERE typed = ? ORDER BY time DESC, key", (memory.typed_text(query),))
    return Curations(
        tuple(decoded(key) for key, kind in rows if kind == "pinned"),
        frozenset(decoded(key) for key, kind in rows if kind == "hidden"),
    )
