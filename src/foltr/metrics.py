"""Metrics of rankings and their conventions.

Gain 2^grade - 1, discount log2(rank + 1), ideal over ALL documents of the query, cut at 10. Equal scores keep the
order of the documents. Queries without a relevant document: `skip` them (S0-S2, the default offline) or count them as
`zero` (S4, and always online). Many rankers are evaluated at once: one matrix product scores a block of documents for
all of them.

Differs from the papers: nothing; S4 averages with empty="zero".
"""

import numpy as np

from foltr.types import Array

CUT = 10
DISCOUNT = 0.9995  # of online performance, per round


def gain_table(grades: int) -> Array:
    """[grades, 10]: what a document of a grade adds to DCG@10 at a rank."""
    return np.outer(2.0 ** np.arange(grades) - 1, 1 / np.log2(np.arange(2, CUT + 2)))


def order(scores: Array) -> Array:
    """Documents from best to worst; equal scores keep the order of the documents."""
    return np.argsort(-np.asarray(scores), kind="stable")


def ndcg(scores: Array, labels: Array, cut: int = CUT) -> float:
    """nDCG of one list, written out; 0 where nothing is relevant."""
    gains = 2.0 ** np.asarray(labels, dtype=float) - 1
    discounts = 1 / np.log2(np.arange(2, min(cut, len(gains)) + 2))
    best = float(np.sort(gains)[::-1][:cut] @ discounts)
    return float(gains[order(scores)][:cut] @ discounts) / best if best > 0 else 0.0


def err(scores: Array, labels: Array, *, top_grade: int, cut: int = CUT) -> float:
    """Expected reciprocal rank: a user stops at a document with probability (2^grade - 1) / 2^top_grade."""
    stops = (2.0 ** np.asarray(labels, dtype=float)[order(scores)][:cut] - 1) / 2.0**top_grade
    reaches = np.concatenate([[1.0], np.cumprod(1 - stops)[:-1]])
    return float((reaches * stops / np.arange(1, len(stops) + 1)).sum())


def expected_max_rr(grades: Array, click: Array) -> float:
    """Expected MaxRR of a list under a click model; click [k, grades]."""
    ranks = np.arange(min(len(grades), CUT))
    clicked = click[ranks, np.asarray(grades)[: len(ranks)]]
    unclicked_so_far = np.concatenate([[1.0], np.cumprod(1 - clicked)[:-1]])
    return float((unclicked_so_far * clicked / (ranks + 1)).sum())


def discounted(values: Array, *, first_round: int = 1) -> float:
    """Sum of 0.9995^(round - 1) * value over consecutive rounds."""
    return float(DISCOUNT ** np.arange(first_round - 1, first_round - 1 + len(values)) @ np.asarray(values))
