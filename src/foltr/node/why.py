"""Why a file is, or is not, among the results: its state and the reason, for any path."""

import os
from typing import NamedTuple

from foltr.node.index import files
from foltr.node.index.rules import Rules
from foltr.node.index.store import Store


class Why(NamedTuple):
    path: str
    state: str  # a state of files, or "outside" (of all roots), or "absent" (no such file)
    reason: str | None
    documents: int


def why(store: Store, rules: Rules, path: str) -> Why:
    """The state of a path. What the index says comes first, then what the next scan would say."""
    path = os.path.abspath(path)  # noqa: PTH100 - keeps links as they are
    root = rules.root_of(path)
    if root is None:
        roots = ", ".join(rules.roots) or "none"
        return Why(path, "outside", f"it is below none of the roots ({roots})", 0)
    refused = rules.root_verdict(root)
    if refused:
        return Why(path, "excluded", f"the root {root}: {refused}", 0)
    return _stored(store, path) or _above(store, path, root) or _in_root(store, path, root) or _expected(rules, path)


def _stored(store: Store, path: str) -> Why | None:
    row = _row(store, path)
    if row is None:
        return None
    number, is_folder, state, reason = row
    documents = store.connection.execute("SELECT count(*) FROM documents WHERE file = ?", (number,)).fetchone()[0]
    if not os.path.lexists(path):
        return Why(path, "absent", "it was deleted since the last scan; the next one removes it", documents)
    if is_folder and reason:
        reason = f"the whole folder, by {reason}" if state == "excluded" else reason
    return Why(path, state, reason, documents)


def _above(store: Store, path: str, root: str) -> Why | None:
    """A folder above the path that is one row for all that is below it."""
    folder = path.rpartition("/")[0]
    while len(folder) >= len(root.rstrip("/")) and folder:
        row = _row(store, folder)
        if row is not None and row[1]:
            return Why(path, row[2], f"it is in {folder}: {row[3]}", 0)
        folder = folder.rpartition("/")[0]
    return None


def _in_root(store: Store, path: str, root: str) -> Why | None:
    """A root that could not be scanned, such as one that is not mounted."""
    problem = files.root_problems(store.connection).get(root)
    return Why(path, "failed", f"the root {root}: {problem}", 0) if problem else None


def _expected(rules: Rules, path: str) -> Why:
    if not os.path.lexists(path):
        return Why(path, "absent", "there is no such file", 0)
    excluded = rules.verdict(path)
    if excluded:
        return Why(path, "excluded", excluded, 0)
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        return Why(path, "indexed", "a folder: ask for a file in it", 0)
    return Why(path, "waiting", "not seen yet; the next scan finds it", 0)


def _row(store: Store, path: str) -> tuple[int, int, str, str | None] | None:
    folder, _, name = os.fsencode(path).rpartition(b"/")
    found: tuple[int, int, str, str | None] | None = store.connection.execute(
        "SELECT f.id, f.is_folder, f.state, f.reason FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE o.path = ? AND f.name = ?",
        (folder or b"/", name),
    ).fetchone()
    return found
