"""Krum, Multi-Krum and Bulyan: clients are judged by how far they are from their nearest others.

Sources: S2 section 5.3.1 (Krum, Multi-Krum with f = n - m); Blanchard et al. 2017; El Mhamdi et al. 2018 (Bulyan).

A client's score is the sum of its n - m - 2 smallest Euclidean distances to others, the smallest score wins, and the
earliest client wins a tie. (Two clients that are each other's nearest always tie where n - m - 2 = 1.) All clients
count alike: interactions are no weights here. Bulyan takes n - 2m clients by Krum, one after the other from those
that remain, and averages per coordinate the n - 4m values nearest to their median; of two equally near the lower.

What m attackers can do: with n >= 2m + 2, whoever Krum or Multi-Krum takes is within n - m - 2 honest diameters of an
honest client, and Bulyan stays within one honest width of the honest values in every coordinate. With n = 2m + 1
identical attackers have the score 0 and Krum takes them, however far away they are.

Differs from the paper: Krum's own paper sums squared distances and asks for n > 2m + 2; the thesis sums distances and
goes up to n = 10, m = 4; this follows the thesis, in Bulyan too. Bulyan's last picks, where fewer than m + 3 clients
remain, look at one neighbour, since n - m - 2 would leave none.
"""

import numpy as np

from foltr._kernels.krum import add_mean, fill_distances, mean_near_median, pick_in_turn, sum_nearest
from foltr.federation.taking_part import taking_part
from foltr.types import Array

_DIRECT = 64  # clients up to which every difference is computed; beyond that a matrix product is faster
_COLUMNS = 1024  # of the matrix product at a time: no second copy of all updates
_ROUNDING = 1e-13  # of the squared lengths: squared distances below this are rounding of the product


def krum(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """The update with the smallest score."""
    rows, _, bad = taking_part(updates, weights, bad)
    if len(rows) == 0:
        return np.array(start, dtype=np.float64)
    return rows[np.argmin(_scores(distances(rows, start), bad))].copy()


def multi_krum(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """Plain mean of the n - bad updates with the smallest scores."""
    rows, _, bad = taking_part(updates, weights, bad)
    if len(rows) == 0:
        return np.array(start, dtype=np.float64)
    best = np.argsort(_scores(distances(rows, start), bad), kind="stable")[: max(1, len(rows) - bad)]
    mean = np.zeros(rows.shape[1])
    add_mean(rows, best, mean)
    return mean


def bulyan(updates: Array, weights: Array, *, bad: int, start: Array) -> Array:
    """Per coordinate the mean of the n - 4 bad values nearest to the median of n - 2 bad updates chosen by Krum."""
    rows, _, bad = taking_part(updates, weights, bad)
    if len(rows) == 0:
        return np.array(start, dtype=np.float64)
    gaps = distances(rows, start)
    chosen = np.empty(max(1, len(rows) - 2 * bad), dtype=np.int64)
    pick_in_turn(gaps, np.argsort(gaps, axis=1, kind="stable"), bad, np.ones(len(rows), dtype=np.bool_), chosen)
    centre = np.empty(rows.shape[1])
    mean_near_median(rows, chosen, max(1, len(rows) - 4 * bad), np.empty(len(chosen)), centre)
    return centre


def distances(rows: Array, centre: Array) -> Array:
    """[n, n] Euclidean. Among many clients by one matrix product, from a centre near them so that few digits cancel."""
    gaps = np.empty((len(rows), len(rows)))
    if len(rows) <= _DIRECT:
        fill_distances(rows, gaps)
        return gaps
    gaps[:] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge updates: handled by name below
        for first in range(0, rows.shape[1], _COLUMNS):
            part = rows[:, first : first + _COLUMNS] - centre[first : first + _COLUMNS]
            gaps += part @ part.T
        squares = gaps.diagonal().copy()
        gaps *= -2.0
        gaps += squares[:, None]
        gaps += squares
        gaps[np.isnan(gaps)] = np.inf  # too far for squares: infinitely far
        gaps[gaps < _ROUNDING * (squares[:, None] + squares)] = 0.0
    return np.sqrt(gaps, out=gaps)


def neighbours(clients: int, bad: int) -> int:
    """How many nearest others a score sums: at least one, where there is one."""
    return min(max(1, clients - bad - 2), clients - 1)


def _scores(gaps: Array, bad: int) -> Array:
    scores = np.empty(len(gaps))
    sum_nearest(gaps, neighbours(len(gaps), bad), np.empty(len(gaps)), scores)
    return scores
