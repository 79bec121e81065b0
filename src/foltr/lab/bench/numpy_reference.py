"""PDGD in NumPy as published programs write it, a reference for speed: one tensor of pairs x ranks x documents.

It samples with Gumbel noise, builds the swapped ranking of every pair, marks the documents drawn before each rank by a
cumulative sum, and computes the probability of each ranking from the scores of all documents. Only the benchmark and
its tests use it.
"""

import numpy as np

from foltr.clicks import ClickModel, clicks_on
from foltr.learners.pdgd import preferences
from foltr.rng import Stream
from foltr.types import Array, Dataset

_BLOCK = 1 << 16  # random numbers drawn at once; no list has half as many documents


def train(
    data: Dataset, users: ClickModel, parameters: Array, interactions: int, learning_rate: float, draws: Stream
) -> tuple[Array, Array]:
    """Parameters after so many interactions, and [interactions, 2] nDCG@10 and MaxRR of the displayed lists."""
    k, queries = len(users.click), len(data.offsets) - 1
    online = np.zeros((interactions, 2))
    numbers, at = draws.uniform(_BLOCK), 0
    for interaction in range(interactions):
        query = int(numbers[at] * queries)
        rows = slice(data.offsets[query], data.offsets[query + 1])
        features, grades = data.features[rows].astype(np.float64), data.labels[rows]
        scores = features @ parameters
        after = at + 1 + len(scores)
        noise = -np.log(-np.log(1 - numbers[at + 1 : after]))
        ranking = np.argsort(-(scores + noise), kind="stable")[:k]
        clicks = clicks_on(grades[ranking], users, numbers[after : after + 2 * len(ranking)])
        first = np.flatnonzero(clicks)
        online[interaction] = ndcg(grades[ranking], grades), 1 / (first[0] + 1) if first.size else 0.0
        parameters = parameters + learning_rate * gradient(features, scores, ranking, clicks)
        at = after + 2 * k
        if at + _BLOCK // 2 > _BLOCK:  # random numbers come in blocks: drawing them is not what is measured
            draws, numbers, at = draws.skip(at), draws.skip(at).uniform(_BLOCK), 0
    return parameters, online


def ndcg(displayed: Array, grades: Array) -> float:
    discounts = 1 / np.log2(np.arange(2, len(displayed) + 2))
    best = (2.0 ** np.sort(grades)[::-1][: len(displayed)] - 1) @ discounts
    return float((2.0**displayed - 1) @ discounts / best) if best > 0 else 0.0


def gradient(features: Array, scores: Array, ranking: Array, clicks: Array) -> Array:
    pairs = np.array(preferences(clicks)).reshape(-1, 2)
    if not len(pairs):
        return np.zeros(features.shape[1])
    positives, negatives = ranking[pairs[:, 0]], ranking[pairs[:, 1]]
    swapped = np.tile(ranking, (len(pairs), 1))  # [pairs, ranks]
    every = np.arange(len(pairs))
    swapped[every, pairs[:, 0]], swapped[every, pairs[:, 1]] = negatives, positives
    displayed, other = log_probabilities(scores, ranking[None])[0], log_probabilities(scores, swapped)
    weight = 1 / (1 + np.exp(displayed - other))
    decay = np.exp(-np.abs(scores[positives] - scores[negatives]))
    weight = weight * decay / (1 + decay) ** 2
    change: Array = weight @ (features[positives] - features[negatives])
    return change


def log_probabilities(scores: Array, rankings: Array) -> Array:
    """[lists] log P of each ranking [lists, ranks], from a tensor of the documents that remain at each rank."""
    lists, ranks = rankings.shape
    drawn = np.zeros((lists, ranks, len(scores)))
    drawn[np.arange(lists)[:, None], np.arange(1, ranks)[None], rankings[:, :-1]] = 1
    removed = np.cumsum(drawn, axis=1) > 0
    left = np.tile(scores, (lists, ranks, 1))
    left[removed] = -np.inf
    top = left.max(axis=2, keepdims=True)
    mass = top[..., 0] + np.log(np.exp(left - top).sum(axis=2))
    return (scores[rankings] - mass).sum(axis=1)
