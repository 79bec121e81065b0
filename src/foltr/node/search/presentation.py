"""Rows of a list as people see them (title, passage, reason), and the preview of a row's text.

A reason is in words: at most one about the text of a document, and one about what was opened before.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from foltr.node.index.store import MAX_WORDS, Document, Store
from foltr.node.learning.memory import Remembered
from foltr.node.search.query import Query, parse
from foltr.node.search.ranking import NAMES, Ranking, RankingPage, is_there
from foltr.node.search.reader import Reader
from foltr.node.search.results import Row
from foltr.node.search.snippets import (
    Matcher,
    Snippet,
    Wanted,
    best_snippet,
    highlighted,
    matcher,
    printable,
    text_before_match,
)
from foltr.text import analysis
from foltr.text.analysis import TextAnalysis

_TITLE = 200  # characters
_COUNTS = ("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times")
_OFTEN = 1.0  # a folder is used often where its next opening is twice as likely as its size alone says
_PREVIEW = 20_000  # characters
_LINE = 2_000  # characters of one line of a preview
_INDENTATION = 40
_WITH_LINES, _OTHER_LINES = ("text", "markdown", "code"), (".gz", ".ipynb", ".xml", ".svg", ".fodt")


class Preview(NamedTuple):
    """The beginning of a document's text, line by line, with the words of a query marked."""

    lines: tuple[Snippet, ...]
    complete: bool  # nothing was cut off


class PastChoice(NamedTuple):
    """A choice that placed a document."""

    query: str  # as it was typed then, printable
    times: int


def rows(reader: Reader, query: Query, ranking: Ranking, page: RankingPage, first: int) -> tuple[Row, ...]:
    """The rows of a page whose first rank is `first`."""
    words = words_to_mark(reader.store, query, ranking)
    cut = reader.cut([document.id for document in page.documents])
    plain = (_row(reader, ranking, page, words, place, first + place) for place in range(len(page.documents)))
    return tuple(row._replace(cut=True) if row.id in cut else row for row in plain)


def words_to_mark(store: Store, query: Query, ranking: Ranking) -> Matcher:
    """The words of a query, and of its other spelling, with their inverse document frequency as weight."""
    documents = max(1, store.collection().documents)
    weight = {term.text: math.log(1 + documents / (term.document_frequency + 0.5)) for term in ranking.asked.terms}
    wanted = list(_wanted(query, store.analysis, weight))
    if ranking.suggestion and ranking.respelt:
        wanted += _wanted(parse(ranking.suggestion + " "), store.analysis, weight)
    language = store.analysis
    return matcher(wanted, stem=lambda word: analysis.stem(analysis.fold(word), language), fold=analysis.fold)


def _wanted(query: Query, language: TextAnalysis, weight: dict[str, float]) -> Sequence[Wanted]:
    text = " ".join(clause.text for group in query.positive for clause in group)
    words = dict.fromkeys(analysis.query_words(text, language, prefix=query.prefix)[:MAX_WORDS])
    return [
        Wanted(
            word.stems,
            word.text if word.prefix else "",
            weight.get(word.text if word.prefix else word.stems[0], 1.0),
        )
        for word in words
    ]


def _row(reader: Reader, ranking: Ranking, page: RankingPage, words: Matcher, place: int, rank: int) -> Row:
    document = page.documents[place]
    remembered = ranking.remembered.get(document.id)
    title = highlighted(_title(document), words)
    return Row(
        id=document.id,
        rank=rank,
        title=title.text,
        path=document.path,
        part=document.part,
        kind=document.kind,
        date=document.date,
        snippet=best_snippet(reader.text(document.id), words),
        title_highlights=title.highlights,
        reason=reason(
            dict(zip(NAMES, page.raw[place].tolist(), strict=True)),
            terms=len(ranking.asked.terms),
            choice=_past_choice(remembered) if remembered else None,
            corrected=document.id in ranking.respelt,
        ),
        score=float(page.scores[place]),
        remembered=remembered is not None,
        away=bool(ranking.missing) and not is_there(document),
    )


def _title(document: Document) -> str:
    """A printable title; the file's name where a document has none."""
    return printable(document.title)[:_TITLE] or printable(document.path.rpartition("/")[2])[:_TITLE] or "?"


def _past_choice(remembered: Remembered) -> PastChoice:
    return PastChoice(printable(remembered.typed), times_used(remembered))


def times_used(remembered: Remembered) -> int:
    """The decayed count of uses as a whole number, as it is shown."""
    return max(1, round(remembered.use_count))


def preview(store: Store, query: Query, ranking: Ranking, document: int) -> Preview:
    """The preview of a document of the ranking; empty if the document is gone."""
    text, words = store.text(document), words_to_mark(store, query, ranking)
    lines = map(_printable_line, text[:_PREVIEW].splitlines())
    return Preview(tuple(highlighted(line, words) for line in lines), len(text) <= _PREVIEW)


def page_and_line(store: Store, query: Query, ranking: Ranking, document: Document) -> tuple[int | None, int | None]:
    """The page of a PDF, or the line of a text file, with the passage that shows the query best; None: unknown.

    An index of before has no marks between pages. The text of a notebook or of a packed file has other lines than it.
    """
    lines = document.kind in _WITH_LINES and not document.path.lower().endswith(_OTHER_LINES)
    if document.kind != "pdf" and not lines:
        return None, None
    text = store.text(document.id)
    before = text_before_match(text, words_to_mark(store, query, ranking))
    if before is None:
        return None, None
    if lines:
        return None, before.count("\n") + 1
    return (before.count("\f") + 1 if "\f" in text else None), None


def _printable_line(line: str) -> str:
    """A line with its indentation, which carries meaning in code and lists."""
    stripped = line[:_LINE].lstrip(" \t")
    indentation = len(line[:_LINE].expandtabs(4)) - len(stripped.expandtabs(4))
    return " " * min(_INDENTATION, indentation) + printable(stripped)


def reason(
    features: Mapping[str, float], *, terms: int, choice: PastChoice | None = None, corrected: bool = False
) -> str:
    """At most two reasons, from the raw features of a document and the memory of choices."""
    text = "similar spelling" if corrected else _text_reason(features, terms)
    history = _memory_reason(choice) if choice else _history_reason(features)
    reasons = (history, text) if choice else (text, history)
    return "; ".join(filter(None, reasons))


def _memory_reason(choice: PastChoice) -> str:
    return f"you opened this {times(choice.times)} for '{choice.query}'"


def times(count: int) -> str:
    return _COUNTS[count] if 0 <= count < len(_COUNTS) else f"{count} times"


def _history_reason(features: Mapping[str, float]) -> str:
    if features.get("opened", 0.0) > 0:
        return "you opened this before"
    if features.get("folder", 0.0) >= _OFTEN:
        return "in a folder you use often"
    return ""


def _text_reason(features: Mapping[str, float], terms: int) -> str:
    if not terms:
        return "recent"
    whole, every = ("the word", "is") if terms == 1 else ("all words", "are")
    checks = (
        ("name_exact", 1.0, "the name is what you typed"),
        ("title_exact", 1.0, "the title is what you typed"),
        ("cov_name", 1.0, f"{whole} {every} in the name"),
        ("phrase_title", 1.0, "the words stand together in the title"),
        ("cov_title", 1.0, f"{whole} {every} in the title"),
        ("prefix_name", 1.0, "the name begins with what you typed"),
        ("prefix_title", 1.0, "the title begins with what you typed"),
        ("cov_path", 1.0, f"{whole} {every} in the path"),
        ("phrase_body", 1.0, "the words stand together in the text"),
        ("cov_body", 1.0, f"{whole} {every} in the text"),
        ("idfcov_any", 1.0, "all words, in several fields"),
    )
    for name, least, words in checks:
        if features.get(name, 0.0) >= least - 1e-9 and (terms > 1 or not name.startswith("phrase")):
            return words
    return "some of the words"
