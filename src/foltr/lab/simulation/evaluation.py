"""The result of a single run, and the offline quality of its rankers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.metrics import evaluate_queries
from foltr.metrics import DISCOUNT
from foltr.rankers import Linear
from foltr.types import Array, Dataset

RECORDED = 1000  # rows stored of each online metric, about
EVALUATED = 100  # offline evaluations of a run, about
_RANKERS = 32  # evaluated with one matrix product
NDCG, RR = "nDCG@10", "RR@10"  # metrics of every offline evaluation


class RunResult(NamedTuple):
    """The result of a single run."""

    rounds: Array  # [rows] at which online values are stored: the mean since the row before
    online: Array  # [3, rows] nDCG@10, MaxRR, discounted nDCG@10 so far
    evaluated: Array  # [evaluations] rounds
    offline: Array  # [2, evaluations] nDCG@10, MRR@10
    parameters: Array  # [P] at the end
    interactions: int
    seconds: float
    more: Array = np.empty(0)  # [names] further metrics of the end
    names: Array = np.empty(0, dtype=str)  # [names]
    client_ndcg: Array = np.empty(0)  # [clients] offline nDCG@10 at the end, each on its own test queries
    clients: Array = np.empty(0, dtype=str)  # [clients] names; none where all clients have the same test queries
    points: Array = np.empty((0, 0))  # [names, points] of a picture, in the place of rounds
    point_names: Array = np.empty(0, dtype=str)
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


class QueryQuality(NamedTuple):
    """Offline metrics of rankers on every query of a test set."""

    values: dict[str, Array]  # metric -> [queries, rankers]; 0 where no document is relevant
    relevant: dict[str, Array]  # metric -> [queries] bool: whether some document is relevant


def query_quality(ranker: Any, parameters: Array, test: Dataset, grades: int) -> QueryQuality:
    """nDCG@10 and RR@10 of rankers [rankers, P] on every query, a block of rankers at a time."""
    parts = [
        evaluate_queries(
            scorer(ranker, parameters[first : first + _RANKERS]),
            test.features, test.labels, test.offsets, grades=grades,
        )
        for first in range(0, len(parameters), _RANKERS)
    ]  # fmt: skip
    return QueryQuality(
        {
            NDCG: np.concatenate([part.ndcg for part in parts], axis=1),
            RR: np.concatenate([part.rr for part in parts], axis=1),
        },
        dict.fromkeys((NDCG, RR), parts[0].relevant),
    )


def means(quality: QueryQuality) -> dict[str, Array]:
    """metric -> [rankers] mean over the queries with a relevant document."""
    return {
        metric: values.sum(axis=0) / max(int(np.count_nonzero(quality.relevant[metric])), 1)
        for metric, values in quality.values.items()
    }


def offline_quality(ranker: Any, parameters: Array, test: Dataset, grades: int) -> dict[str, Array]:
    """metric -> [rankers] mean over the test queries with a relevant document."""
    return means(query_quality(ranker, parameters, test, grades))


def final_values(parts: Sequence[tuple[QueryQuality, Array]]) -> dict[str, Array]:
    """Fields of `RunResult` about single queries, of the last ranker.

    `parts` holds the quality and the query ids of every client that was tested apart, or of all together. A query that
    several clients were tested on has the mean of those for whom some document is relevant.
    """
    ids, copies = np.unique(np.concatenate([queries for _, queries in parts]), return_inverse=True)
    names, rows = list(parts[0][0].values), []
    for name in names:
        relevant = np.concatenate([quality.relevant[name] for quality, _ in parts])
        last = np.concatenate([quality.values[name][:, -1] for quality, _ in parts])
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
