"""Any metric of `foltr.metrics.METRICS` for many rankers: each list is ranked once, then every metric is computed.

Values are expectations over all orders of tied documents; the closed forms are derived in `foltr.metrics`.
"""

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr.types import Array

NDCG, AP, RR, ERR, P, R = range(6)  # as in the first column of a plan


@kernel
def fill_values(scores: Array, labels: Array, offsets: Array, plan: Array, work: Array, values: Array) -> None:
    """values [metrics, queries, rankers]; scores start at the first query's first document.

    plan [metrics, 4]: kind, cut (0: none), lowest relevant grade, top grade; work [4, longest list + 1].
    """
    for q in range(offsets.size - 1):
        first, count = offsets[q] - offsets[0], offsets[q + 1] - offsets[q]
        grades = labels[offsets[q] : offsets[q + 1]]
        for i in range(count):
            work[0, i], work[2, i] = grades[i], 0.0
        _rank(work[0], work[2], count)  # work[0]: grades of the ideal order
        for ranker in range(scores.shape[1]):
            for i in range(count):
                score = scores[first + i, ranker]
                work[1, i], work[2, i] = score if score == score else -np.inf, grades[i]
            _rank(work[1], work[2], count)
            for m in range(plan.shape[0]):
                values[m, q, ranker] = _value(work, count, plan[m])


@callee
def _rank(scores: Array, grades: Array, count: int) -> None:
    """Both by falling score: Shell sort with Knuth's increments."""
    increment = 1
    while 3 * increment + 1 < count:
        increment = 3 * increment + 1
    while increment > 0:
        for i in range(increment, count):
            score, grade, at = scores[i], grades[i], i
            while at >= increment and scores[at - increment] < score:
                scores[at], grades[at] = scores[at - increment], grades[at - increment]
                at -= increment
            scores[at], grades[at] = score, grade
        increment //= 3


@callee
def _value(work: Array, count: int, metric: Array) -> float:
    ideal, scores, grades = work[0], work[1], work[2]
    kind, rel = metric[0], metric[2]
    cut = min(metric[1], count) if metric[1] > 0 else count
    if kind == ERR:
        return _err(scores, grades, work[3], cut, count, metric[3])
    total, above, before, relevant = 0.0, 0, 0, 0
    for i in range(count):
        relevant += ideal[i] >= rel
    while above < cut:
        n, m, gain = 0, 0, 0.0  # of the tie
        while above + n < count and scores[above + n] == scores[above]:
            m += grades[above + n] >= rel
            gain += 2.0 ** grades[above + n] - 1.0
            n += 1
        if kind == NDCG:
            for rank in range(above, min(above + n, cut)):
                total += gain / n / np.log2(rank + 2.0)
        elif kind == RR:
            total += _first_relevant(n, m, above, cut) if before == 0 else 0.0
        elif kind == AP:
            for j in range(min(n, cut - above)):
                others = j * (m - 1.0) / (n - 1.0) if n > 1 else 0.0
                total += m / n * (1.0 + before + others) / (above + j + 1.0)
        else:
            total += m / n * min(n, cut - above)
        above, before = above + n, before + m
    if kind == RR:
        return total
    if kind == P:
        return total / metric[1]
    best = _ideal(ideal, cut) if kind == NDCG else float(relevant)
    return total / best if best > 0.0 else 0.0


@inlined
def _first_relevant(n: int, m: int, above: int, cut: int) -> float:
    total, none_yet = 0.0, 1.0
    for j in range(min(n, cut - above)):
        if m > 0:
            next_none = none_yet * max(n - m - j, 0) / (n - j)
            total += (none_yet - next_none) / (above + j + 1.0)
            none_yet = next_none
    return total


@inlined
def _ideal(grades: Array, cut: int) -> float:
    total = 0.0
    for rank in range(cut):
        total += (2.0 ** grades[rank] - 1.0) / np.log2(rank + 2.0)
    return total


@callee
def _err(scores: Array, grades: Array, passed: Array, cut: int, count: int, max_rel: int) -> float:
    """passed[j]: mean over the subsets of size j of a tie of the probability to pass all of their documents."""
    total, reaches, above = 0.0, 1.0, 0
    while above < cut:
        n = 0
        passed[0] = 1.0
        while above + n < count and scores[above + n] == scores[above]:
            passes = 1.0 - (2.0 ** grades[above + n] - 1.0) / 2.0**max_rel
            n += 1
            passed[n] = passed[n - 1] * passes
            for size in range(n - 1, 0, -1):
                passed[size] = (size * passes * passed[size - 1] + (n - size) * passed[size]) / n
        for j in range(min(n, cut - above)):
            total += reaches * (passed[j] - passed[j + 1]) / (above + j + 1.0)
        reaches, above = reaches * passed[n], above + n
    return total
