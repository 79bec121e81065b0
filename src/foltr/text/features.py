"""The feature matrix of (query, document) pairs, and its form as a data set.

Source: S3 section VI-A: the eight features of `lexical` of title and body, 16 in all. A `Field` gives the count of a
term in a document; only the field knows whether it comes from the text itself (`exact`) or from another party's
sketches.

Differs from the paper: features are scaled from 0 to 1 within each query (the paper does not say how).
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.rankers.normalize import query_minmax
from foltr.text import lexical
from foltr.text.corpus import Pairs
from foltr.text.counts import Counts, Statistics, counts_of, statistics
from foltr.types import Array, Dataset

NAMES = tuple(f"{field} {name}" for field in ("title", "body") for name in lexical.NAMES)
WIDTH = len(NAMES)
SCALINGS = ("query-minmax", "none")


class Field(NamedTuple):
    """One field of every document."""

    look_up: Callable[[Array, Array], Array]  # (documents [n], terms [m]) -> [n, m] counts, exact or estimated
    lengths: Array  # [documents]
    distinct: Array  # [documents] different terms
    statistics: Statistics  # of all parties


class Labelled(NamedTuple):
    pairs: Pairs
    features: Array  # [pairs, 16] float32, not yet scaled


def exact(counts: Counts, reported: Statistics | None = None) -> Field:
    """A field whose text is at hand; `reported` are the statistics of all parties, else its own."""

    def look_up(documents: Array, terms: Array) -> Array:
        return counts_of(counts, documents, terms)

    return Field(look_up, counts.lengths, np.diff(counts.offsets), reported or statistics(counts))


def label(
    pairs: Pairs, title: Field, body: Field, terms: Sequence[Array], constants: lexical.Constants = lexical.LETOR
) -> Labelled:
    """The features of pairs; terms[q] are the numbers of query q's terms."""
    features = np.empty((len(pairs.queries), WIDTH), dtype=np.float32)
    starts = np.flatnonzero(np.diff(pairs.queries, prepend=-1))
    for first, last in itertools.pairwise([*starts, len(features)]):
        documents, words = pairs.documents[first:last], terms[pairs.queries[first]]
        for place, field in enumerate((title, body)):
            columns = slice(place * len(lexical.NAMES), (place + 1) * len(lexical.NAMES))
            features[first:last, columns] = of_query(field, documents, words, constants)
    return Labelled(pairs, features)


def of_query(field: Field, documents: Array, words: Array, constants: lexical.Constants = lexical.LETOR) -> Array:
    """[documents, 8] of one field, for the terms of one query."""
    facts = lexical.term_facts(field.statistics, words)
    counts = field.look_up(documents, words)
    return lexical.features(counts, field.lengths[documents], field.distinct[documents], facts, constants)


def join(*some: Labelled) -> Labelled:
    """All pairs together, those of a query adjacent, in the order in which they were given."""
    pairs = [np.concatenate(columns) for columns in zip(*(one.pairs for one in some), strict=True)]
    order = np.argsort(pairs[0], kind="stable")
    features = np.concatenate([one.features for one in some])
    return Labelled(Pairs(*(column[order] for column in pairs)), features[order])


def dataset(labelled: Labelled, scaling: str = "query-minmax") -> Dataset:
    """A data set to train or test on; the documents of each query are scaled among themselves."""
    if scaling not in SCALINGS:
        raise SpecError(f"no scaling {scaling!r} of texts (zscore needs a training set, which no party has); use "
                        f"{' or '.join(SCALINGS)}")  # fmt: skip
    if np.any(np.diff(labelled.pairs.queries) < 0):
        raise SpecError("the pairs of a query are not adjacent; make them so with join")
    queries, starts = np.unique(labelled.pairs.queries, return_index=True)
    offsets = np.append(starts, len(labelled.features)).astype(np.int64)
    features = np.array(labelled.features, dtype=np.float32, order="C")
    if scaling == "query-minmax":
        query_minmax(features, offsets)
    return Dataset(features, labelled.pairs.grades.astype(np.int8), offsets, queries.astype(np.int64))
