"""Training pairs of a query and a document: judged ones of a party's own, guessed ones across parties, ranked grades.

Source: S3 sections III-A and VI-A. A party knows the grades of its own queries over its own documents. Across parties
grades are unknown: a query is asked of the other parties, and the first 10 documents that come back count as highly
relevant (grade 2), the rest of the top K as relevant (grade 1).

**Ranked grades.** The paper's ground truth is not human judgment but "top100 ranking": of MS MARCO's 100 documents a
query the first 10 count as highly relevant (2), the others as relevant (1). Those lists come from a lexical search
engine (Indri's query likelihood). `ranked` generates them in the same way, by the Dirichlet-smoothed language model of
bodies over the whole corpus; documents without any word of the query are never listed. Cross-party pairs are guessed
from counts of words, and these grades are a function of counts of words: agreement between the two is built in.

Differs from the paper: how the answers of several parties become one list is not said; here they are merged by score
and the top K of all is taken, which makes K guessed pairs a query (the paper's 29,000 of 200 queries at K = 150).
The paper guesses relevant documents only; such a list has no negatives, so documents that were not found
can be added with grade 0. The search engine of ranked grades is ours, since the paper's lists are not available.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.rng import Stream, stream
from foltr.text.corpus import Corpus, Pairs, grade_of, no_pairs
from foltr.text.counts import TextCounts
from foltr.text.features import exact, of_query
from foltr.text.lexical import NAMES
from foltr.text.search import Hits
from foltr.types import Array

NUM_HIGHLY_RELEVANT = 10  # first documents of a list that have grade 2
LISTED = 100  # documents of a ranked list that have a grade
_JUDGED, _GUESSED = 0, 1  # rounds of the streams that draw negatives
_ENGINE, _HAS_A_WORD = NAMES.index("LMIR.DIR"), NAMES.index("IDF")


class Parties(NamedTuple):
    documents: Array  # [documents] int64: the party of each
    queries: Array  # [queries] int64: the party of each


def split(corpus: Corpus, parties: int, *, seed: int) -> Parties:
    """Documents and queries divided evenly at random: no two parties differ by more than one."""
    fewest = min(len(corpus.ids), len(corpus.query_ids))
    if not 1 <= parties <= fewest:
        raise SpecError(f"parties={parties}: a document and a query for each needs 1 .. {fewest} parties")

    def deal(count: int, round: int) -> Array:
        owners = np.empty(count, dtype=np.int64)
        owners[stream(seed, round=round, purpose="partition").permutation(count)] = np.arange(count) % parties
        return owners

    return Parties(deal(len(corpus.ids), 0), deal(len(corpus.query_ids), 1))


def judged(corpus: Corpus, queries: Array, documents: Array, *, num_negatives: int | None, seed: int = 0) -> Pairs:
    """Every judged document of each query among these documents, and `num_negatives` others (None: all) of grade 0.

    A query without a relevant document among these is left out: it has no effect on training or metrics.
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
        chosen = np.sort(np.concatenate([known[:, 1], _sample(np.flatnonzero(free), num_negatives, draws)]))
        found.append((np.full(len(chosen), query), chosen))
    if not found:
        return no_pairs()
    all_queries, all_documents = (np.concatenate(columns).astype(np.int64) for columns in zip(*found, strict=True))
    return Pairs(all_queries, all_documents, grade_of(corpus, all_queries, all_documents))


def _sample(documents: Array, count: int | None, draws: Stream) -> Array:
    if count is None or count >= len(documents):
        return documents
    return documents[draws.permutation(len(documents))[:count]]


def guessed(
    queries: Array,
    search: Callable[[int], Sequence[Hits]],
    *,
    top_k: int,
    num_negatives: int = 0,
    among: Array | None = None,
    seed: int = 0,
) -> Pairs:
    """For each query the best `top_k` documents of what search(query) returns from the other parties.

    Of the documents `among` theirs that were not found, `num_negatives` are drawn and guessed to be irrelevant.
    """
    found = []
    for query in np.unique(queries).tolist():
        best = merged(search(query), top_k=top_k)
        draws = stream(seed, round=_GUESSED, client=query, purpose="choice")
        negatives = _sample(np.setdiff1d(among, best), num_negatives, draws) if among is not None else best[:0]
        documents = np.concatenate([best, negatives]).astype(np.int64)
        grades = np.concatenate([guessed_grades(len(best)), np.zeros(len(negatives), dtype=np.int8)])
        found.append((np.full(len(documents), query), documents, grades))
    return Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True))) if found else no_pairs()


def merged(answers: Sequence[Hits], *, top_k: int) -> Array:
    """The best `top_k` documents of several answers; equal scores keep the order of the answers."""
    if top_k < 1:
        raise SpecError(f"top_k={top_k} selects nothing; use 1 or more")
    documents = np.concatenate([np.empty(0, dtype=np.int64), *(answer.documents for answer in answers)])
    scores = np.concatenate([np.empty(0), *(answer.scores for answer in answers)])
    return documents[np.argsort(-scores, kind="stable")[:top_k]].astype(np.int64)


def guessed_grades(found: int) -> Array:
    return np.where(np.arange(found) < NUM_HIGHLY_RELEVANT, 2, 1).astype(np.int8)


def ranked(corpus: Corpus, counted: TextCounts, terms: list[Array], queries: Array) -> Corpus:
    """The corpus with grades of these queries only, by the rank of each document in a list of 100."""
    body, everything = exact(counted.body), np.arange(len(corpus.ids))
    rows = []
    for query in np.unique(queries).tolist():
        features = of_query(body, everything, terms[query])
        scores = np.where(features[:, _HAS_A_WORD] > 0, features[:, _ENGINE], -np.inf)
        best = np.argsort(-scores, kind="stable")[:LISTED]
        best = best[scores[best] > -np.inf]
        grades = guessed_grades(len(best))
        order = np.argsort(best)
        rows.append(np.column_stack([np.full(len(best), query), best, grades])[order])
    return corpus._replace(judgments=np.concatenate(rows).astype(np.int32))
