"""Rules that turn the updates of a round into one vector: same first arguments for all, the rest keyword-only."""

import numpy as np

from foltr.types import Array


def fedavg(updates: Array, weights: Array) -> Array:
    """Mean of updates [n, P], weighted by the interactions behind each."""
    return np.asarray(weights, dtype=float) @ updates / np.sum(weights)


RULES = {"fedavg": fedavg}
