"""A lower bound on epsilon from trials: how well can two neighbouring datasets be distinguished?

Under (epsilon, delta) privacy every set of outcomes E satisfies
P(E | first) <= e^epsilon P(E | second) + delta, and the same with the datasets exchanged (Kairouz, Oh and Viswanath
2015). So epsilon >= log((P(E | first) - delta) / P(E | second)).

E is "the statistic is on one side of a threshold". Side, threshold and dataset are chosen on one half of the trials; on
the other half both probabilities are bounded (Clopper and Pearson 1934), each at half of the allowed error: the bound
is valid whatever was chosen. From n trials of each dataset it cannot exceed about log(n / 7.4) at 95 %.

Differs from the paper: nothing.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from foltr.errors import SpecError
from foltr.types import Array


class Trials(NamedTuple):
    """A statistic of what is released from two neighbouring datasets."""

    first: Array  # [trials]
    second: Array  # [trials]


def lower_bound(trials: Trials, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Epsilon is at least this, with the given confidence; 0 if the trials show nothing."""
    if min(map(len, trials)) < 4:
        raise SpecError(f"{min(map(len, trials))} trials of a dataset; use at least 4, and 10,000 for a useful bound")
    error = (1 - confidence) / 2
    chosen, tested = (Trials(*(np.sort(each[half::2]) for each in trials)) for half in (0, 1))
    thresholds = np.unique(np.concatenate(chosen))
    found = np.array(
        [_bounds(*_counts(chosen, thresholds, *test), delta, error) for test in _TESTS]
    )  # [tests, thresholds]
    test, best = np.unravel_index(found.argmax(), found.shape)
    bound = _bounds(*_counts(tested, thresholds[best : best + 1], *_TESTS[test]), delta, error)
    return float(max(bound[0], 0.0))


_TESTS = [(above, right) for above in (True, False) for right in (0, 1)]  # (side of the threshold, dataset decided for)


def _counts(trials: Trials, thresholds: Array, above: bool, right: int) -> tuple[Array, Array, int, int]:
    """Trials on that side of each threshold, of the dataset decided for and of the other, and the trials of each."""
    below = [np.searchsorted(each, thresholds, side="left") for each in trials]
    hits = [len(each) - few if above else few for each, few in zip(trials, below, strict=True)]
    return hits[right], hits[1 - right], len(trials[right]), len(trials[1 - right])


def _bounds(right: Array, wrong: Array, rights: int, wrongs: int, delta: float, error: float) -> Array:
    """Of epsilon, for each threshold; -inf where delta explains everything."""
    seen, feared = clopper_pearson_lower(right, rights, error) - delta, clopper_pearson_upper(wrong, wrongs, error)
    return np.log(seen, out=np.full(seen.shape, -np.inf), where=seen > 0) - np.log(feared)


def clopper_pearson_lower(hits: Array, trials: int, error: float) -> Array:
    """Lower confidence limit of a probability."""
    return np.where(hits == 0, 0.0, beta.ppf(error, np.maximum(hits, 1), trials - hits + 1))


def clopper_pearson_upper(hits: Array, trials: int, error: float) -> Array:
    """Upper confidence limit of a probability."""
    return np.where(hits == trials, 1.0, beta.isf(error, hits + 1, np.maximum(trials - hits, 1)))
