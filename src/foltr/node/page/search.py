"""A list as the templates show it: rows with marked words, chosen filters, filters to choose from with counts.

A filter is a clause of the query language and stands in the query itself, before its words: it can be read, typed,
bookmarked and removed, and the last word stays a beginning that goes on.
"""

import datetime
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from email.utils import parseaddr
from typing import Annotated, NamedTuple

from fastapi import Query as Parameter
from markupsafe import Markup, escape

from foltr.errors import InputError
from foltr.node.index import files
from foltr.node.index.store import Document
from foltr.node.node import Node
from foltr.node.search import query as language
from foltr.node.search.query import Clause, Query
from foltr.node.search.results import Results, Row, counted
from foltr.node.search.snippets import escaped, printable

MAX_CHARACTERS = language.MAX_CHARACTERS
ROWS, MOST_ROWS = 10, 100
Integer = Annotated[int, Parameter(ge=-(2**63), lt=2**63)]  # of an address: what SQLite can compare with
_CHOICES = 6  # filters of a kind to choose from
_DAYS = (("today", 0), ("last 7 days", 7), ("last 30 days", 30), ("last year", 365))


class Asked(NamedTuple):
    """A search as the page sends it; enough to make the same list again after a restart."""

    text: str
    newest_first: bool = False
    limit: int = ROWS


class RowView(NamedTuple):
    id: int
    rank: int
    title: Markup
    where: str  # path, or sender of a mail
    copied_path: str  # for other programs; "" for one that they may misread
    day: str  # ISO date
    kind: str
    snippet: Markup
    reason: str
    remembered: bool
    pinned: bool
    away: bool  # its disk is not there now
    cut: bool  # only the beginning of its text is searched


class Filter(NamedTuple):
    name: str
    query: str  # with the filter, or without it
    documents: int | None = None  # that it leaves


class FilterGroup(NamedTuple):
    name: str
    choices: list[Filter]


class ListView(NamedTuple):
    asked: Asked
    results: Results
    rows: list[RowView]
    chosen: list[Filter]  # filters in the query; their query is the one without them
    dropped: list[Filter]  # for an empty list: queries without one of the filters that find something
    summary: str
    more: int | None  # rows to ask for next
    waiting: int = 0  # for an empty list: files that are not read yet
    no_folders: bool = False  # nothing was chosen to be searched


def asked_of(text: str, sort: str = "", rows: int = ROWS) -> Asked:
    """A search from parameters that anybody may have written."""
    return Asked(clean(text), sort == "date", min(max(rows, 1), MOST_ROWS))


def number_of(text: str) -> int | None:
    """A whole number that a form carries; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def clean(text: str) -> str:
    """A query without what is no text, and no longer than queries are read."""
    return text[:MAX_CHARACTERS].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def search(node: Node, asked: Asked) -> Results:
    return node.search(asked.text, asked.limit, newest_first=asked.newest_first)


def known_list(node: Node, search_id: str, asked: Asked) -> Results:
    """A list by its id; after a restart, or when it is too old, it is made again from what was asked."""
    try:
        return node.known_list(search_id).results
    except InputError:
        return search(node, asked)


def list_view(node: Node, asked: Asked) -> ListView:
    return view_of(node, asked, search(node, asked))


def view_of(node: Node, asked: Asked, results: Results) -> ListView:
    documents = node.known_list(results).page.documents if results.rows else []
    rows = [_row(row, document) for row, document in zip(results.rows, documents, strict=True)]
    query = language.parse(asked.text)
    chosen = [Filter(_name(group), without(query, group)) for group in query.conditions]
    few = chosen if not rows and len(chosen) <= _CHOICES else []  # each is a search of its own
    dropped = [one for one in few if search(node, Asked(one.query, limit=1)).rows]
    shown = len(rows)
    more = min(MOST_ROWS, shown + 10) if shown < min(results.total, MOST_ROWS) else None
    waiting = 0 if rows else _waiting(node)
    summary, no_folders = _count(results, asked), not node.settings.roots
    return ListView(asked, results, rows, chosen, dropped, summary, more, waiting, no_folders)


def filters(node: Node, asked: Asked) -> list[FilterGroup]:
    """Filters to choose from, with the number of documents in the list that each leaves."""
    documents, query = _every_document(node, asked), language.parse(asked.text)
    fields = {clause.field for group in query.conditions for clause in group}
    groups = [
        ("Type", "type", _types(documents)),
        ("Folder", "path", _folders(documents)),
        ("Time", "after", _times(documents)),
        ("Person", "from", _people(documents)),
    ]
    return [
        FilterGroup(name, [Filter(text, _with(query, clause), count) for text, clause, count in choices])
        for name, field, choices in groups
        if choices and field not in fields
    ]


def _every_document(node: Node, asked: Asked) -> list[Document]:
    """All documents of a list, at most a thousand. The node still has its ranking (`RecentRankings`)."""
    with node.reading():
        found = node.listed(asked.text, newest_first=asked.newest_first)
        return [] if found is None else found.documents()


def _waiting(node: Node) -> int:
    with node.reading() as reader:
        return 0 if reader is None else files.count_waiting(reader.store.connection)


def marked(text: str, highlights: Iterable[tuple[int, int]]) -> Markup:
    """Text as HTML with ranges marked: escaped piece by piece, so that no offset falls into an entity."""
    parts: list[str] = []
    last = 0
    for start, end in highlights:
        parts += [escape(text[last:start]), "<mark>", escape(text[start:end]), "</mark>"]
        last = end
    parts.append(escape(text[last:]))
    return Markup("".join(parts))  # noqa: S704 - every piece is escaped; Markup.join would look at each again


def without(query: Query, group: tuple[Clause, ...]) -> str:
    return language.to_text(query._replace(groups=tuple(one for one in query.groups if one is not group)))


def short_path(path: str) -> str:
    """A path as it is shown: ~ for the home folder, nothing that is not printed as itself."""
    home = os.path.expanduser("~")  # noqa: PTH111 - for every row of every keystroke
    shown = "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path
    return escaped(os.fsencode(shown).decode("utf-8", "backslashreplace"))


def place(path: str, part: str) -> str:
    """Where a document is: a file, or a mail in a mailbox."""
    return short_path(path) + (f" #{escaped(part)}" if part else "")


def breakable(path: str) -> Markup:
    """A path that may be broken after every slash."""
    return Markup("/<wbr>").join(path.split("/"))


def day(seconds: float | None) -> str:
    if not seconds:
        return ""
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
    except (OverflowError, OSError, ValueError):
        return ""


def moment(seconds: float) -> str:
    """Day and time in this zone; nothing for a date that no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return ""


def _row(row: Row, document: Document) -> RowView:
    where = place(row.path, row.part)
    sender = printable(document.sender)[:200]
    return RowView(
        id=row.id,
        rank=row.rank,
        title=marked(row.title, row.title_highlights),
        where=f"{sender} in {where}" if sender else where,
        copied_path=row.path if row.path.isprintable() else "",
        day=day(row.date),
        kind=row.kind,
        snippet=marked(row.snippet.text, row.snippet.highlights),
        reason=row.reason,
        remembered=row.remembered,
        pinned=row.reason.startswith("pinned by you"),
        away=row.away,
        cut=row.cut,
    )


def _count(results: Results, asked: Asked) -> str:
    if not asked.text.strip():
        return "Recent documents" if results.rows else "No documents yet"
    if not results.rows:
        return "Nothing found"
    if asked.newest_first:
        return f"The {results.total:,} result{'s' * (results.total != 1)} that fit best, newest first"
    words = counted(results.counts)
    return words[0].upper() + words[1:]


def _name(group: Sequence[Clause]) -> str:
    return language.to_text(Query((tuple(group),), prefix=False)).strip()


def _with(query: Query, clause: Clause) -> str:
    return language.to_text(query._replace(groups=((clause,), *query.groups)))


Choices = list[tuple[str, Clause, int]]


def _types(documents: Sequence[Document]) -> Choices:
    counts = Counter(one.kind for one in documents if one.kind)
    return [(kind, Clause("type", kind), count) for kind, count in counts.most_common(_CHOICES)] * (len(counts) > 1)


def _folders(documents: Sequence[Document]) -> Choices:
    counts = Counter(map(_folder, documents))
    found = [(*one, count) for one, count in counts.most_common(_CHOICES) if _is_text(one[0])]
    return [(name, Clause("path", folder, quoted=True), count) for folder, name, count in found] * (len(counts) > 1)


def _folder(document: Document) -> tuple[str, str]:
    """The folder of a document just below its root, and a short name for it."""
    root = document.root.rstrip("/")
    inner = document.path[len(root) + 1 :].split("/") if document.path.startswith(root + "/") else []
    folder = f"{root}/{inner[0]}/" if len(inner) > 1 else f"{root}/"
    return folder, printable("/".join([*root.rpartition("/")[2:], *inner[: len(inner) > 1]]))


def _is_text(path: str) -> bool:
    """Whether a path can stand in quotes in a query, and is read back as itself."""
    return '"' not in path and path.isprintable() and path == " ".join(path.split()) == clean(path)


def _times(documents: Sequence[Document]) -> Choices:
    today = datetime.datetime.fromtimestamp(time.time()).astimezone().date()
    found: Choices = []
    for name, days in _DAYS:
        first = today - datetime.timedelta(days=days)
        begin = datetime.datetime(first.year, first.month, first.day).astimezone().timestamp()
        count = sum(one.date >= begin for one in documents)
        if 0 < count < len(documents) and (not found or count > found[-1][2]):
            found.append((name, Clause("after", first.isoformat()), count))
    return found


def _people(documents: Sequence[Document]) -> Choices:
    counts = Counter(address for one in documents if one.sender and (address := _address(one.sender)))
    return [(name, Clause("from", name, quoted=True), count) for name, count in counts.most_common(_CHOICES)]


def _address(sender: str) -> str:
    """The address of a sender, or its whole text; nothing that could not stand in quotes."""
    found = printable(parseaddr(sender)[1] or sender)[:100]
    return "" if '"' in found else found
