"""An index in memory over texts by field: exact statistics, candidates by one-field BM25, word sequences for features.

    index = MemoryIndex({"title": titles, "body": bodies})
    query = index.query_text("running shoes")
    candidates = index.candidates(query, top_k=100)
    raw = features(query, index.tokens(candidates), index.collection, index.facts(candidates))

Words are numbered with the stop words of the language first and the others in alphabetical order, so that the words
that begin with a string are a range.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from foltr.errors import SpecError
from foltr.text.analysis import (
    ENGLISH,
    QueryWord,
    TextAnalysis,
    by_term,
    fold,
    query_words,
    stem,
    stop_words,
    tokens,
    words_of,
)
from foltr.text.bm25 import bm25, idf
from foltr.text.fields import FIELDS, NO_WORDS, Collection, Facts, QueryText, Term, Tokens
from foltr.types import Array

SHORTEST_BEGINNING = 2  # letters: one letter begins a word in every text


class MemoryIndex:
    """Documents are numbered in the order in which they are given; missing fields are empty."""

    def __init__(
        self,
        texts: Mapping[str, Sequence[str]],
        analysis: TextAnalysis = ENGLISH,
        *,
        age_days: Array | None = None,
        depth: Array | None = None,
    ) -> None:
        count = _number_of_documents(texts)
        self.analysis = analysis
        self._texts = texts
        self._age = np.zeros(count) if age_days is None else np.asarray(age_days, dtype=np.float64)
        self._depth = np.zeros(count) if depth is None else np.asarray(depth, dtype=np.float64)
        stop = stop_words(analysis.language) if analysis.stop else ()
        self.vocabulary, self._words, self._offsets = _numbered(_by_document(texts, count), stop)
        self._stop_count = len(stop)
        self._sorted = self.vocabulary[self._stop_count :]
        self._by_stem = _by_stem(self.vocabulary, analysis)
        self._post(count)

    def _post(self, count: int) -> None:
        """Postings: word -> (document and field, occurrences), and the sums of the collection."""
        groups = np.repeat(np.arange(count * len(FIELDS), dtype=np.int64), np.diff(self._offsets))
        keys, self._post_counts = np.unique(self._words * np.int64(count * len(FIELDS)) + groups, return_counts=True)
        numbers, self._post_groups = np.divmod(keys, max(count * len(FIELDS), 1))
        self._post_starts = np.searchsorted(numbers, np.arange(len(self.vocabulary) + 1))
        counted = np.bincount(groups[self._words >= self._stop_count], minlength=count * len(FIELDS))
        by_field = counted.reshape(count, len(FIELDS))
        present = (np.diff(self._offsets) > 0).reshape(count, len(FIELDS))
        self._lengths = by_field.sum(axis=1)
        self.collection = Collection(count, by_field.sum(axis=0), present.sum(axis=0), self._stop_count)

    def query_text(self, text: str, *, prefix: bool = False) -> QueryText:
        """The query's terms with their statistics; with `prefix` its last word may still be being typed."""
        distinct, order = by_term(query_words(text, self.analysis, prefix=prefix))
        return QueryText(tuple(map(self._term, distinct)), np.array(order, dtype=np.int64), fold(text))

    def document_frequencies(self, text: str) -> list[int]:
        """Number of documents with each term of a text: a part of `query_text` at a fraction of its cost."""
        distinct, _ = by_term(query_words(text, self.analysis))
        places = (self._places(self._occurring(forms)) for forms in distinct)
        return [len(np.unique(self._post_groups[some] // len(FIELDS))) for some in places]

    def _occurring(self, forms: list[QueryWord]) -> Array:
        """Every word that is an occurrence of a term."""
        occurring = _union(chain.from_iterable(map(self._occurrences, forms)))
        return occurring if forms[0].with_stop else occurring[occurring >= self._stop_count]

    def _term(self, forms: list[QueryWord]) -> Term:
        """One term from the query's words that have its stem."""
        occurring = self._occurring(forms)
        beginning = _union(self._beginning(word.text) for word in forms if len(word.text) >= SHORTEST_BEGINNING)
        places = self._places(occurring)
        groups = np.unique(self._post_groups[places])
        fields = np.bincount(groups % len(FIELDS), minlength=len(FIELDS))
        documents = len(np.unique(groups // len(FIELDS)))
        typed = next((word.text for word in forms if word.prefix), forms[0].stems[0])
        total = int(self._post_counts[places].sum())
        return Term(typed, len(forms), occurring, documents, fields, total, beginning)

    def _occurrences(self, word: QueryWord) -> Iterator[Array]:
        """Words with a stem of the word; where it is a beginning, also with the stem of any word that begins so:
        "relationa" finds what "relational" finds."""
        stems = dict.fromkeys(word.stems)
        if word.prefix:
            begun = self._beginning(word.text).tolist()
            stems |= dict.fromkeys(stem(self.vocabulary[number], self.analysis) for number in begun)
        yield from (self._by_stem[one] for one in stems if one in self._by_stem)

    def _beginning(self, text: str) -> Array:
        start, end = bisect_left(self._sorted, text), bisect_left(self._sorted, text + "\U0010ffff")
        stop = [number for number in range(self._stop_count) if self.vocabulary[number].startswith(text)]
        rest = np.arange(self._stop_count + start, self._stop_count + end, dtype=np.int32)
        return np.concatenate([np.array(stop, dtype=np.int32), rest])

    def _places(self, numbers: Array) -> Array:
        """The places of the postings of words."""
        return _ranges(self._post_starts[numbers], self._post_starts[numbers + 1])

    def scores(self, query: QueryText) -> Array:
        """[documents] one-field BM25, for all documents."""
        scores = np.zeros(self.collection.documents)
        mean = self.collection.lengths.sum() / max(self.collection.documents, 1)
        for term in query.terms:
            places = self._places(term.words)
            owners, place = np.unique(self._post_groups[places] // len(FIELDS), return_inverse=True)
            counts = np.bincount(place, weights=self._post_counts[places], minlength=len(owners))
            weight = term.repeats * idf(self.collection.documents, np.array([term.document_frequency]))
            scores[owners] += bm25(counts[:, None], self._lengths[owners], mean, weight)
        return scores

    def candidates(self, query: QueryText, top_k: int = 100) -> Array:
        """The best documents by one-field BM25 that have a term, best first, equal ones in their order."""
        scores = self.scores(query)
        found = np.flatnonzero(scores > 0)
        if len(found) > top_k:
            least = np.partition(scores[found], len(found) - top_k)[len(found) - top_k]
            found = found[scores[found] >= least]
        return found[np.argsort(-scores[found], kind="stable")][:top_k]

    def tokens(self, documents: Array) -> Tokens:
        """The words of some documents, in the order asked for."""
        groups = np.asarray(documents, dtype=np.int64)[:, None] * len(FIELDS) + np.arange(len(FIELDS))
        starts, ends = self._offsets[groups.ravel()], self._offsets[groups.ravel() + 1]
        offsets = np.concatenate([[0], np.cumsum(ends - starts)])
        return Tokens(self._words[_ranges(starts[:: len(FIELDS)], ends[len(FIELDS) - 1 :: len(FIELDS)])], offsets)

    def facts(self, documents: Array, *, opened: Array | None = None, folder_opened: Array | None = None) -> Facts:
        """Facts beyond words; counts of openings, if any, in the order of `documents`."""
        numbers = np.asarray(documents, dtype=np.int64)
        none = np.zeros(len(numbers))
        return Facts(
            self._folded("title", numbers),
            self._folded("name", numbers),
            self._age[numbers],
            self._depth[numbers],
            none if opened is None else opened,
            none if folder_opened is None else folder_opened,
        )

    def _folded(self, field: str, numbers: Array) -> tuple[str, ...]:
        if field not in self._texts:
            return ("",) * len(numbers)
        return tuple(fold(self._texts[field][number]) for number in numbers.tolist())


def _number_of_documents(texts: Mapping[str, Sequence[str]]) -> int:
    unknown = sorted(set(texts) - set(FIELDS))
    sizes = {len(column) for column in texts.values()}
    if unknown or len(sizes) != 1:
        raise SpecError(
            f"unknown fields {unknown} and columns of {sorted(sizes)} texts; "
            f"give one text for each document in some of {', '.join(FIELDS)}"
        )
    return sizes.pop()


def _by_document(texts: Mapping[str, Sequence[str]], count: int) -> Iterator[str]:
    for document in range(count):
        for field in FIELDS:
            yield texts[field][document] if field in texts else ""


def _numbered(texts: Iterable[str], stop: Sequence[str]) -> tuple[list[str], Array, Array]:
    """The vocabulary, the words of all texts as numbers, and where each text begins."""
    numbers: dict[str, int] = {word: number for number, word in enumerate(stop)}
    known: dict[str, tuple[int, ...]] = {}  # token -> numbers
    sequence, offsets = array("i"), [0]
    for text in texts:
        for token in tokens(text):
            found = known.get(token)
            if found is None:
                found = known[token] = tuple(numbers.setdefault(word, len(numbers)) for word in words_of(token))
            sequence.extend(found)
        offsets.append(len(sequence))
    vocabulary = [*stop, *sorted(list(numbers)[len(stop) :])]
    renumbered = np.empty(len(vocabulary), dtype=np.int32)
    renumbered[[numbers[word] for word in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)
    words = renumbered[np.frombuffer(sequence, dtype=np.int32)] if sequence else NO_WORDS
    return vocabulary, words, np.array(offsets, dtype=np.int64)


def _by_stem(vocabulary: Sequence[str], analysis: TextAnalysis) -> dict[str, Array]:
    groups: dict[str, list[int]] = {}
    for number, word in enumerate(vocabulary):
        groups.setdefault(stem(word, analysis), []).append(number)
    return {root: np.array(numbers, dtype=np.int32) for root, numbers in groups.items()}


def _union(arrays: Iterable[Array]) -> Array:
    return np.unique(np.concatenate([NO_WORDS, *arrays]))


def _ranges(starts: Array, ends: Array) -> Array:
    """start, ..., end - 1 of every pair, one after the other."""
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(sizes.sum())
