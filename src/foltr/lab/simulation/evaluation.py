"""The result of a single run, and the offline quality of its rankers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.metrics import evaluate, highest_grades, ideal_dcg
from foltr.metrics import DISCOUNT, Metric, parse_metric
from foltr.rankers import Linear
from foltr.types import OTHER, Array, Dataset, Empty

RECORDED = 1000  # rows stored of each online metric, about
EVALUATED = 100  # offline evaluations of a run, about
_RANKERS = 32  # evaluated with one matrix product
USUAL = parse_metric("nDCG@10"), parse_metric("RR@10")  # metrics of every offline evaluation
NDCG = str(USUAL[0])


class RunResult(NamedTuple):
    """The result of a single run."""

    rounds: Array  # [rows] at which online values are stored: the mean since the row before
    online: Array  # [3, rows] nDCG@10, MaxRR, discounted nDCG@10 so far
    evaluated: Array  # [evaluations] rounds
    offline: Array  # [metrics, evaluations]; names in `query_metrics`, nDCG@10 and RR@10 first
    parameters: Array  # [P] at the end
    interactions: int
    seconds: float
    more: Array = np.empty(0)  # [names] further metrics of the end
    names: Array = np.empty(0, dtype=str)  # [names]
    client_ndcg: Array = np.empty(0)  # [clients] offline nDCG@10 at the end, each on its own test queries
    clients: Array = np.empty(0, dtype=str)  # [clients] names; none where all clients have the same test queries
    client_other: Array = np.empty(0)  # [clients] by the other choice of `metrics.empty`
    client_queries: Array = np.empty((0, 2), dtype=np.int64)  # [clients, 2] with a relevant document, and all of them
    points: Array = np.empty((0, 0))  # [names, points] of a picture, in the place of rounds
    point_names: Array = np.empty(0, dtype=str)
    offline_other: Array = np.empty(0)  # [metrics] at the end, by the other choice of `metrics.empty`
    query_metrics: Array = np.empty(0, dtype=str)  # [metrics] names of the rows of `query_values`
    query_ids: Array = np.empty(0, dtype=str)  # [queries] of the test part, each once
    query_values: Array = np.empty((0, 0), dtype=np.float32)  # [metrics, queries] at the end; NaN: nothing relevant


class Progress(NamedTuple):
    """Progress of a single run."""

    interactions: int
    quality: float  # online nDCG@10 of the latest round


def thin(ndcg: Array, max_rr: Array) -> tuple[Array, Array]:
    """Rounds at which rows are stored (always the first and the last), and the values there."""
    rounds = len(ndcg)
    every = max(1, rounds // RECORDED)
    at = np.array(sorted({1, *range(every, rounds + 1, every), rounds}))
    begin = np.concatenate([[0], at[:-1]])
    spans = (at - begin).astype(float)
    means = [np.add.reduceat(values, begin) / spans for values in (ndcg, max_rr)]
    so_far = np.cumsum(ndcg * DISCOUNT ** np.arange(rounds))[at - 1]
    return at, np.stack([*means, so_far])


class OfflineValues(NamedTuple):
    """Offline metrics of rankers on a test set; 0 on queries without a relevant document."""

    totals: dict[str, Array]  # metric -> [rankers] sum over queries
    last: dict[str, Array]  # metric -> [queries] of the last ranker
    relevant: dict[str, Array]  # metric -> [queries] bool: whether some document is relevant


def query_quality(
    ranker: Any, parameters: Array, test: Dataset, grades: int, metrics: Sequence[Metric] = ()
) -> OfflineValues:
    """nDCG@10, RR@10 and further metrics of rankers [rankers, P], a block of rankers at a time."""
    further = [metric for metric in metrics if metric not in USUAL]
    ideal = ideal_dcg(test.labels, test.offsets, grades)
    parts = [
        evaluate(
            scorer(ranker, parameters[first : first + _RANKERS]),
            test.features, test.labels, test.offsets, ideal=ideal, grades=grades, further=further,
        )
        for first in range(0, len(parameters), _RANKERS)
    ]  # fmt: skip
    names, top = [str(metric) for metric in (*USUAL, *further)], highest_grades(test.labels, test.offsets)
    return OfflineValues(
        dict(zip(names, np.concatenate([part.totals for part in parts], axis=1), strict=True)),
        dict(zip(names, parts[-1].last, strict=True)),
        {str(metric): top >= metric.rel for metric in (*USUAL, *further)},
    )


def means(quality: OfflineValues, empty: Empty = "skip") -> dict[str, Array]:
    """metric -> [rankers] mean over the queries with a relevant document, or over all of them."""
    return {
        metric: totals / max(_count(quality.relevant[metric], empty), 1) for metric, totals in quality.totals.items()
    }


def _count(relevant: Array, empty: Empty) -> int:
    return int(np.count_nonzero(relevant)) if empty == "skip" else len(relevant)


def both_means(quality: OfflineValues, empty: Empty) -> tuple[Array, Array]:
    """[metrics, rankers] means by `empty`, and [metrics] those of the last ranker by the other choice."""
    chosen, other = means(quality, empty), means(quality, OTHER[empty])
    return np.stack(list(chosen.values())), np.array([values[-1] for values in other.values()])


def sizes(quality: OfflineValues) -> tuple[int, int]:
    """Queries with a relevant document by nDCG@10, and all queries."""
    return int(np.count_nonzero(quality.relevant[NDCG])), len(quality.relevant[NDCG])


def offline_quality(
    ranker: Any, parameters: Array, test: Dataset, grades: int, empty: Empty = "skip"
) -> dict[str, Array]:
    """metric -> [rankers] mean over test queries."""
    return means(query_quality(ranker, parameters, test, grades), empty)


def final_values(parts: Sequence[tuple[OfflineValues, Array]]) -> dict[str, Array]:
    """Fields of `RunResult` about single queries, of the last ranker.

    `parts` holds the quality and the query ids of every client that was tested apart, or of all together. A query that
    several clients were tested on has the mean of those for whom some document is relevant.
    """
    ids, copies = np.unique(np.concatenate([queries for _, queries in parts]), return_inverse=True)
    names, rows = list(parts[0][0].last), []
    for name in names:
        relevant = np.concatenate([quality.relevant[name] for quality, _ in parts])
        last = np.concatenate([quality.last[name] for quality, _ in parts])
        counted = np.bincount(copies, weights=relevant, minlength=len(ids))
        sums = np.bincount(copies, weights=last * relevant, minlength=len(ids))
        rows.append(np.where(counted > 0, sums / np.maximum(counted, 1), np.nan))
    return {
        "query_metrics": np.array(names),
        "query_ids": ids.astype(str),
        "query_values": np.array(rows, dtype=np.float32),
    }


def scorer(ranker: Any, block: Array) -> Callable[[Array], Array]:
    """features [n, d] -> float32 scores [n, rankers]; linear rankers share one matrix product."""
    if isinstance(ranker, Linear):
        weights = np.ascontiguousarray(block.T, dtype=np.float32)
        return lambda features: features @ weights
    score = getattr(ranker, "score_many", ranker.score)
    return lambda features: np.stack(
        [score(one, features) for one in block], axis=1, dtype=np.float32, casting="same_kind"
    )
