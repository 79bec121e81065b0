"""How good each party's ranker is, and who gains and who loses by another regime.

Source: S3 section VI-A and Table I: ERR, nDCG@10 and nDCG of the whole list. Queries without a relevant document are
left out. A party gains or loses if the 95 % interval of its mean change over queries (paired, normal) leaves out 0.

Differs from the paper: it prints means of one run; here they come with intervals.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.metrics import err, ndcg, order
from foltr.types import Array, Dataset

MEASURES = ("ERR", "nDCG@10", "nDCG")
_WIDTH = 1.96  # standard errors on each side of a 95 % interval


class Change(NamedTuple):
    mean: float
    low: float
    high: float
    verdict: Literal["gains", "loses", "same"]


def marks(ranker: Array, data: Dataset, *, top_grade: int) -> Array:
    """[queries with a relevant document, 3] in the order of MEASURES."""
    scores = data.features @ ranker
    rows = []
    for first, last in itertools.pairwise(data.offsets):
        grades, falling = data.labels[first:last], -np.arange(last - first)
        if grades.any():
            ranked = grades[order(scores[first:last])]  # sorted once: what is in order sorts fast
            whole = err(falling, ranked, top_grade=top_grade, cut=len(ranked))
            rows.append((whole, ndcg(falling, ranked), ndcg(falling, ranked, cut=len(ranked))))
    return np.array(rows).reshape(-1, len(MEASURES))


def every_mark(rankers: Array, tests: Sequence[Dataset], *, top_grade: int) -> list[list[Array]]:
    """[rankers][tests] marks of each on each; equal rankers are looked at once, and often all parties have one."""
    found: dict[bytes, list[Array]] = {}
    for ranker in rankers:
        if ranker.tobytes() not in found:
            found[ranker.tobytes()] = [marks(ranker, data, top_grade=top_grade) for data in tests]
    return [found[ranker.tobytes()] for ranker in rankers]


def change(before: Array, after: Array) -> Change:
    """What a party gains from one regime to another, of one measure of the same queries."""
    if len(before) != len(after) or len(after) < 2:
        raise SpecError(f"{len(before)} and {len(after)} queries cannot be paired; use the same ones, 2 or more")
    gaps = after - before
    mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    low, high = mean - _WIDTH * error, mean + _WIDTH * error
    return Change(mean, low, high, "gains" if low > 0 else "loses" if high < 0 else "same")
