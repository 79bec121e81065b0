"""The best documents for a query, from term counts.

Source: S3 Definition 3, for queries of several terms. Two scores, each a sum over the query's terms:

    counts    count times IDF over all parties
    bm25      BM25 of `lexical`; the paper allows "any other TC-based metrics like BM25"

With exact counts this is what reverse top-K sketches approximate; with counts from one sketch a document it is the
paper's NAIVE.

Differs from the paper: it ranks by the count of a single term and does not say how terms are combined.
"""

from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.text.features import Field
from foltr.text.lexical import LETOR, Constants, bm25, term_facts
from foltr.types import Array


class Hits(NamedTuple):
    """Documents found for a query, best first."""

    documents: Array  # [found]
    scores: Array  # [found]


def by_counts(field: Field, documents: Array, terms: Array) -> Array:
    counts = np.maximum(field.look_up(documents, terms), 0)
    return counts @ term_facts(field.statistics, terms).idf


def by_bm25(field: Field, documents: Array, terms: Array, constants: Constants = LETOR) -> Array:
    facts = term_facts(field.statistics, terms)
    return bm25(field.look_up(documents, terms), field.lengths[documents], facts, constants)


SCORES = {"counts": by_counts, "bm25": by_bm25}


def best(field: Field, owned: Array, terms: Array, *, top_k: int, score: str = "bm25") -> Hits:
    """The best `top_k` of the owned documents that have a term of the query, equal ones in their order."""
    if top_k < 1:
        raise SpecError(f"top_k={top_k} finds nothing; use 1 or more")
    if score not in SCORES:
        raise SpecError(f"score={score!r} is unknown; there are {', '.join(SCORES)}")
    scores = SCORES[score](field, owned, terms)
    order = np.argsort(-scores, kind="stable")[:top_k]
    order = order[scores[order] > 0]
    return Hits(np.asarray(owned)[order], scores[order])
