"""Membership inference: was this client in the sum? The server knows the client's update and the moments of others.

The sum of n updates is near normal: with the target in it, its mean is higher by the target's own update. The best test
of that is the matched filter (Neyman and Pearson 1933): project the sum minus its expectation on the target's update,
weighted by the inverse covariance of other sums.

Differs from the paper: the moments are estimated from other messages, regularised by a multiple of the identity.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from foltr.lab.audit.epsilon import Trials, clopper_pearson_lower, clopper_pearson_upper
from foltr.rng import Stream
from foltr.types import Array


class Spread(NamedTuple):
    """Distribution of the updates of other clients."""

    mean: Array  # [P]
    covariance: Array  # [P, P]


class Measured(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float


_IDENTITY = 1e-3  # of the mean variance


def spread_of(updates: Array) -> Spread:
    """Moments of updates [n, P]."""
    covariance = np.cov(updates.T)
    return Spread(
        updates.mean(axis=0),
        covariance + np.eye(len(covariance)) * (_IDENTITY * np.trace(covariance) / len(covariance)),
    )


def statistic(total: Array, target: Array, others: Spread, count: int) -> float:
    """Higher if the target's update [P] is in the sum [P] of `count` updates; about standard normal if it is not."""
    difference = target - others.mean  # without the target another client is in the sum
    direction = np.linalg.solve(others.covariance, difference)
    size = np.sqrt(max(count * (direction @ difference), np.finfo(float).tiny))
    return float(direction @ (total - count * others.mean) / size)


def sums(sent: Array, known: Array, *, count: int, trials: int, draws: Stream) -> Trials:
    """Statistics of sums of `count` updates with and without a target.

    `sent` [n, P] are updates as they leave, `known` [n, P] the updates that the server computes from the clicks.
    In each trial the target is one of them and the others are drawn from the rest, with replacement.
    """
    others, clients = spread_of(sent), len(sent)
    targets = draws.integers(clients, trials)
    picks = draws.skip(trials).integers(clients - 1, 2 * trials * count).reshape(2, trials, count)
    picks += picks >= targets[:, None]
    inside, outside = _totals(sent, picks[0, :, 1:]) + sent[targets], _totals(sent, picks[1])
    found = [
        [statistic(total, known[target], others, count) for total, target in zip(totals, targets, strict=True)]
        for totals in (inside, outside)
    ]
    return Trials(*map(np.array, found))


def _totals(sent: Array, picks: Array) -> Array:
    """[trials, P] sums of the picked updates."""
    counts = np.zeros((len(picks), len(sent)))
    np.add.at(counts, (np.arange(len(picks))[:, None], picks), 1.0)
    return counts @ sent


def auc(trials: Trials) -> Measured:
    """P(a sum with the target scores higher than one without), ties half; interval by DeLong et al. (1988)."""
    inside, outside = trials
    ranks = rankdata(np.concatenate(trials))
    above = (ranks[: len(inside)] - rankdata(inside)) / len(outside)  # [inside] share of the others below each
    below = 1 - (ranks[len(inside) :] - rankdata(outside)) / len(inside)  # [outside]
    value = float(above.mean())
    reach = norm.isf(0.025) * np.sqrt(above.var(ddof=1) / len(inside) + below.var(ddof=1) / len(outside))
    return Measured(value, max(value - reach, 0.0), min(value + reach, 1.0))


def advantage(trials: Trials) -> Measured:
    """Hits minus false alarms of the best threshold, chosen on one half of the trials and tried on the other."""
    thresholds = np.unique(np.concatenate([each[::2] for each in trials]))
    best = thresholds[np.subtract(*((each[::2, None] >= thresholds).mean(axis=0) for each in trials)).argmax()]
    (hits, inside), (alarms, outside) = (((each[1::2] >= best).sum(), len(each[1::2])) for each in trials)
    error = 0.0125  # four bounds that hold together at 95 %
    low = clopper_pearson_lower(hits, inside, error) - clopper_pearson_upper(alarms, outside, error)
    high = clopper_pearson_upper(hits, inside, error) - clopper_pearson_lower(alarms, outside, error)
    return Measured(float(hits / inside - alarms / outside), float(low), float(high))
