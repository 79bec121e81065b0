"""Searches prepared once for all learners: candidates, their features, and what the person would be glad to find.

Candidates are the first hundred of one-field BM25. Features are scaled as a ranker sees them; the columns of what was
opened are empty, since they depend on the person's history with a learner.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from foltr.lab.people.corpora import Texts
from foltr.lab.people.plain_bm25 import PlainBm25
from foltr.lab.people.queries import KnownItem
from foltr.metrics import CUT
from foltr.text import occurrences
from foltr.text.bm25 import idf
from foltr.text.corpus import Corpus
from foltr.text.fields import FIELDS
from foltr.text.matching import FEATURES, NAMES, is_body_word, named, of_occurrences, scale
from foltr.text.memory_index import MemoryIndex
from foltr.types import Array

CANDIDATES = 100
_BM25 = NAMES.index("bm25")


class Prepared(NamedTuple):
    documents: Array  # [n] candidates, best by BM25 first
    features: Array  # [n, d] scaled
    bm25: Array  # [n]
    bm25f: Array  # [n] tuned
    plain: Array  # [up to 10] grades of the first ten of `plain_bm25`, which searches all documents
    grades: Array  # [n] int8: of a known item 1 for the target
    ideal: float  # DCG@10 of the best list of all judged documents
    text: str = ""  # as it was typed
    named: Array = np.empty(0, dtype=bool)  # [n] title or name has all words of the query
    body_word: bool = False  # the query is a single word that only bodies have


class FieldTuning(NamedTuple):
    """Constants of BM25F."""

    title: float
    name: float
    path: float
    b: float  # of title, name and path
    body_b: float
    k1: float


TUNED = FieldTuning(title=2.0, name=4.0, path=2.0, b=0.5, body_b=0.75, k1=1.2)  # the best of 108 on development seeds


class Searcher:
    """An index over texts, and the searches that were prepared."""

    def __init__(self, texts: Texts) -> None:
        fields = {"title": texts.titles, "body": texts.bodies, "name": texts.names, "path": texts.paths}
        depth = np.array([path.count("/") for path in texts.paths], dtype=np.float64)
        self.texts = texts
        self.index = MemoryIndex(fields, depth=depth)
        self.plain = PlainBm25(texts.titles, texts.bodies)
        self.idf = lru_cache(maxsize=1 << 16)(self._idf)

        self.judged = lru_cache(maxsize=1 << 12)(self._judged)
        self._relevant = _relevant_by_query(texts.judged)
        self.judged_queries = np.array(sorted(self._relevant), np.int64)

    def _judged(self, query: int) -> Prepared:
        """A query of the corpus, with its judgments."""
        assert self.texts.judged is not None
        return self.prepare(self.texts.judged.query_texts[query], self._relevant[query])

    def _idf(self, word: str) -> float:
        frequency = max(self.index.document_frequencies(word), default=1)
        return float(idf(self.index.collection.documents, np.array([frequency]))[0])

    def prepare(
        self, text: str, judged: Mapping[int, int], tuning: FieldTuning = TUNED, *, prefix: bool = False
    ) -> Prepared:
        """A search with the grades of its relevant documents; all features of `FEATURES`. `prefix`: the last word may
        be a beginning."""
        query = self.index.query_text(text, prefix=prefix)
        documents = self.index.candidates(query, CANDIDATES)
        tokens, collection = self.index.tokens(documents), self.index.collection
        found = occurrences.find(query, tokens, collection.stop_count)
        raw = of_occurrences(query, found, collection, self.index.facts(documents))
        means = collection.lengths / np.maximum(collection.with_field, 1)
        frequency = np.array([term.document_frequency for term in query.terms], dtype=np.float64)
        asked = idf(collection.documents, frequency) * [term.repeats for term in query.terms]
        tuned = tuned_bm25f(found.counts, found.lengths, means, asked, tuning)
        plain = self.plain.best(text, CUT)
        grades, plain_grades = (
            np.array([judged.get(number, 0) for number in some.tolist()], dtype=np.int8) for some in (documents, plain)
        )
        scaled = scale(raw, FEATURES)
        return Prepared(
            documents,
            scaled,
            raw[:, _BM25],
            tuned,
            plain_grades,
            grades,
            _ideal(judged),
            text,
            named(raw),
            is_body_word(text, raw),
        )

    def known_item(self, query: KnownItem, *, prefix: bool = False) -> Prepared:
        return self.prepare(query.text, {query.target: 1}, prefix=prefix)


def _relevant_by_query(corpus: Corpus | None) -> dict[int, dict[int, int]]:
    """Query -> its relevant documents with their grades."""
    found: dict[int, dict[int, int]] = {}
    if corpus is not None:
        for query, document, grade in corpus.judgments[corpus.judgments[:, 2] > 0].tolist():
            found.setdefault(query, {})[document] = grade
    return found


def _ideal(judged: Mapping[int, int]) -> float:
    best = sorted(judged.values(), reverse=True)[:CUT]
    return sum((2.0**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(best))


def tuned_bm25f(counts: Array, lengths: Array, means: Array, weights: Array, tuning: FieldTuning) -> Array:
    """[n] BM25F of counts [n, fields, terms] with these constants; other fields as the body."""
    by_field = {"title": tuning.title, "name": tuning.name, "path": tuning.path}
    field_weights = np.array([by_field.get(field, 1.0) for field in FIELDS])
    slopes = np.array([tuning.b if field in by_field else tuning.body_b for field in FIELDS])
    share = field_weights / (1 - slopes + slopes * lengths / np.maximum(means, 1e-9))
    pseudo = np.einsum("nft,nf->nt", counts, share)
    return (pseudo / (pseudo + tuning.k1)) @ weights


def with_features(search: Prepared, places: Array) -> Prepared:
    """The search with some of the features only."""
    return search._replace(features=np.ascontiguousarray(search.features[:, places]))
