"""Which documents really have a term most often, and how much of that an answer covers.

Source: S3 definition 3 (reverse top-K) and section V-C (cover rate: the share of the true top K that is returned).

Where several documents have the K-th largest count, each of them is as good as another, so a rate that knows ties
counts the returned documents that have the term at least as often as the K-th best. Two rates:

    cover        of K documents. Where fewer than K documents have the term at all the K-th count is 0, and any answer
                 covers everything, an unfilled place like a document without the term: rare terms flatter this rate.
    found_rate   of the min(K, documents that have the term) best: a document without the term never counts.

Differs from the paper: it does not say what it does about ties.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.text.counts import Counts
from foltr.types import Array


class Postings(NamedTuple):
    """The same counts by term: term t is in documents[starts[t] : starts[t + 1]], the largest count first."""

    starts: Array  # [terms + 1] int64
    documents: Array  # [entries] int32
    counts: Array  # [entries] int32


def postings(documents: Counts) -> Postings:
    """Of equal counts the earlier document comes first."""
    holders = np.repeat(np.arange(len(documents.lengths), dtype=np.int32), np.diff(documents.offsets))
    order = np.lexsort((holders, -documents.counts.astype(np.int64), documents.terms))
    starts = np.searchsorted(documents.terms[order], np.arange(documents.vocabulary_size + 1))
    return Postings(starts, holders[order], documents.counts[order])


def exact_top(lists: Postings, term: int, top: int) -> tuple[Array, Array]:
    """Documents and counts of the K best that have the term; fewer where fewer have it."""
    held = slice(lists.starts[term], min(lists.starts[term] + top, lists.starts[term + 1]))
    return lists.documents[held], lists.counts[held]


def cover(found: Array, counts: Array, top: int) -> float:
    """Share of K that an answer covers. found: documents returned; counts [documents]: of the term, in all of them."""
    _check(found, counts, top)
    kth = np.partition(counts, len(counts) - top)[len(counts) - top]
    return float(np.count_nonzero(counts[found[:top]] >= kth) / top) if kth > 0 else 1.0


def found_rate(found: Array, counts: Array, top: int) -> float:
    """Share of the documents worth finding; 1 where no document has the term."""
    _check(found, counts, top)
    worth = min(top, int(np.count_nonzero(counts)))
    if worth == 0:
        return 1.0
    kth = np.partition(counts, len(counts) - worth)[len(counts) - worth]
    return min(int(np.count_nonzero(counts[found[:top]] >= kth)), worth) / worth


def counts_by_term(lists: Postings, terms: Array, documents: int) -> Iterator[Array]:
    """[documents] exact counts of one term after the other."""
    for term in terms:
        held = slice(lists.starts[term], lists.starts[term + 1])
        counts = np.zeros(documents, np.int64)
        counts[lists.documents[held]] = lists.counts[held]
        yield counts


def _check(found: Array, counts: Array, top: int) -> None:
    if not 1 <= top <= len(counts):
        raise SpecError(f"top = {top} of {len(counts)} documents; use 1 to {len(counts)}")
    if len(np.unique(found)) != len(found):
        raise SpecError("an answer names a document twice; give each once")
