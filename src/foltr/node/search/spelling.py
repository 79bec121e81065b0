"""Other spellings of a query where few documents have its words.

A word of five letters or more that fewer than FEW documents have may be a typing error. Then documents with the nearest
word of the index follow, below every document that has the words as typed. A word that more documents have, but far
more in another spelling, changes no list: the other spelling is suggested.

Nearest words are one edit away from five letters on, two from nine. An edit inserts, deletes or replaces a letter, or
exchanges two neighbours (Damerau, "A technique for computer detection and correction of spelling errors", 1964;
restricted to one edit a place, as optimal string alignment). Words at one edit are generated and looked up. Words at
two edits are searched among those with the same first letter, since typing errors are rare there, and with a third of
the word unchanged.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from foltr.node.search.conditions import has_terms
from foltr.node.search.query import Clause, Query, to_text
from foltr.node.search.ranking import TOP_K, Context, Ranking, join, rank, take
from foltr.node.search.reader import Reader
from foltr.text import analysis
from foltr.text.fields import FIELDS
from foltr.types import Array

FEW = 3
_SELDOM, _FAR_MORE = 500, 20  # one document in so many has it at most; another spelling occurs so many times as often
_REMEMBERED = 256  # seldom words
_MAX_RESPELT = 50  # words of a query that may be typing errors: nearest words are looked for in the whole vocabulary
_LOOSE = ((3, 1), (6, 2))  # letters, edits: for a suggestion when nothing at all is found
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_ONE_EDIT, _TWO_EDITS = 5, 9  # letters
MAX_WORDS = 20  # nearest words that stand for a misspelt one


class Vocabulary(NamedTuple):
    """Look-ups in the words of the index."""

    known: Callable[[Iterable[str]], dict[str, int]]  # those of the words that occur, with their document frequency
    similar: Callable[[str, tuple[int, int], tuple[str, ...]], Iterable[str]]
    # (beginning, shortest and longest, parts) -> words with this beginning that have one of the parts


class Near(NamedTuple):
    """A word of the index near a misspelt one."""

    word: str
    distance: int
    document_frequency: int


class Rare(NamedTuple):
    """A word of the query that few documents have."""

    text: str
    document_frequency: int
    words: Array  # [m] every word that is an occurrence


def rank_with_spelling(reader: Reader, query: Query, context: Context) -> Ranking:
    """The ranking of a query, followed by documents of the nearest spelling where few have its words."""
    ranking = rank(reader, query, context)
    fewest = min((term.document_frequency + term.names for term in ranking.asked.terms), default=FEW)
    if fewest >= FEW:
        seldom = fewest <= _seldom(reader)
        return ranking._replace(suggestion=_usual_spelling(reader, query)) if seldom else ranking
    rare = _rare_words(reader, query, FEW - 1)
    if not rare:
        return ranking
    exact = _rows_with(reader, ranking, rare)
    if len(exact) >= FEW:
        return ranking
    replaced = {word.text: near for word in rare if (near := _replacement(reader, word, max_edits(word.text)))}
    if not replaced:
        return ranking if ranking.documents else ranking._replace(suggestion=_suggestion(reader, query, rare))
    corrected = _corrected(query, replaced)
    plain = context._replace(trusted=None, exploration=False)
    return _below(take(ranking, exact), rank(reader, corrected, plain), to_text(corrected).strip())


def _seldom(reader: Reader) -> int:
    """Documents with a word that may still be a typing error of their authors."""
    return max(FEW, reader.store.collection().documents // _SELDOM)


def _usual_spelling(reader: Reader, query: Query) -> str | None:
    """The query in the usual spelling, where a word of it occurs but another spelling far more often ("vaccum")."""
    replaced = {}
    for word in _rare_words(reader, query, _seldom(reader)):
        near = _usual(reader, word)
        if near:
            replaced[word.text] = near
    if not replaced:
        return None
    corrected = _corrected(query, replaced)
    with_all = [reader.count_with_all_words(one, reader.asked(one)) or 0 for one in (query, corrected)]
    return to_text(corrected).strip() if with_all[1] > with_all[0] else None


def _usual(reader: Reader, word: Rare) -> str | None:
    """The usual spelling of a seldom word; remembered, since it is asked for again with every letter that follows."""
    key, known = (reader.store.generation, word.text), reader.usual_spellings
    if key not in known:
        if len(known) >= _REMEMBERED:
            known.clear()
        near = _replacement(reader, word, min(max_edits(word.text), 1), times=_FAR_MORE)
        language = reader.store.analysis
        same = near is None or analysis.stem(near, language) == analysis.stem(word.text, language)
        known[key] = None if same else near
    return known[key]


def _rare_words(reader: Reader, query: Query, most: int) -> list[Rare]:
    """Plain words of the query, as typed, that at most so many documents have; a beginning counts with all its
    words."""
    clauses = [clause for group in query.groups for clause in group if clause.plain]
    unfinished = len(clauses) - 1 if query.prefix else -1
    tokens = [(token, place == unfinished) for place, one in enumerate(clauses) for token in analysis.tokens(one.text)]
    found = []
    for token, prefix in tokens[:_MAX_RESPELT]:
        words = analysis.words_of(token)
        terms = reader.store.query_text(token, prefix=prefix).terms if len(words) == 1 else ()
        frequency = terms[0].document_frequency + terms[0].names if len(terms) == 1 else most + 1
        if frequency <= most:
            found.append(Rare(words[0], frequency, terms[0].words))
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


def _replacement(reader: Reader, rare: Rare, edits: int, times: int = 1) -> str | None:
    """The nearest word that more documents have, and at least so many times as many. A word that occurs in the index is
    rarely a double typo, so that it is replaced by words at one edit only."""
    edits = min(edits, 1) if rare.document_frequency else edits
    words = Vocabulary(reader.known_words, reader.similar_words)
    near = nearest(rare.text, words, edits=edits)
    least = max(rare.document_frequency + 1, times * rare.document_frequency)
    return next((word.word for word in near if word.document_frequency >= least), None)


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


def _below(exact: Ranking, other: Ranking, suggestion: str) -> Ranking:
    """Documents with the words as typed, then those of the other spelling; such a list is not interleaved."""
    known = {document.id for document in exact.documents}
    rest = take(other, [row for row, document in enumerate(other.documents) if document.id not in known][:TOP_K])
    both = join(exact, rest)
    return both._replace(
        propensities=np.ones(len(both.documents)),
        teams=None,
        remembered=exact.remembered | rest.remembered,
        respelt=frozenset(document.id for document in rest.documents),
        suggestion=suggestion,
        missing=exact.missing + rest.missing,
    )


def max_edits(word: str) -> int:
    """The number of typing errors that a word of this length may have."""
    return 0 if len(word) < _ONE_EDIT else 1 if len(word) < _TWO_EDITS else 2


def nearest(word: str, vocabulary: Vocabulary, *, edits: int) -> list[Near]:
    """Known words within a number of edits: nearest first, then the more frequent, then by spelling."""
    found: dict[str, int] = {}
    if edits >= 1:
        found = dict.fromkeys(vocabulary.known(one_edit(word)), 1)
    if edits >= 2:
        third = len(word) // 3
        parts = word[:third], word[third : 2 * third], word[2 * third :]
        for other in vocabulary.similar(word[:1], (len(word) - 2, len(word) + 2), parts):
            if distance(word, other, limit=2) <= 2:
                found.setdefault(other, 2)
    found.pop(word, None)
    frequencies = vocabulary.known(found)
    every = [Near(other, edits_of, frequencies[other]) for other, edits_of in found.items() if frequencies.get(other)]
    return sorted(every, key=lambda one: (one.distance, -one.document_frequency, one.word))[:MAX_WORDS]


def one_edit(word: str) -> set[str]:
    """Every spelling at one edit over the letters of English, digits and those of the word itself."""
    letters = sorted(set(_LETTERS) | set(word))
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    deleted = {left + right[1:] for left, right in halves if right}
    exchanged = {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    replaced = {left + letter + right[1:] for left, right in halves if right for letter in letters}
    inserted = {left + letter + right for left, right in halves for letter in letters}
    return (deleted | exchanged | replaced | inserted) - {word, ""}


def distance(word: str, other: str, *, limit: int) -> int:
    """Edits between two words; limit + 1 when there are more than `limit`."""
    too_far = limit + 1
    if abs(len(word) - len(other)) > limit or len(set(word) ^ set(other)) > 2 * limit:
        return too_far
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        older, before, row = before, row, [i]
        for j, second in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != second))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == second:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit and min(before) > limit:
            return too_far
    return min(row[-1], too_far)
