"""Eight features of a query and one field of a document, computed from term counts.

Source: S3 section VI-A (length, TF, IDF, TF-IDF, BM25, LMIR.ABS, LMIR.DIR, LMIR.JM) and the equations below
Definition 2. With n the count of a query's term in a field of |d| terms, u of them different, N documents of mean
length m, df and cf the documents and occurrences that the parties have of the term, L the terms of all of them, and
p = cf / L; sums run over the query's terms, repeated ones as often:

    length      |d|
    TF          sum n / |d|
    IDF         sum log(N / df)                    over the terms that the field has
    TF-IDF      sum n / |d| log(N / df)
    BM25        sum log(N / df) n (k1 + 1) / (n + k1 (1 - b + b |d| / m))          k1 = 2.5, b = .8
    LMIR.ABS    sum log(max(n - delta, 0) / |d| + delta u / |d| p)                 delta = .7
    LMIR.DIR    sum log((n + mu p) / (|d| + mu))                                   mu = 2,000
    LMIR.JM     sum log((1 - lambda) n / |d| + lambda p)                           lambda = .1

Counts may be exact or estimates from sketches. Estimates are clipped: below 0 is 0, a field has a term if its count is
at least 1/2, and df lies between 1 and N. A term that no party has in this field is left out. A field of length 0 has
TF, IDF, TF-IDF and BM25 of 0 and the collection's language model.

Differs from the paper: BM25 uses counts and the length of the document, as usual (the printed one has n / |d| in place
of n, for which k1 is not meant). The paper gives no constants: these are LETOR's.
"""

from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.text.counts import Statistics
from foltr.types import Array

NAMES = ("length", "TF", "IDF", "TF-IDF", "BM25", "LMIR.ABS", "LMIR.DIR", "LMIR.JM")
_PRESENT = 0.5  # exact counts are whole; estimates are rounded

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    k1: Annotated[float, msgspec.Meta(gt=0)] = 2.5
    b: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8
    delta: Share = 0.7
    mu: Annotated[float, msgspec.Meta(gt=0)] = 2000.0
    lambda_: Share = msgspec.field(default=0.1, name="lambda")


LETOR = Constants()


class TermFacts(NamedTuple):
    """Statistics of all parties for the terms of one query."""

    mean_length: float
    idf: Array  # [terms]
    share: Array  # [terms] p: of all occurrences, those of the term; 0: no party has it


def term_facts(statistics: Statistics, terms: Array) -> TermFacts:
    """The statistics of a query's terms; estimates are clipped to possible counts."""
    documents = max(statistics.documents, 1)
    frequency = np.clip(statistics.document_frequency[terms], 1, documents)
    occurrences = np.maximum(statistics.collection_frequency[terms], 0)
    return TermFacts(
        statistics.length / documents,
        np.log(documents / frequency),
        occurrences / max(statistics.length, 1),
    )


def features(counts: Array, lengths: Array, distinct: Array, facts: TermFacts, constants: Constants = LETOR) -> Array:
    """[documents, 8] from counts [documents, terms], exact or estimated, and the size of each document."""
    if counts.shape != (len(lengths), len(facts.idf)):
        raise SpecError(
            f"counts are {counts.shape}, but there are {len(lengths)} documents and {len(facts.idf)} terms asked for"
        )
    known = facts.share > 0
    n = np.maximum(counts[:, known], 0).astype(np.float64)
    idf, p = facts.idf[known], facts.share[known]
    length = np.maximum(lengths, 0).astype(np.float64)[:, None]
    within = np.divide(n, length, out=np.zeros_like(n), where=length > 0)
    columns = [
        length[:, 0],
        within.sum(axis=1),
        (n >= _PRESENT) @ idf,
        within @ idf,
        _saturation(n, length / max(facts.mean_length, 1e-9), constants) @ idf,
        _absolute(n, length, np.asarray(distinct, dtype=np.float64)[:, None], p, constants.delta),
        np.log((n + constants.mu * p) / (length + constants.mu)).sum(axis=1),
        np.log((1 - constants.lambda_) * within + constants.lambda_ * p).sum(axis=1),
    ]
    return np.stack(columns, axis=1)


def bm25(counts: Array, lengths: Array, facts: TermFacts, constants: Constants = LETOR) -> Array:
    """[documents] the feature BM25 alone."""
    known = facts.share > 0
    n = np.maximum(counts[:, known], 0).astype(np.float64)
    length = np.maximum(lengths, 0).astype(np.float64)[:, None]
    return _saturation(n, length / max(facts.mean_length, 1e-9), constants) @ facts.idf[known]


def _saturation(n: Array, relative_length: Array, constants: Constants) -> Array:
    damping = constants.k1 * (1 - constants.b + constants.b * relative_length)
    return np.divide(n * (constants.k1 + 1), n + damping, out=np.zeros_like(n), where=n > 0)


def _absolute(n: Array, length: Array, distinct: Array, p: Array, delta: float) -> Array:
    """The mass discounted from every different term goes to the collection's model; an empty field has only that."""
    safe = np.maximum(length, 1)
    backoff = np.where(length > 0, delta * np.maximum(distinct, 1) / safe, 1.0)
    return np.log(np.maximum(n - delta, 0) / safe + backoff * p).sum(axis=1)
