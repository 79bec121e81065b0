"""Pairs of a query and a document to learn from: judged ones of a party's own, and guessed ones across parties.

Source: S3 sections III-A and VI-A. A party knows the grades of its own queries over its own documents. Across parties
nobody knows any: a query is asked of the other parties, and the first 10 documents that come back count as highly
relevant (grade 2), the rest of the top K as relevant (grade 1).

Differs from the paper: how the answers of several parties become one list is not said; here they are merged by score
and the top K of all is taken, which makes K guessed pairs a query (the paper's 29,000 of 200 queries at K = 150).
The paper guesses relevant documents only; a list without any other says nothing about what to rank below them, so
documents that were not found can be added with grade 0.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.rng import Stream, stream
from foltr.text.corpus import Corpus, grade_of
from foltr.types import Array

HIGH = 10  # first of a list that are highly relevant
_JUDGED, _GUESSED = 0, 1  # rounds of the streams that draw further documents


class Pairs(NamedTuple):
    queries: Array  # [pairs] int64, rising
    documents: Array  # [pairs] int64
    grades: Array  # [pairs] int8


class Parties(NamedTuple):
    documents: Array  # [documents] int64: whose
    queries: Array  # [queries] int64: whose


class Answer(NamedTuple):
    """What one party finds for a query, best first."""

    documents: Array  # [found]
    scores: Array  # [found]


def split(corpus: Corpus, parties: int, *, seed: int) -> Parties:
    """Documents and queries divided evenly at random: no two parties differ by more than one."""
    fewest = min(len(corpus.ids), len(corpus.query_ids))
    if not 1 <= parties <= fewest:
        raise SpecError(f"parties={parties}: a document and a query for each needs 1 .. {fewest} parties")

    def dealt(count: int, round: int) -> Array:
        owners = np.empty(count, dtype=np.int64)
        owners[stream(seed, round=round, purpose="partition").permutation(count)] = np.arange(count) % parties
        return owners

    return Parties(dealt(len(corpus.ids), 0), dealt(len(corpus.query_ids), 1))


def judged(corpus: Corpus, queries: Array, documents: Array, *, others: int | None, seed: int = 0) -> Pairs:
    """Every judged document of each query among these documents, and some `others` (None: all) with grade 0.

    A query of which none of these documents is relevant teaches and tests nothing, and is left out.
    """
    held = np.zeros(len(corpus.ids), dtype=bool)
    held[documents] = True
    wanted = np.unique(queries)
    column = np.ascontiguousarray(corpus.judgments[:, 0])
    bounds = zip(np.searchsorted(column, wanted), np.searchsorted(column, wanted, side="right"), strict=True)
    found = []
    for query, (first, last) in zip(wanted.tolist(), bounds, strict=True):
        known = corpus.judgments[first:last]
        known = known[held[known[:, 1]]]
        if not known[:, 2].any():
            continue
        free = held.copy()
        free[known[:, 1]] = False
        draws = stream(seed, round=_JUDGED, client=query, purpose="choice")
        chosen = np.sort(np.concatenate([known[:, 1], _some(np.flatnonzero(free), others, draws)]))
        found.append((np.full(len(chosen), query), chosen))
    if not found:
        return none()
    all_queries, all_documents = (np.concatenate(columns).astype(np.int64) for columns in zip(*found, strict=True))
    return Pairs(all_queries, all_documents, grade_of(corpus, all_queries, all_documents))


def _some(documents: Array, count: int | None, draws: Stream) -> Array:
    if count is None or count >= len(documents):
        return documents
    return documents[draws.permutation(len(documents))[:count]]


def guessed(
    queries: Array,
    search: Callable[[int], Sequence[Answer]],
    *,
    most: int,
    others: int = 0,
    among: Array | None = None,
    seed: int = 0,
) -> Pairs:
    """For each query the best `most` documents of what search(query) brings back from the other parties.

    With `others`, as many documents `among` theirs that were not found are drawn too, and guessed to be irrelevant.
    """
    found = []
    for query in np.unique(queries).tolist():
        best = merged(search(query), most=most)
        draws = stream(seed, round=_GUESSED, client=query, purpose="choice")
        rest = _some(np.setdiff1d(among, best), others, draws) if among is not None else best[:0]
        documents = np.concatenate([best, rest]).astype(np.int64)
        grades = np.concatenate([guessed_grades(len(best)), np.zeros(len(rest), dtype=np.int8)])
        found.append((np.full(len(documents), query), documents, grades))
    return Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True))) if found else none()


def merged(answers: Sequence[Answer], *, most: int) -> Array:
    """The best `most` documents of several answers; equal scores keep the order of the answers."""
    if most < 1:
        raise SpecError(f"most={most} keeps nothing; use 1 or more")
    documents = np.concatenate([np.empty(0, dtype=np.int64), *(answer.documents for answer in answers)])
    scores = np.concatenate([np.empty(0), *(answer.scores for answer in answers)])
    return documents[np.argsort(-scores, kind="stable")[:most]].astype(np.int64)


def guessed_grades(found: int) -> Array:
    return np.where(np.arange(found) < HIGH, 2, 1).astype(np.int8)


def none() -> Pairs:
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, empty.astype(np.int8))
