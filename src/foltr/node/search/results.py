"""What a search gives: plain records, the same bytes for the same list."""

import hashlib
from typing import Any, NamedTuple

from foltr.node.search.snippets import Snippet


class Contribution(NamedTuple):
    """What one feature adds to a document's score."""

    feature: str
    value: float  # raw, before scaling
    scaled: float
    weight: float
    points: float  # weight x scaled


class Row(NamedTuple):
    id: int  # number of the document; the only way to name it from outside
    rank: int  # from 1
    title: str  # printable
    path: str  # as the file system has it: escape it before printing
    part: str  # of a file with several documents, such as a message of an mbox
    kind: str
    date: float | None  # seconds since 1970
    snippet: Snippet
    title_highlights: tuple[tuple[int, int], ...]
    reason: str
    score: float
    remembered: bool  # placed by the memory of choices


class Results(NamedTuple):
    """One list. `search_id` is a digest of the list, so that equal lists are equal bytes."""

    search_id: str
    query: str
    rows: tuple[Row, ...]
    offset: int
    total: int  # documents that can be paged through
    suggestion: str | None  # nearest spelling when nothing or little was found
    corrected: bool  # the rows match words that are spelt nearly as those of the query
    model_version: int


def digest(query: str, documents: list[int], scores: list[float], model_version: int) -> str:
    text = "\0".join([query, *map(str, documents), *map(repr, scores), str(model_version)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def to_plain(results: Results) -> dict[str, Any]:
    """As JSON has it; text that is no Unicode, such as a broken file name, is escaped."""
    rows = [_plain_row(row) for row in results.rows]
    return {**results._asdict(), "query": _unicode(results.query), "rows": rows}


def _plain_row(row: Row) -> dict[str, Any]:
    shown = {**row._asdict(), "path": _unicode(row.path), "part": _unicode(row.part)}
    shown["snippet"] = {"text": row.snippet.text, "highlights": [list(one) for one in row.snippet.highlights]}
    shown["title_highlights"] = [list(one) for one in row.title_highlights]
    return shown


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
