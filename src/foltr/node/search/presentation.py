"""Rows of a list as people see them: title, passage and reason."""

import math
from collections.abc import Sequence
from pathlib import PurePath

from foltr.node.index.store import MAX_WORDS, Document, Store
from foltr.node.learning.memory import Remembered
from foltr.node.search.query import Query, parse
from foltr.node.search.ranking import NAMES, Page, Ranking
from foltr.node.search.reader import Reader
from foltr.node.search.reasons import Opened, reason
from foltr.node.search.results import Row
from foltr.node.search.snippets import Matcher, Wanted, best_snippet, highlighted, matcher, printable
from foltr.text import analysis
from foltr.text.analysis import TextAnalysis

_TITLE = 200  # characters


def rows(reader: Reader, query: Query, ranking: Ranking, page: Page, first: int) -> tuple[Row, ...]:
    """The rows of a page whose first rank is `first`."""
    words = words_to_mark(reader.store, query, ranking)
    return tuple(_row(reader, ranking, page, words, place, first + place) for place in range(len(page.documents)))


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


def _row(reader: Reader, ranking: Ranking, page: Page, words: Matcher, place: int, rank: int) -> Row:
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
            opened=_opened(remembered) if remembered else None,
            corrected=document.id in ranking.respelt,
        ),
        score=float(page.scores[place]),
        remembered=remembered is not None,
    )


def _title(document: Document) -> str:
    """A printable title; the file's name where a document has none."""
    return printable(document.title)[:_TITLE] or printable(PurePath(document.path).name)[:_TITLE] or "?"


def _opened(remembered: Remembered) -> Opened:
    return Opened(printable(remembered.typed), max(1, round(remembered.use_count)))
