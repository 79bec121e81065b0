"""Refuting a claimed mu from trials, through Gaussian differential privacy.

Source: Dong, Roth and Su, "Gaussian differential privacy" (2022). A mechanism is mu-GDP if no test between two
neighbouring datasets has error rates below the trade-off curve of N(0, 1) and N(mu, 1):

    beta >= G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)    <=>    Phi^-1(1 - alpha) + Phi^-1(1 - beta) <= mu

The statistic is the likelihood ratio of Gaussian noise, scaled to N(0, 1) without the user and N(mu, 1) with the user
as claimed; the cut mu / 2 is the best one and is fixed by the claim, so that all trials are used for the test. Both
error rates are bounded from above (Clopper and Pearson 1934), each at half of `ERROR`. If the pair of bounds lies below
the curve, the claim is refuted: a mechanism that keeps it is refuted with probability of at most `ERROR`, whatever its
noise; exact Gaussian noise far more rarely (`refutation_odds` with ratio 1).

A bound on (epsilon, delta) from threshold tests needs rare events, and sees little of a Gaussian: half of the noise is
missed there more often than not. The two error rates here are near 1/6, which 2,400 trials measure to 5 %.

Differs from the paper: nothing.
"""

from functools import cache

import numpy as np
from scipy.stats import binom, norm

from foltr.lab.audit.epsilon import Trials, clopper_pearson_upper

MU = 2.0  # at which implementations are tested: error rates are then neither rare nor near 1/2
TRIALS = 2400  # of each dataset
ERROR = 0.05


def least_mu(trials: Trials, *, cut: float, error: float = ERROR) -> float:
    """mu is at least this, with confidence 1 - error. `trials.first` is with the user, and high."""
    false_positives, false_negatives = (trials.second >= cut).sum(), (trials.first < cut).sum()
    alpha = clopper_pearson_upper(false_positives, len(trials.second), error / 2)
    beta = clopper_pearson_upper(false_negatives, len(trials.first), error / 2)
    return float(norm.isf(alpha) + norm.isf(beta))


@cache
def refutation_odds(mu: float, *, ratio: float, trials: int = TRIALS, error: float = ERROR) -> float:
    """Probability that a claim of mu is refuted if the noise has `ratio` times the claimed standard deviation.

    Exact: the sum over all pairs of counts. With ratio 1 it is the probability of a false alarm.
    """
    counts = np.arange(trials + 1)
    z = norm.isf(clopper_pearson_upper(counts, trials, error / 2))  # falls with the count
    refuted = np.searchsorted(-z, z - mu, side="left")  # [trials + 1] how many counts of the other error refute
    wrong = norm.sf(mu / 2 / ratio)  # both error rates at the cut
    return float(binom.pmf(counts, trials, wrong) @ binom.cdf(refuted - 1, trials, wrong))
