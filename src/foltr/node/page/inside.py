"""What the page asks of a node beyond its public interface: the one place that reaches into it.

Everything here takes the node's lock, since answers come from several threads.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from foltr.errors import InputError
from foltr.node import log_files, opening, pins, presentation, ranking, shown
from foltr.node.log import Displayed
from foltr.node.node import Node
from foltr.node.pins import Kind, Pin
from foltr.node.results import Results
from foltr.node.settings import Settings
from foltr.node.snippets import Snippet, highlighted, printable
from foltr.node.store import Document, joined

PREVIEW = 20_000  # characters
_LINE = 2_000  # characters of one line of a preview


class Asked(NamedTuple):
    """A search as the page sends it; enough to make the same list again after a restart."""

    text: str
    newest_first: bool = False
    limit: int = 10


class Preview(NamedTuple):
    document: Document
    lines: tuple[Snippet, ...]
    complete: bool  # nothing was cut off


class Opening(NamedTuple):
    """A choice from a list."""

    time: float
    rank: int  # from 1
    version: int  # of the weights that ranked


class Problem(NamedTuple):
    path: str
    state: str
    reason: str


def search(node: Node, asked: Asked) -> Results:
    """A list by relevance, or the scored candidates with the newest first."""
    return node.search(asked.text, asked.limit, newest_first=asked.newest_first)


def known_list(node: Node, search_id: str, asked: Asked) -> Results:
    """A list by its id; after a restart, or when it is too old, it is made again from what was asked."""
    with node._lock:
        try:
            return node._lists.get(search_id).results
        except InputError:
            return search(node, asked)


def listed(node: Node, asked: Asked) -> list[Document]:
    """All documents of a list, at most a thousand; it is computed again, since lists that were shown are held short."""
    with node._lock:
        found = node.listed(asked.text, newest_first=asked.newest_first)
        return [] if found is None else found.documents()


def displayed(node: Node, search_id: str) -> list[Document]:
    """The documents of the rows of a list."""
    with node._lock:
        return node._lists.get(search_id).page.documents


def displayed_document(node: Node, search_id: str, number: int) -> Document:
    """A document by its number; only one that a list shows."""
    with node._lock:
        known = node._lists.get(search_id)
        return known.page.documents[shown.place_of(known, number)]


def preview(node: Node, search_id: str, asked: Asked, number: int) -> Preview:
    """The beginning of a document's text, line by line, with the query's words marked."""
    with node._lock:
        document, found = displayed_document(node, search_id, number), node.listed(asked.text)
        if found is None:
            raise InputError("there is no index any more; index again")
        store = found.reader.store
        text, words = store.text(number), presentation.words_to_mark(store, found.query, found.ranking)
        lines = (_printable_line(line) for line in text[:PREVIEW].splitlines())
        return Preview(document, tuple(highlighted(line, words) for line in lines), len(text) <= PREVIEW)


def _printable_line(line: str) -> str:
    """Indentation stays, which tells something in code and lists."""
    stripped = line[:_LINE].lstrip(" \t")
    return " " * min(40, len(line[:_LINE].expandtabs(4)) - len(stripped.expandtabs(4))) + printable(stripped)


def state(node: Node, search_id: str, number: int, kind: Kind | None) -> None:
    """Pins or hides a document of a list for its query; None takes either back."""
    with node._lock:
        query = node._lists.get(search_id).results.query
        key = ranking.key_of(displayed_document(node, search_id, number))
        if kind is None:
            pins.remove(node._log, query, key)
        else:
            pins.put(node._log, query, key, kind)


def statements(node: Node) -> list[Pin]:
    """Everything that is pinned or hidden."""
    return pins.every(node._log)


def take_back_statement(node: Node, query: str, document: str) -> bool:
    return pins.remove(node._log, query, document)


def history(node: Node, text: str, limit: int, before: int | None) -> list[Displayed]:
    """The newest lists whose query has a text in it."""
    rows = node._log.rows(
        "SELECT i.id FROM impressions i LEFT JOIN queries q ON q.impression = i.id "
        "WHERE i.id < ? AND (? = '' OR instr(lower(q.text), lower(?)) > 0) ORDER BY i.id DESC LIMIT ?",
        (before if before is not None else 2**62, text, text, limit),
    )
    return [node._log.displayed(number) for (number,) in rows]


def history_lines(node: Node) -> Iterator[str]:
    """The whole log as JSON lines."""
    return (f"{line}\n" for line in log_files.export_lines(node._log))


def openings(node: Node) -> list[Opening]:
    """For every list the best place that was opened and not taken back, in the order of time."""
    rows = node._log.rows(
        "SELECT i.time, min(c.position), i.model_version FROM impressions i JOIN choices c ON c.impression = i.id "
        "WHERE c.withdrawn = 0 GROUP BY i.id ORDER BY i.id"
    )
    return [Opening(time, position + 1, version) for time, position, version in rows]


def reasons(node: Node) -> list[tuple[str, str, int]]:
    """(state, reason, files) of files that are not simply indexed, the most frequent first."""
    return [(state, reason or "", int(count)) for state, reason, count in _rows(
        node,
        "SELECT state, reason, count(*) FROM files WHERE state != 'waiting' AND (state != 'indexed' OR reason IS NOT "
        "NULL) GROUP BY state, reason ORDER BY count(*) DESC, state, reason LIMIT 200",
    )]  # fmt: skip


def waiting(node: Node) -> int:
    """Files that are known and not read yet."""
    found = _rows(node, "SELECT count(*) FROM files WHERE state = 'waiting'")
    return int(found[0][0]) if found else 0


def problems(node: Node, limit: int = 200) -> list[Problem]:
    """Files that could not be read, and those that were skipped."""
    rows = _rows(
        node,
        "SELECT o.path, f.name, f.state, f.reason FROM files f JOIN folders o ON o.id = f.folder "
        "WHERE f.state IN ('failed', 'skipped') ORDER BY f.state, o.path, f.name LIMIT ?",
        limit,
    )
    return [Problem(joined(folder, name), state, reason or "") for folder, name, state, reason in rows]


def _rows(node: Node, statement: str, *values: int) -> list[tuple]:  # type: ignore[type-arg]
    with node._lock:
        reader = node._open_reader()
        return [] if reader is None else reader.store.connection.execute(statement, values).fetchall()


def remove(node: Node, root: str) -> None:
    """Stops searching a folder, and erases what the node has of it, pins included."""
    node.remove(root)


def exclude(node: Node, rules: list[str]) -> None:
    """Adds exclusions, and erases what the node has of what they fit, pins included."""
    node.exclude(rules)


def delete_everything_searched(node: Node) -> int:
    """Deletes all lists, the memory that rests on them, and pins, which hold texts of searches too."""
    with node._lock:
        pins.erase_all(node._log)
        return node.delete_history()


def save(node: Node, settings: Settings) -> None:
    """Stores settings; what they do not include any more is erased from the index by `Node.remove` and `exclude`."""
    with node._lock:
        node._save(settings)


def show_folder(path: Path) -> str | None:
    """Opens the folder of a file with the program of the desktop."""
    opening._launch(path.parent)
    return None


def kept_files(node: Node) -> list[tuple[Path, int]]:
    """The files of the node with their sizes."""
    folders = (node.places.config, node.places.data, node.places.cache)
    sizes = ((file, _size(file)) for folder in folders for file in sorted(folder.rglob("*")) if file.is_file())
    return [(file, size) for file, size in sizes if size is not None]


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:  # a file of the index that was replaced meanwhile
        return None


def forget(node: Node) -> None:
    """Erases everything that the node has."""
    node.forget()
