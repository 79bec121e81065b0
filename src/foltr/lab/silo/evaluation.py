"""Metrics of rankers on test queries, the BM25 baseline, and which parties gain or lose by another regime.

Source: S3 section VI-A and Table I: ERR, nDCG@10 and nDCG of the whole list. Queries without a relevant document are
left out. A party gains or loses if the 95 % interval of its mean change over queries (paired, normal) excludes 0.

BM25 is what a practitioner tries first, and the same as on a node (`text.bm25`): title and body as one field, stop
words removed, Snowball's English stems, k1 = 1.2, b = .75, the statistics of all parties, no label. Every trained
ranker is to be compared with it.

Differs from the paper: it prints means of one run and no BM25; here means come with intervals.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.metrics import err, ndcg
from foltr.silo.parties import SiloFederation
from foltr.text.analysis import ENGLISH, terms
from foltr.text.bm25 import bm25, idf
from foltr.text.corpus import Corpus
from foltr.text.counts import count, counts_of, known_terms, statistics, take
from foltr.types import Array, Dataset

METRICS = ("ERR", "nDCG@10", "nDCG")
_WIDTH = 1.96  # standard errors on each side of a 95 % interval


class Change(NamedTuple):
    mean: float
    low: float
    high: float
    verdict: Literal["gains", "loses", "same"]


def score_metrics(scores: Array, data: Dataset, *, top_grade: int) -> Array:
    """[queries with a relevant document, 3] in the order of METRICS."""
    rows = []
    for first, last in itertools.pairwise(data.offsets):
        grades, given = data.labels[first:last], scores[first:last]
        if grades.any():
            whole = err(given, grades, max_rel=top_grade, cut=len(grades))
            rows.append((whole, ndcg(given, grades), ndcg(given, grades, cut=len(grades))))
    return np.array(rows).reshape(-1, len(METRICS))


def relevant_queries(data: Dataset) -> int:
    """Queries with a relevant document: those that metrics count."""
    return sum(bool(data.labels[first:last].any()) for first, last in itertools.pairwise(data.offsets))


def ranker_metrics(rankers: Array, tests: Sequence[Dataset], *, top_grade: int) -> list[list[Array]]:
    """[rankers][tests] metrics of each linear ranker on each test; equal rankers are evaluated once."""
    found: dict[bytes, list[Array]] = {}
    for ranker in rankers:
        if ranker.tobytes() not in found:
            found[ranker.tobytes()] = [
                score_metrics(data.features @ ranker, data, top_grade=top_grade) for data in tests
            ]
    return [found[ranker.tobytes()] for ranker in rankers]


def bm25_ranker(corpus: Corpus, owned: Sequence[Array]) -> Callable[[int], Array]:
    """The BM25 scores [documents] of a query, with the statistics of the documents that the parties own."""
    texts = [
        Counter(terms(f"{title} {body}", ENGLISH)) for title, body in zip(corpus.titles, corpus.bodies, strict=True)
    ]
    vocabulary = {word: number for number, word in enumerate(sorted(set().union(*texts)))}
    counts = count(texts, vocabulary)
    reported = statistics(take(counts, np.concatenate(owned)))
    weights = idf(reported.documents, reported.document_frequency)
    mean_length = reported.length / max(reported.documents, 1)
    everything = np.arange(len(corpus.ids))

    def scores(query: int) -> Array:
        words = known_terms(corpus.query_texts[query], vocabulary, ENGLISH)
        return bm25(counts_of(counts, everything, words), counts.lengths, mean_length, weights[words])

    return scores


def bm25_metrics(federation: SiloFederation, tests: Sequence[Dataset], *, top_grade: int) -> list[Array]:
    """[tests] metrics of BM25; every query of a test ranks all documents of the corpus, in their order."""
    scores = bm25_ranker(federation.corpus, federation.owned)
    return [
        score_metrics(np.concatenate([scores(query) for query in data.queries]), data, top_grade=top_grade)
        for data in tests
    ]


def change(before: Array, after: Array) -> Change:
    """The change of one metric of the same queries from one regime to another."""
    if len(before) != len(after) or len(after) < 2:
        raise SpecError(f"{len(before)} and {len(after)} queries cannot be paired; use the same ones, 2 or more")
    differences = after - before
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences))
    low, high = mean - _WIDTH * error, mean + _WIDTH * error
    return Change(mean, low, high, "gains" if low > 0 else "loses" if high < 0 else "same")
