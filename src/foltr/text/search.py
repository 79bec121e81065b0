"""The documents of a party that fit a query best, as far as counts tell.

Source: S3 Definition 3, for queries of several terms. Two scores, each a sum over the query's terms:

    counts    count times IDF over all parties
    bm25      BM25 of `lexical`; the paper allows "any other TC-based metrics like BM25"

With exact counts this is what reverse top-K sketches approximate; with counts from one sketch a document it is the
paper's NAIVE.

Differs from the paper: it ranks by the count of a single term and does not say how terms come together.
"""

import numpy as np

from foltr.errors import SpecError
from foltr.silo.pairs import Answer
from foltr.text.features import Field, of_query
from foltr.text.lexical import NAMES, term_facts
from foltr.types import Array


def by_counts(field: Field, documents: Array, terms: Array) -> Array:
    counts = np.maximum(field.look_up(documents, terms), 0)
    return counts @ term_facts(field.statistics, terms).idf


def by_bm25(field: Field, documents: Array, terms: Array) -> Array:
    return of_query(field, documents, terms)[:, NAMES.index("BM25")]


SCORES = {"counts": by_counts, "bm25": by_bm25}


def best(field: Field, owned: Array, terms: Array, *, most: int, score: str = "bm25") -> Answer:
    """The best `most` of the owned documents, equal ones in their order; without any of the terms, it is not found."""
    if most < 1:
        raise SpecError(f"most={most} finds nothing; use 1 or more")
    if score not in SCORES:
        raise SpecError(f"score={score!r} is unknown; there are {', '.join(SCORES)}")
    scores = SCORES[score](field, owned, terms)
    order = np.argsort(-scores, kind="stable")[:most]
    order = order[scores[order] > 0]
    return Answer(np.asarray(owned)[order], scores[order])
