"""Metrics of rankings and their conventions.

METRICS is the table of metrics; a spec names them as ir_measures does: `nDCG@10`, `AP(rel=2)@10`, `ERR(max_rel=4)@20`.
A name states the lowest relevant grade (`rel`) and the top grade of the scale (`max_rel`; ir_measures' own ERR has 4).

Gain 2^grade - 1, discount log2(rank + 1), ideal over ALL documents of the query, cut at 10. Documents with equal scores
are a tie: the value of a metric is its expectation over all orders of tied documents, in closed form, so that the order
of a file decides nothing. Displayed lists keep the order of the documents (`order`).

Queries without a relevant document: `skip` them (S0-S2, the default offline) or count them as `zero` (S4, and always
online). Many rankers are evaluated at once: one matrix product scores a block of documents for all of them.

Differs from the papers: ties, which their programs leave to the sort; S4 averages with empty="zero".
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foltr.errors import SpecError, did_you_mean
from foltr.types import Array

CUT = 10
DISCOUNT = 0.9995  # of online performance, per round


def gain_table(grades: int) -> Array:
    """[grades, 10]: what a document of a grade adds to DCG@10 at a rank."""
    return np.outer(2.0 ** np.arange(grades) - 1, 1 / np.log2(np.arange(2, CUT + 2)))


def order(scores: Array) -> Array:
    """Documents from best to worst; equal scores keep the order of the documents."""
    return np.argsort(-np.asarray(scores), kind="stable")


def ranked_ties(scores: Array) -> tuple[Array, Array]:
    """[n] documents from best to worst, and [ties + 1] where each tie of equal scores begins among them, then n."""
    ranked = order(scores)
    falling = np.asarray(scores)[ranked]
    changes = np.flatnonzero(falling[1:] != falling[:-1]) + 1
    return ranked, np.concatenate([[0], changes, [len(ranked)]]) if len(ranked) else np.zeros(1, dtype=np.int64)


def ndcg(scores: Array, labels: Array, cut: int | None = CUT) -> float:
    """nDCG of one list; 0 where nothing is relevant. At every rank of a tie stands the tie's mean gain."""
    cut = len(labels) if cut is None else cut
    gains = 2.0 ** np.asarray(labels, dtype=float) - 1
    discounts = 1 / np.log2(np.arange(2, min(cut, len(gains)) + 2))
    best = float(np.sort(gains)[::-1][:cut] @ discounts)
    if best <= 0:
        return 0.0
    return float(_tie_means(gains, scores)[:cut] @ discounts) / best


def ap(scores: Array, labels: Array, *, rel: int = 1, cut: int | None = None) -> float:
    """Average precision over all documents of grade `rel` or higher; 0 where there is none.

    Of n tied documents with m relevant ones, the next after j is relevant with probability m / n, and then
    j (m - 1) / (n - 1) of the j before it are expected to be relevant.
    """
    ranked, begins = ranked_ties(scores)
    relevant = (np.asarray(labels) >= rel)[ranked]
    if not relevant.any():
        return 0.0
    n = np.diff(begins)
    m = np.add.reduceat(relevant.astype(float), begins[:-1])
    before, drawn = np.cumsum(m) - m, np.arange(len(ranked)) - np.repeat(begins[:-1], n)
    found = np.repeat(1 + before, n) + drawn * np.repeat((m - 1) / np.maximum(n - 1, 1), n)
    precisions = np.repeat(m / n, n) * found / np.arange(1, len(ranked) + 1)
    return float(precisions[:cut].sum() / m.sum())


def precision(scores: Array, labels: Array, *, rel: int = 1, cut: int) -> float:
    """Share of documents of grade `rel` or higher among the first `cut`, also of a shorter list."""
    return _retrieved(scores, np.asarray(labels) >= rel, cut) / cut


def recall(scores: Array, labels: Array, *, rel: int = 1, cut: int) -> float:
    """Share of the documents of grade `rel` or higher that is among the first `cut`; 0 where there is none."""
    relevant = np.asarray(labels) >= rel
    return _retrieved(scores, relevant, cut) / max(int(relevant.sum()), 1)


def _retrieved(scores: Array, relevant: Array, cut: int) -> float:
    """Expected number of relevant documents among the first `cut`; each of a tie is equally often in front."""
    return float(_tie_means(relevant.astype(float), scores)[:cut].sum())


def _tie_means(values: Array, scores: Array) -> Array:
    """[n] expected value at every rank: the mean of its tie."""
    ranked, begins = ranked_ties(scores)
    sizes = np.diff(begins)
    return np.repeat(np.add.reduceat(values[ranked], begins[:-1]) / sizes, sizes) if len(ranked) else values


def rr(scores: Array, labels: Array, *, rel: int = 1, cut: int | None = CUT) -> float:
    """Reciprocal rank of the first document of grade `rel` or higher; 0 where none is within the cut.

    Of n tied documents with m relevant ones, the first j are all irrelevant with probability C(n - m, j) / C(n, j).
    """
    ranked, begins = ranked_ties(scores)
    relevant = (np.asarray(labels) >= rel)[ranked]
    if not relevant.any():
        return 0.0
    tie = int(np.searchsorted(begins, relevant.argmax(), side="right")) - 1
    above, n = int(begins[tie]), int(begins[tie + 1] - begins[tie])
    m = int(relevant[above : above + n].sum())
    drawn = np.arange(n - m + 1)
    none_yet = np.concatenate([[1.0], np.cumprod((n - m - drawn) / (n - drawn))])
    ranks = above + 1 + drawn
    return float((-np.diff(none_yet) / ranks)[ranks <= (len(ranked) if cut is None else cut)].sum())


def err(scores: Array, labels: Array, *, max_rel: int, cut: int | None = CUT) -> float:
    """Expected reciprocal rank: a user stops at a document with probability (2^grade - 1) / 2^max_rel.

    The user passes the first j of tied documents with the mean product of 1 - stop over their subsets of size j, and
    all of them with the product, whatever their order.
    """
    ranked, begins = ranked_ties(scores)
    cut = len(ranked) if cut is None else cut
    passes = 1 - (2.0 ** np.asarray(labels, dtype=float)[ranked] - 1) / 2.0**max_rel
    reaches = np.concatenate([[1.0], np.cumprod(passes)])  # [n + 1] probability to get beyond the first j documents
    # most ties of a long list hold nothing that stops a user, and change nothing
    stops = np.minimum.reduceat(passes, begins[:-1]) < 1 if len(ranked) else np.zeros(0, dtype=bool)
    for tie in np.flatnonzero((np.diff(begins) > 1) & (begins[:-1] < cut) & stops):
        first, last = begins[tie], begins[tie + 1]
        reaches[first:last] = reaches[first] * _mean_products(passes[first:last])[:-1]
    ranks = np.arange(1, len(ranked) + 1)
    return float((-np.diff(reaches) / ranks)[:cut].sum())


def _mean_products(factors: Array) -> Array:
    """[n + 1] mean product of the factors of a subset, by its size; factors of 1 cost nothing."""
    others, n = factors[factors != 1], len(factors)
    means = np.ones(1)
    for m, factor in enumerate(others, start=1):
        size = np.arange(m + 1)
        with_it, without = np.concatenate([[0.0], means]), np.concatenate([means, [0.0]])
        means = (size * factor * with_it + (m - size) * without) / m
    if len(others) == n:
        return means
    return _hypergeometric(n, len(others)) @ means


def _hypergeometric(n: int, m: int) -> Array:
    """[n + 1, m + 1] probability that i of m marked documents are among j drawn of n."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    drawn, marked = np.arange(n + 1)[:, None], np.arange(m + 1)[None]
    unmarked = drawn - marked
    possible = (unmarked >= 0) & (unmarked <= n - m)
    unmarked = np.where(possible, unmarked, 0)

    def choose(total: int, some: Array) -> Array:
        return logs[total] - logs[some] - logs[total - some]

    return np.where(possible, np.exp(choose(m, marked) + choose(n - m, unmarked) - choose(n, drawn)), 0.0)


def expected_max_rr(grades: Array, click: Array) -> float:
    """Expected MaxRR of a list under a click model; click [k, grades]."""
    ranks = np.arange(min(len(grades), CUT))
    clicked = click[ranks, np.asarray(grades)[: len(ranks)]]
    unclicked_so_far = np.concatenate([[1.0], np.cumprod(1 - clicked)[:-1]])
    return float((unclicked_so_far * clicked / (ranks + 1)).sum())


def discounted(values: Array, *, first_round: int = 1) -> float:
    """Sum of 0.9995^(round - 1) * value over consecutive rounds."""
    return float(DISCOUNT ** np.arange(first_round - 1, first_round - 1 + len(values)) @ np.asarray(values))


class MetricKind(NamedTuple):
    value: Callable[..., float]  # of (scores, labels, *, cut, parameters)
    parameters: tuple[str, ...]  # in brackets of a name
    needs_cut: bool


METRICS = {
    "nDCG": MetricKind(ndcg, (), False),
    "AP": MetricKind(ap, ("rel",), False),
    "RR": MetricKind(rr, ("rel",), False),
    "ERR": MetricKind(err, ("max_rel",), False),
    "P": MetricKind(precision, ("rel",), True),
    "R": MetricKind(recall, ("rel",), True),
}


class Metric(NamedTuple):
    """A metric with its parameters; as text, a name with all of them."""

    kind: str  # key of METRICS
    cut: int | None = None  # None: the whole list
    rel: int = 1  # lowest relevant grade
    max_rel: int = 0  # top grade of the scale; 0: that of the data

    def __str__(self) -> str:
        named = ",".join(f"{name}={value}" for name, value in self.parameters.items() if value)
        return f"{self.kind}{f'({named})' if named else ''}{'' if self.cut is None else f'@{self.cut}'}"

    @property
    def parameters(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in METRICS[self.kind].parameters}

    def value(self, scores: Array, labels: Array) -> float:
        """Value of one list; the compiled counterpart is `_kernels.list_metrics`."""
        return METRICS[self.kind].value(scores, labels, cut=self.cut, **self.parameters)


_NAME = re.compile(r"([A-Za-z]+)(?:\(([^()]*)\))?(?:@(\d{1,9}))?")
_PARAMETER = re.compile(r"\s*(\w+)\s*=\s*(\d{1,3})\s*")


def parse_metric(name: str) -> Metric:
    """The metric of a name such as AP(rel=2)@10."""
    parts = _NAME.fullmatch(name.strip())
    if parts is None:
        raise SpecError(f"{name!r}: expected a metric such as nDCG@10 or AP(rel=2)@10")
    kind = METRICS.get(parts[1])
    if kind is None:
        raise SpecError(
            f"{name}: no metric {parts[1]!r}; there are {', '.join(METRICS)}.{did_you_mean(parts[1], METRICS)}"
        )
    if kind.needs_cut and parts[3] is None:
        raise SpecError(f"{name}: {parts[1]} needs a cut, such as {name}@10")
    if parts[3] is not None and int(parts[3]) < 1:
        raise SpecError(f"{name}: expected a cut of 1 or more")
    return Metric(parts[1], int(parts[3]) if parts[3] else None, **_parameters(name, parts[2] or "", kind))


def _parameters(name: str, text: str, kind: MetricKind) -> dict[str, Any]:
    values = {}
    for part in filter(None, text.split(",")):
        found = _PARAMETER.fullmatch(part)
        if found is None or found[1] not in kind.parameters or int(found[2]) < 1:
            known = ", ".join(f"{one}=1" for one in kind.parameters) or "none"
            raise SpecError(f"{name}: {part.strip()!r} is no parameter of this metric; there are: {known} (1 or more)")
        values[found[1]] = int(found[2])
    return values


def on_scale(metric: Metric, top_grade: int) -> Metric:
    """The metric with the top grade of the data where its name states none; a name beyond the data is refused."""
    if metric.rel > top_grade:
        raise SpecError(f"{metric}: no document has grade {metric.rel}; the data's top grade is {top_grade}")
    if "max_rel" not in METRICS[metric.kind].parameters:
        return metric
    if 0 < metric.max_rel < top_grade:
        raise SpecError(f"{metric}: the data's top grade is {top_grade}; use max_rel={top_grade} or more")
    return metric._replace(max_rel=metric.max_rel or top_grade)
