"""The beginning of a document's text, line by line, with the words of a query marked."""

from typing import NamedTuple

from foltr.node.search.listing import Listed
from foltr.node.search.presentation import words_to_mark
from foltr.node.search.snippets import Snippet, highlighted, printable

_CHARACTERS = 20_000
_LINE = 2_000  # characters of one line
_INDENTATION = 40


class Preview(NamedTuple):
    lines: tuple[Snippet, ...]
    complete: bool  # nothing was cut off


def preview(found: Listed, document: int) -> Preview:
    """Of a document of a list; empty if it is gone."""
    store = found.reader.store
    text, words = store.text(document), words_to_mark(store, found.query, found.ranking)
    lines = map(_printable_line, text[:_CHARACTERS].splitlines())
    return Preview(tuple(highlighted(line, words) for line in lines), len(text) <= _CHARACTERS)


def _printable_line(line: str) -> str:
    """Indentation stays, which tells something in code and lists."""
    stripped = line[:_LINE].lstrip(" \t")
    indentation = len(line[:_LINE].expandtabs(4)) - len(stripped.expandtabs(4))
    return " " * min(_INDENTATION, indentation) + printable(stripped)
