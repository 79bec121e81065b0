"""Quality of many rankers at once: a lane for each ranker."""

import itertools
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr._kernels.simd import fill_keys, highest_in_lanes
from foltr._kernels.simd.lanes import LANES, SCORE_PLACE_BITS
from foltr._kernels.workspace import aligned_zeros
from foltr.metrics import gain_table
from foltr.types import Array

_BLOCK = 8192  # documents scored at once: their scores stay in the cache

Empty = Literal["skip", "zero"]


class Quality(NamedTuple):
    ndcg: Array  # [rankers] nDCG@10
    mrr: Array  # [rankers] 1 / rank of the first document of grade >= 1 within 10


class LaneWorkspace(NamedTuple):
    """For ranking one query's documents by LANES rankers at once."""

    keys: Array  # [longest list + 3, LANES]
    best: Array  # [LANES]
    dcg: Array  # [LANES]
    reciprocal: Array  # [LANES]


def lane_workspace(longest: int) -> LaneWorkspace:
    return LaneWorkspace(aligned_zeros(longest + 3, LANES), *(aligned_zeros(LANES) for _ in range(3)))


@kernel
def fill_ideal(labels: Array, offsets: Array, gains: Array, counts: Array, best: Array) -> None:
    grades = counts.size
    for q in range(offsets.size - 1):
        for g in range(grades):
            counts[g] = 0
        for i in range(offsets[q], offsets[q + 1]):
            counts[labels[i]] += 1
        rank = 0
        for g in range(grades - 1, 0, -1):
            for _ in range(counts[g]):
                if rank < gains.shape[1]:
                    best[q] += gains[g, rank]
                    rank += 1


@kernel
def add_quality(
    scores: Array, labels: Array, offsets: Array, ideal: Array, gains: Array, workspace: LaneWorkspace, totals: Array
) -> None:
    """totals [2, rankers] += nDCG and MRR of each query; scores start at the first query's first document."""
    for q in range(ideal.size):
        if ideal[q] > 0.0:
            first, count = offsets[q] - offsets[0], offsets[q + 1] - offsets[q]
            grades = labels[offsets[q] : offsets[q + 1]]
            for ranker in range(0, scores.shape[1], LANES):
                fill_keys(scores, first, count, ranker, workspace.keys)
                lanes = min(LANES, scores.shape[1] - ranker)
                _add_lists(grades, lanes, ideal[q], gains, workspace, totals[:, ranker:])


@callee
def _add_lists(grades: Array, lanes: int, ideal: float, gains: Array, workspace: LaneWorkspace, totals: Array) -> None:
    """Takes the highest key of every lane away, rank by rank."""
    rows = (grades.size + 3) // 4 * 4
    for row in range(grades.size, rows):
        for lane in range(LANES):
            workspace.keys[row, lane] = -np.inf
    for lane in range(LANES):
        workspace.dcg[lane], workspace.reciprocal[lane] = 0.0, 0.0
    for rank in range(min(gains.shape[1], grades.size)):
        highest_in_lanes(workspace.keys, rows, workspace.best)
        for lane in range(LANES):
            document = document_of(workspace.best[lane])
            workspace.keys[document, lane] = -np.inf
            grade = grades[document]
            workspace.dcg[lane] += gains[grade, rank]
            workspace.reciprocal[lane] = max(workspace.reciprocal[lane], (grade > 0) / (rank + 1.0))
    for lane in range(lanes):
        totals[0, lane] += workspace.dcg[lane] / ideal
        totals[1, lane] += workspace.reciprocal[lane]


@inlined
def document_of(key: float) -> int:
    """The place that a key holds."""
    bits = np.float64(key).view(np.int64)
    return int(bits & SCORE_PLACE_BITS if bits < 0 else SCORE_PLACE_BITS - (bits & SCORE_PLACE_BITS))


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
    workspace = lane_workspace(int(np.diff(offsets).max(initial=0)))
    totals: Array | None = None
    for first, last in _blocks(offsets):
        scores = score(features[offsets[first] : offsets[last]])
        if totals is None:
            totals = np.zeros((2, scores.shape[1]))
        part = offsets[first : last + 1]
        add_quality(scores, labels, part, ideal[first:last], gain_table(grades), workspace, totals)
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


@kernel
def mean_online(ndcg: Array, max_rr: Array, means: Array) -> None:
    first, second = 0.0, 0.0
    for i in range(ndcg.size):
        first += ndcg[i]
        second += max_rr[i]
    means[0, 0], means[1, 0] = first / ndcg.size, second / ndcg.size
