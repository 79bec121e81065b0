"""The result of a single run, and the offline quality of its rankers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.metrics import evaluate
from foltr.metrics import DISCOUNT
from foltr.rankers import Linear
from foltr.types import Array, Dataset

RECORDED = 1000  # rows stored of each online metric, about
EVALUATED = 100  # offline evaluations of a run, about
_RANKERS = 32  # evaluated with one matrix product


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


def offline_quality(ranker: Any, parameters: Array, test: Dataset, grades: int) -> Array:
    """[2, rankers] nDCG@10 and MRR@10 of rankers [rankers, P], a block of them at a time."""
    parts = []
    for first in range(0, len(parameters), _RANKERS):
        block = parameters[first : first + _RANKERS]
        quality = evaluate(scorer(ranker, block), test.features, test.labels, test.offsets, grades=grades)
        parts.append(np.stack(quality))
    return np.concatenate(parts, axis=1)


def scorer(ranker: Any, block: Array) -> Callable[[Array], Array]:
    """features [n, d] -> float32 scores [n, rankers]; linear rankers share one matrix product."""
    if isinstance(ranker, Linear):
        weights = np.ascontiguousarray(block.T, dtype=np.float32)
        return lambda features: features @ weights
    score = getattr(ranker, "score_many", ranker.score)
    return lambda features: np.stack(
        [score(one, features) for one in block], axis=1, dtype=np.float32, casting="same_kind"
    )
