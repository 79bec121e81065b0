"""Quality of many rankers at once: a lane for each ranker.

Lists are ranked by keys that break ties by place. Where two of the first eleven scores are equal and their order
counts, the values of that list are computed anew as expectations over all orders of tied documents (`foltr.metrics`).
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr._kernels.list_metrics import fill_values
from foltr._kernels.simd import fill_keys, highest_two_in_lanes
from foltr._kernels.simd.lanes import LANES, SCORE_PLACE_BITS
from foltr._kernels.workspace import aligned_zeros
from foltr.metrics import CUT, METRICS, Metric, gain_table
from foltr.types import Array

_PLACE_WIDTH = SCORE_PLACE_BITS.bit_length()
_MAGNITUDE = (1 << (63 - _PLACE_WIDTH)) - 1  # of a score's bits, without its sign
_SCORE_MAGNITUDE = _MAGNITUDE << _PLACE_WIDTH  # the same, in a key
_BLOCK = 8192  # documents scored at once: their scores stay in the cache


class Quality(NamedTuple):
    """Of nDCG@10, RR@10 (relevant from grade 1) and further metrics; 0 where no document is relevant."""

    totals: Array  # [metrics, rankers] sums over queries
    last: Array  # [metrics, queries] values of the last ranker


class LaneWorkspace(NamedTuple):
    """For ranking one query's documents by LANES rankers at once."""

    keys: Array  # [longest list + 3, LANES]
    best: Array  # [ranks + 2, LANES] highest keys, rank by rank
    bits: Array  # [ranks + 2, LANES] int64: the same memory
    dcg: Array  # [LANES]
    reciprocal: Array  # [LANES]
    tied: Array  # [LANES] int64: 1 where documents of different grades have equal scores


def lane_workspace(longest: int) -> LaneWorkspace:
    best = aligned_zeros(CUT + 2, LANES)
    bits, tied = best.view(np.int64), aligned_zeros(LANES).view(np.int64)
    return LaneWorkspace(
        aligned_zeros(longest + 3, LANES), best, bits, aligned_zeros(LANES), aligned_zeros(LANES), tied
    )


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
    scores: Array, labels: Array, offsets: Array, ideal: Array, gains: Array, workspace: LaneWorkspace, quality: Quality
) -> None:
    """Adds nDCG and RR of each query; scores start at the first query's first document.

    quality: totals [2, rankers], and the values [2, queries] of the last ranker.
    """
    for q in range(ideal.size):
        if ideal[q] > 0.0:
            first, count = offsets[q] - offsets[0], offsets[q + 1] - offsets[q]
            grades = labels[offsets[q] : offsets[q + 1]]
            for ranker in range(0, scores.shape[1], LANES):
                fill_keys(scores, first, count, ranker, workspace.keys)
                _rank_lists(grades, gains, workspace)
                for lane in range(min(LANES, scores.shape[1] - ranker)):
                    dcg, reciprocal = workspace.dcg[lane], workspace.reciprocal[lane]
                    if workspace.tied[lane] > 0:
                        column = scores[first : first + count, ranker + lane]
                        dcg, reciprocal = _expected(workspace, lane, column, grades, gains)
                    ndcg = dcg / ideal[q]
                    quality.totals[0, ranker + lane] += ndcg
                    quality.totals[1, ranker + lane] += reciprocal
                    quality.last[0, q], quality.last[1, q] = ndcg, reciprocal  # the last ranker's stay


@callee
def _rank_lists(grades: Array, gains: Array, workspace: LaneWorkspace) -> None:
    """Takes the two highest keys of every lane away, until all ranks are filled."""
    rows = (grades.size + 3) // 4 * 4
    for row in range(grades.size, rows):
        for lane in range(LANES):
            workspace.keys[row, lane] = -np.inf
    for lane in range(LANES):
        workspace.dcg[lane], workspace.reciprocal[lane] = 0.0, 0.0
    cut = min(gains.shape[1], grades.size)
    ranks = min(cut + 1, grades.size)  # one more: a tie across the cut
    for first in range(0, ranks, 2):
        highest_two_in_lanes(workspace.keys, rows, workspace.best[first : first + 2])
        for rank in range(first, min(first + 2, cut)):
            inverse = 1.0 / (rank + 1.0)
            for lane in range(LANES):
                document = document_of(workspace.best[rank, lane])
                workspace.keys[document, lane] = -np.inf
                grade = grades[document]
                workspace.dcg[lane] += gains[grade, rank]
                workspace.reciprocal[lane] = max(workspace.reciprocal[lane], (grade > 0) * inverse)
    _note_ties(workspace, grades, ranks, gains.shape[1])


@callee
def _note_ties(workspace: LaneWorkspace, grades: Array, ranks: int, cut: int) -> None:
    """Compares the scores of neighbours. A tie of equal grades has one value, unless it goes on behind the cut."""
    for lane in range(LANES):
        workspace.tied[lane] = 1
    for rank in range(1, ranks):  # lanes side by side: nearly no list has a tie
        for lane in range(LANES):
            apart = (workspace.bits[rank, lane] ^ workspace.bits[rank - 1, lane]) & _SCORE_MAGNITUDE
            workspace.tied[lane] &= np.int64(apart != 0)
    equal = False
    for lane in range(LANES):
        equal |= workspace.tied[lane] == 0
        workspace.tied[lane] = 0
    if equal:
        _note_ties_of_lanes(workspace, grades, ranks, cut)


@callee
def _note_ties_of_lanes(workspace: LaneWorkspace, grades: Array, ranks: int, cut: int) -> None:
    for lane in range(LANES):
        tied, before = 0, workspace.bits[0, lane] >> _PLACE_WIDTH
        for rank in range(1, ranks):
            score = workspace.bits[rank, lane] >> _PLACE_WIDTH
            if _equal(score, before):  # rare
                grade = grades[document_of(workspace.best[rank, lane])]
                if rank == cut or grade != grades[document_of(workspace.best[rank - 1, lane])]:
                    tied = 1
            before = score
        workspace.tied[lane] = tied


@inlined
def _equal(one: int, other: int) -> bool:
    """Whether two scores are equal, as the leading bits of their keys; 0 and -0 are."""
    return (one ^ other) & _MAGNITUDE == 0 and (one == other or one & _MAGNITUDE == 0)


@callee
def _expected(workspace: LaneWorkspace, lane: int, scores: Array, grades: Array, gains: Array) -> tuple[float, float]:
    """DCG and RR in the mean over all orders of tied documents; a tie across the cut is looked up in the whole list."""
    cut, above = gains.shape[1], 0
    shown, found = min(cut, grades.size), min(cut + 1, grades.size)
    dcg, reciprocal, searching = 0.0, 0.0, True
    while above < shown:
        n, m, gain, score = 0, 0, 0.0, workspace.bits[above, lane] >> _PLACE_WIDTH
        while above + n < found and _equal(workspace.bits[above + n, lane] >> _PLACE_WIDTH, score):
            grade = grades[document_of(workspace.best[above + n, lane])]
            n, m, gain = n + 1, m + (grade > 0), gain + gains[grade, 0]
        if above + n > cut:
            n, m, gain = 0, 0, 0.0
            top = _ordered(scores[document_of(workspace.best[above, lane])])
            for document in range(grades.size):
                if _ordered(scores[document]) == top:
                    n, m, gain = n + 1, m + (grades[document] > 0), gain + gains[grades[document], 0]
        none_yet = 1.0
        for drawn in range(min(n, cut - above)):
            dcg += gain / n * gains[1, above + drawn]
            if searching and m > 0:
                next_one = none_yet * max(n - m - drawn, 0) / (n - drawn)
                reciprocal += (none_yet - next_one) / (above + drawn + 1.0)
                none_yet = next_one
        searching = searching and m == 0
        above += n
    return dcg, reciprocal


@inlined
def _ordered(score: float) -> float:
    """The score, or the lowest one where it is no number."""
    return score if score == score else -np.inf


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
    score: Callable[[Array], Array], features: Array, labels: Array, offsets: Array, *, ideal: Array, grades: int,
    further: Sequence[Metric] = (),
) -> Quality:  # fmt: skip
    """Quality of many rankers; score(features [n, d]) -> float32 [n, rankers]; ideal: `ideal_dcg` of the labels."""
    gains, longest = gain_table(grades), int(np.diff(offsets).max(initial=0))
    workspace, work = lane_workspace(longest), np.empty((4, longest + 1))
    plan = np.array([_planned(metric) for metric in further], dtype=np.int64).reshape(-1, 4)
    last, totals = np.zeros((2 + len(plan), len(ideal))), np.zeros((2 + len(plan), 0))
    for begin, end in _blocks(offsets):
        scores = score(features[offsets[begin] : offsets[end]])
        if begin == 0:
            totals = np.zeros((2 + len(plan), scores.shape[1]))
        part, in_block = offsets[begin : end + 1], Quality(totals, last[:, begin:end])
        add_quality(scores, labels, part, ideal[begin:end], gains, workspace, in_block)
        if len(plan):
            values = np.zeros((len(plan), end - begin, scores.shape[1]))
            fill_values(scores, labels, part, plan, work, values)
            totals[2:] += values.sum(axis=1)
            last[2:, begin:end] = values[:, :, -1]
    return Quality(totals, last)


def highest_grades(labels: Array, offsets: Array) -> Array:
    """[queries] highest grade of a document; 0 for a query without documents."""
    highest, filled = np.zeros(len(offsets) - 1, dtype=np.int64), np.diff(offsets) > 0
    if filled.any():
        highest[filled] = np.maximum.reduceat(labels, offsets[:-1][filled])
    return highest


def _planned(metric: Metric) -> tuple[int, int, int, int]:
    """A row of the plan of `list_metrics`, whose kinds are numbered as in METRICS."""
    return list(METRICS).index(metric.kind), metric.cut or 0, metric.rel, metric.max_rel


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
