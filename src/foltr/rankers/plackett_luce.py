"""Plackett-Luce: a distribution over rankings in which each next document is drawn in proportion to exp(score).

Source: S0 equations 1 and 2. Readable twins of `draw_kernel`: both use the same numbers of a stream in the same
way, so they draw the same lists.

Differs from the paper: a document is drawn from all of them and drawn again if it is already in the list, which is
the same as drawing from the ones that remain and needs no new sums at each rank. Once the list holds most of the mass
its documents are taken out.
"""

import numpy as np

from foltr.rankers.draw_kernel import CROWDED
from foltr.rng import Stream
from foltr.types import Array


def sample(scores: Array, shown: int, draws: Stream) -> Array:
    """The first documents of a random ranking, without replacement."""
    ranking: list[int] = []
    mass = remaining = _masses(scores, ranking)
    for _ in range(min(shown, len(scores))):
        if remaining.sum() < CROWDED * mass.sum():
            mass = remaining = _masses(scores, ranking)
        document = _draw(mass, draws)
        draws = draws.skip(1)
        while document in ranking:
            document = _draw(mass, draws)
            draws = draws.skip(1)
        ranking.append(document)
        remaining = np.where(np.arange(len(scores)) == document, 0.0, remaining)
    return np.array(ranking, dtype=np.int64)


def _masses(scores: Array, taken: list[int]) -> Array:
    """exp(score) of the documents not yet taken, relative to the best of them."""
    left = np.ones(len(scores), dtype=bool)
    left[taken] = False
    return np.where(left, np.exp(np.minimum(scores - scores[left].max(), 0.0)), 0.0)


def _draw(mass: Array, draws: Stream) -> int:
    reach = np.cumsum(mass)
    return int(np.searchsorted(reach, draws.uniform(1)[0] * reach[-1], side="right"))


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
