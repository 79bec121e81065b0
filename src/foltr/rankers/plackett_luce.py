"""Plackett-Luce: a distribution over rankings in which each next document is drawn in proportion to exp(score).

Source: S0 equations 1 and 2. `sample` is the reference of the compiled sampler: both use the same numbers of a
stream, so they draw the same lists.

Differs from the paper: all documents are drawn at once by an exponential race: each gets an exponential time with rate
exp(score), and the ranking sorts by time. Exponential times are memoryless, so the next document is drawn in proportion
to exp(score) from the remaining ones (in logarithms: the Gumbel trick).
"""

import numpy as np

from foltr.rng import Stream
from foltr.types import Array

DRAWS = 1 << 20  # numbers of a stream that are set aside for one list, one for each document


def sample(scores: Array, k: int, draws: Stream) -> Array:
    """The first documents of a random ranking, without replacement."""
    times = -np.log1p(-draws.uniform(len(scores)))
    return np.argsort(np.log(times) - scores, kind="stable")[:k]


def log_probability(scores: Array, ranking: Array) -> float:
    """log P(the list starts with this ranking)."""
    remaining = np.ones(len(scores), dtype=bool)
    total = 0.0
    for document in ranking:
        total += float(scores[document]) - log_mass(scores[remaining])
        remaining[document] = False
    return total


def log_mass(scores: Array) -> float:
    """log of the sum of exp(scores)."""
    top = float(np.max(scores))
    return top + float(np.log(np.exp(scores - top).sum()))
