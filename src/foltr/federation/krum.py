"""Krum, Multi-Krum and Bulyan: clients are judged by their distances to their nearest neighbours.

Sources: S2 section 5.3.1 (Krum, Multi-Krum with f = n - m); Blanchard et al. 2017; El Mhamdi et al. 2018 (Bulyan).

A client's score is the sum of its n - m - 2 smallest Euclidean distances to others; the smallest score is selected,
and of equal scores the earliest client's. (Two clients that are each other's nearest neighbours always tie where
n - m - 2 = 1.) All clients count alike: interactions are no weights here. Bulyan selects n - 2m clients by Krum, one
after the other from those that remain, and averages per coordinate the n - 4m values nearest to their median; of two
equally near values it takes the lower.

What m attackers can do: with n >= 2m + 2, the delta that Krum or Multi-Krum selects is within n - m - 2 honest
diameters of an honest one, and Bulyan stays within one honest width of the honest values in every coordinate. With
n = 2m + 1 identical attackers have the score 0 and Krum selects them, however far away they are.

Differs from the paper: Krum's own paper sums squared distances and asks for n > 2m + 2; the thesis sums distances and
goes up to n = 10, m = 4; this follows the thesis, in Bulyan too. Bulyan's last selections, where fewer than m + 3
clients remain, use one neighbour, since n - m - 2 would leave none.
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from foltr._kernels import aggregation
from foltr.federation.aggregators import finite_rows, minority
from foltr.types import Array

_DIRECT = 64  # clients up to which every difference is computed; beyond that a matrix product is faster
_COLUMNS = 1024  # of the matrix product at a time: no second copy of all updates
_ROUNDING = 1e-13  # of the squared lengths: squared distances below this are rounding of the product


REQUIREMENT = "n - m - 2 >= 1 and m < n / 2"  # of a score


def max_byzantine(n: int) -> int:
    """The largest number of attackers that leaves a score a neighbour, and is a minority."""
    return min(minority(n), n - 3)


def has_ties(n: int, num_byzantine: int) -> bool:
    """A score of one neighbour: two nearest neighbours of each other always tie."""
    return n - num_byzantine - 2 < 2


class Krum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="krum"):
    """The delta with the smallest score."""

    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True
    requirement: ClassVar[str] = REQUIREMENT

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, _, num_byzantine = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        if len(rows) == 0:
            return np.zeros(rows.shape[1])
        selected: Array = rows[np.argmin(_scores(rows, num_byzantine))].copy()
        return selected

    max_byzantine = staticmethod(max_byzantine)
    has_ties = staticmethod(has_ties)


class MultiKrum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="multi_krum"):
    """Plain mean of the n - m deltas with the smallest scores."""

    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True
    requirement: ClassVar[str] = REQUIREMENT

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, _, num_byzantine = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        mean = np.zeros(rows.shape[1])
        if len(rows):
            best = np.argsort(_scores(rows, num_byzantine), kind="stable")[: max(1, len(rows) - num_byzantine)]
            aggregation.mean_of_rows(rows, best, mean)
        return mean

    max_byzantine = staticmethod(max_byzantine)
    has_ties = staticmethod(has_ties)


class Bulyan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="bulyan"):
    """Per coordinate the mean of the n - 4m values nearest to the median of n - 2m deltas selected by Krum."""

    sees: ClassVar[Literal["sum", "single"]] = "single"
    translation_equivariant: ClassVar[bool] = True
    requirement: ClassVar[str] = "n >= 4 m + 3"

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:
        rows, _, num_byzantine = finite_rows(values, weights, num_byzantine, aggregation.all_finite)
        n, mean = len(rows), np.zeros(rows.shape[1])
        if n:
            distances, selected = pairwise_distances(rows), np.empty(max(1, n - 2 * num_byzantine), dtype=np.int64)
            order = np.argsort(distances, axis=1, kind="stable")
            aggregation.select_repeatedly(distances, order, num_byzantine, np.empty(n, dtype=np.bool_), selected)
            nearest = max(1, n - 4 * num_byzantine)
            aggregation.mean_near_median(rows, selected, nearest, np.empty(len(selected)), mean)
        return mean

    def max_byzantine(self, n: int) -> int:
        return min(minority(n), (n - 3) // 4)

    def has_ties(self, n: int, num_byzantine: int) -> bool:  # noqa: ARG002
        return 1 <= num_byzantine <= 2  # the last selection is among 2m + 1 clients, with m - 1 neighbours each


def pairwise_distances(rows: Array) -> Array:
    """[n, n] Euclidean; among many clients by one matrix product."""
    distances = np.empty((len(rows), len(rows)))
    if len(rows) <= _DIRECT:
        aggregation.pairwise_distances(rows, distances)
        return distances
    distances[:] = 0.0
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # overflowing squares become inf and NaN, which are replaced below
        for first in range(0, rows.shape[1], _COLUMNS):
            part = rows[:, first : first + _COLUMNS]
            distances += part @ part.T
        squares = distances.diagonal().copy()
        distances *= -2.0
        distances += squares[:, None]
        distances += squares
        distances[np.isnan(distances)] = np.inf  # inf - inf: infinitely far
        distances[distances < _ROUNDING * (squares[:, None] + squares)] = 0.0
    return np.sqrt(distances, out=distances)


def num_neighbours(n: int, num_byzantine: int) -> int:
    """Number of distances that a score sums: at least one, where there is another client."""
    return min(max(1, n - num_byzantine - 2), n - 1)


def _scores(rows: Array, num_byzantine: int) -> Array:
    n = len(rows)
    scores = np.empty(n)
    aggregation.sum_nearest(pairwise_distances(rows), num_neighbours(n, num_byzantine), np.empty(n), scores)
    return scores
