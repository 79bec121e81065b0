"""Memory, counts, pinned and hidden results of files that were renamed or moved.

The index finds out which files moved (`index.moves`); here the log takes over their new paths. The parts of a mailbox
move with it. Where the new path was shown in a list before, choices and curations go to it, and older lists keep the
old path.
"""

from collections.abc import Iterable

from foltr.node.learning import memory
from foltr.node.learning.log import Log, decoded, encoded


def followed_paths(log: Log) -> list[str]:
    """Paths of the files that choices or curations name."""
    rows = log.rows(
        "SELECT d.key FROM documents d WHERE d.key IS NOT NULL AND d.id IN (SELECT document FROM choices) "
        "UNION SELECT key FROM pins"
    )
    return sorted({memory.split_key(decoded(key))[0] for (key,) in rows})


def follow(log: Log, moves: Iterable[tuple[str, str]]) -> None:
    """Takes over the new paths of moved files, given as (old, new)."""
    with log.changing_choices() as connection:
        for old, new in moves:
            for table in ("documents", "pins"):
                keys = connection.execute(
                    f"SELECT DISTINCT key FROM {table} WHERE key = ? OR (key >= ? AND key < ?)",  # noqa: S608 - names
                    (encoded(old), encoded(old) + b"\0", encoded(old) + b"\1"),
                ).fetchall()
                for (key,) in keys:
                    target = encoded(new) + key[len(encoded(old)) :]
                    if table == "pins":
                        connection.execute("UPDATE OR REPLACE pins SET key = ? WHERE key = ?", (target, key))
                    elif connection.execute("SELECT 1 FROM documents WHERE key = ?", (target,)).fetchone() is None:
                        connection.execute("UPDATE documents SET key = ? WHERE key = ?", (target, key))
                    else:
                        connection.execute(
                            "UPDATE choices SET document = (SELECT id FROM documents WHERE key = ?) "
                            "WHERE document = (SELECT id FROM documents WHERE key = ?)",
                            (target, key),
                        )
