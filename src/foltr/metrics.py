"""Quality of rankings; every convention has a name.

Gain 2^grade - 1, discount log2(rank + 1), ideal over ALL documents of the query, cut at 10. Equal scores keep the
order of the documents. Queries without a relevant document: `skip` them (S0-S2, the default offline) or count them as
`zero` (S4, and always online). Many rankers are evaluated at once: one matrix product scores a block of documents for
all of them.

Differs from the papers: nothing; S4's averages are had with empty="zero".
"""

import itertools
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from foltr.metrics_kernel import add_quality, fill_ideal, room_for
from foltr.types import Array

CUT = 10
DISCOUNT = 0.9995  # of online performance, per round
_BLOCK = 8192  # documents scored at once: their scores stay near the processor

Empty = Literal["skip", "zero"]


class Quality(NamedTuple):
    ndcg: Array  # [rankers] nDCG@10
    mrr: Array  # [rankers] 1 / rank of the first document of grade >= 1 within 10


def gain_table(grades: int) -> Array:
    """[grades, 10]: what a document of a grade adds to DCG@10 at a rank."""
    return np.outer(2.0 ** np.arange(grades) - 1, 1 / np.log2(np.arange(2, CUT + 2)))


def ideal_dcg(labels: Array, offsets: Array, grades: int) -> Array:
    """[queries] DCG@10 of the best order of each query's documents."""
    gains, best = gain_table(grades), np.zeros(len(offsets) - 1)
    fill_ideal(labels, offsets, gains, np.zeros(grades, dtype=np.int64), best)
    return best


def evaluate(
    score: Callable[[Array], Array],
    features: Array,
    labels: Array,
    offsets: Array,
    *,
    grades: int,
    empty: Empty = "skip",
) -> Quality:
    """Quality of many rankers; score(features [n, d]) -> float32 [n, rankers]."""
    ideal = ideal_dcg(labels, offsets, grades)
    counted = max(int(np.count_nonzero(ideal)) if empty == "skip" else len(ideal), 1)
    room = room_for(int(np.diff(offsets).max(initial=0)))
    totals: Array | None = None
    for first, last in _blocks(offsets):
        scores = score(features[offsets[first] : offsets[last]])
        if totals is None:
            totals = np.zeros((2, scores.shape[1]))
        part = offsets[first : last + 1]
        add_quality(scores, labels, part, ideal[first:last], gain_table(grades), room, totals)
    if totals is None:
        totals = np.zeros((2, 1))
    return Quality(totals[0] / counted, totals[1] / counted)


def _blocks(offsets: Array) -> list[tuple[int, int]]:
    """Runs of queries with about _BLOCK documents each."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        reach = int(np.searchsorted(offsets, offsets[cuts[-1]] + _BLOCK, side="right")) - 1
        cuts.append(min(max(reach, cuts[-1] + 1), len(offsets) - 1))
    return list(itertools.pairwise(cuts))


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
    """Mean of MaxRR over the clicks that users of a model would make on a list; click [shown, grades]."""
    ranks = np.arange(min(len(grades), CUT))
    clicked = click[ranks, np.asarray(grades)[: len(ranks)]]
    unclicked_so_far = np.concatenate([[1.0], np.cumprod(1 - clicked)[:-1]])
    return float((unclicked_so_far * clicked / (ranks + 1)).sum())


def discounted(values: Array, *, first_round: int = 1) -> float:
    """Sum of 0.9995^(round - 1) * value over consecutive rounds."""
    return float(DISCOUNT ** np.arange(first_round - 1, first_round - 1 + len(values)) @ np.asarray(values))
