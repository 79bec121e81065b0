"""The list of a query, with other spellings where few documents have its words.

A word of five letters or more that fewer than FEW documents have may be a typing error. Then documents with the
nearest known word follow, below every document that has the words as typed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from foltr.node.search import spelling
from foltr.node.search.conditions import has_terms
from foltr.node.search.query import Clause, Query, to_text
from foltr.node.search.ranking import TOP_K, Context, Ranking, rank
from foltr.node.search.reader import Reader
from foltr.text import analysis
from foltr.text.fields import FIELDS
from foltr.types import Array

FEW = 3
_MAX_RESPELT = 50  # words of a query that may be typing errors: nearest words are looked for in the whole vocabulary
_LOOSE = ((3, 1), (6, 2))  # letters, edits: for a suggestion when nothing at all is found


class Rare(NamedTuple):
    """A word of the query that few documents have."""

    text: str
    document_frequency: int
    words: Array  # [m] every word that is an occurrence


def rank_with_spelling(reader: Reader, query: Query, context: Context) -> Ranking:
    ranking = rank(reader, query, context)
    if all(term.document_frequency >= FEW for term in ranking.asked.terms):
        return ranking
    rare = _rare_words(reader, query)
    if not rare:
        return ranking
    exact = _rows_with(reader, ranking, rare)
    if len(exact) >= FEW:
        return ranking
    replaced = {one.text: near for one in rare if (near := _replacement(reader, one, spelling.max_edits(one.text)))}
    if not replaced:
        return ranking if ranking.documents else ranking._replace(suggestion=_suggestion(reader, query, rare))
    corrected = _corrected(query, replaced)
    plain = context._replace(trusted=None, exploration=False)
    return _below(_rows(ranking, exact), rank(reader, corrected, plain), to_text(corrected).strip())


def _rare_words(reader: Reader, query: Query) -> list[Rare]:
    """Plain words of the query, as typed, that fewer than FEW documents have; a beginning counts with all its words."""
    clauses = [clause for group in query.groups for clause in group if clause.plain]
    unfinished = len(clauses) - 1 if query.prefix else -1
    tokens = [(token, place == unfinished) for place, one in enumerate(clauses) for token in analysis.tokens(one.text)]
    found = []
    for token, prefix in tokens[:_MAX_RESPELT]:
        words = analysis.words_of(token)
        terms = reader.store.query_text(token, prefix=prefix).terms if len(words) == 1 else ()
        if len(terms) == 1 and terms[0].document_frequency < FEW:
            found.append(Rare(words[0], terms[0].document_frequency, terms[0].words))
    return found


def _rows_with(reader: Reader, ranking: Ranking, rare: list[Rare]) -> list[int]:
    """Rows of a list that have all these words as they were typed."""
    documents = ranking.documents
    if not documents or any(one.document_frequency == 0 for one in rare):
        return []
    wanted = [one.words for one in rare]
    has_all = [
        has_terms(tokens, row, wanted)
        for tokens in reader.blocks([one.id for one in documents])
        for row in range(len(tokens.offsets) // len(FIELDS))
    ]
    return [row for row, found in enumerate(has_all) if found]


def _replacement(reader: Reader, rare: Rare, edits: int) -> str | None:
    """The nearest word that more documents have; a word that some document has is hardly two errors from another."""
    edits = min(edits, 1) if rare.document_frequency else edits
    near = spelling.nearest(rare.text, reader.vocabulary(), edits=edits)
    return next((one.word for one in near if one.document_frequency > rare.document_frequency), None)


def _suggestion(reader: Reader, query: Query, rare: list[Rare]) -> str | None:
    replaced = {}
    for one in rare:
        edits = max((edits for letters, edits in _LOOSE if len(one.text) >= letters), default=0)
        near = _replacement(reader, one, edits)
        if near:
            replaced[one.text] = near
    return to_text(_corrected(query, replaced)).strip() if replaced else None


def _corrected(query: Query, replaced: Mapping[str, str]) -> Query:
    groups = tuple(tuple(_respelt(clause, replaced) for clause in group) for group in query.groups)
    return Query(groups, prefix=False)


def _respelt(clause: Clause, replaced: Mapping[str, str]) -> Clause:
    if not clause.plain:
        return clause
    tokens = analysis.tokens(clause.text)
    known = [analysis.words_of(token) for token in tokens]
    if not any(len(words) == 1 and words[0] in replaced for words in known):
        return clause
    texts = [
        replaced.get(words[0], token) if len(words) == 1 else token for token, words in zip(tokens, known, strict=True)
    ]
    return clause._replace(text=" ".join(texts))


def _rows(ranking: Ranking, rows: list[int]) -> Ranking:
    return ranking._replace(
        documents=[ranking.documents[row] for row in rows],
        scores=ranking.scores[rows],
        raw=ranking.raw[rows],
        scaled=ranking.scaled[rows],
        propensities=ranking.propensities[rows],
        teams=None,
    )


def _below(exact: Ranking, other: Ranking, suggestion: str) -> Ranking:
    """Documents with the words as typed, then those of another spelling."""
    known = {one.id for one in exact.documents}
    rest = _rows(other, [row for row, one in enumerate(other.documents) if one.id not in known][:TOP_K])
    return rest._replace(
        documents=exact.documents + rest.documents,
        scores=np.concatenate([exact.scores, rest.scores]),
        raw=np.concatenate([exact.raw, rest.raw]),
        scaled=np.concatenate([exact.scaled, rest.scaled]),
        propensities=np.ones(len(exact.documents) + len(rest.documents)),
        remembered=exact.remembered | rest.remembered,
        respelt=frozenset(one.id for one in rest.documents),
        suggestion=suggestion,
    )
