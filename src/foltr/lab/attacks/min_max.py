"""Min-max: as far from the mean as possible without being farther from anybody than honest clients are from each other.

Source: Shejwalkar and Houmansadr 2021, attack AGR-agnostic min-max. All attackers send mean + gamma * p with the
largest gamma for which no known update is farther away than the two known updates that are farthest apart. `min_max`
goes along p = -sd per coordinate, `min_max_unit` against the mean step, p = -(mean - start) / ||mean - start||.

A single attacker that knows only its own update sends it unchanged: the largest distance that it knows of is 0.

Differs from the paper: gamma is solved for, one quadratic a known update, instead of searched by halving. Known
updates are all n, or the attackers' own, each as it would honestly have been.
"""

import math

import numpy as np

from foltr._kernels.compile import kernel
from foltr.federation.krum import distances
from foltr.lab.attacks.known import Knowledge, known_to, mean_and_sd, with_rows
from foltr.rng import Stream
from foltr.types import Array


def min_max(
    honest: Array,
    start: Array,  # noqa: ARG001
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Along the inverse standard deviation."""
    if attackers == 0:
        return honest.copy()
    known = known_to(honest, attackers, knowledge)
    mean, sd = mean_and_sd(known)
    return with_rows(honest, attackers, mean - farthest(known, mean, -sd) * sd)


def min_max_unit(
    honest: Array,
    start: Array,
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Against the mean step."""
    if attackers == 0:
        return honest.copy()
    known = known_to(honest, attackers, knowledge)
    mean, _ = mean_and_sd(known)
    back = start - mean
    return with_rows(honest, attackers, mean + farthest(known, mean, back) * back)


def farthest(known: Array, mean: Array, direction: Array) -> float:
    """The largest gamma for which mean + gamma * direction is within the known updates' diameter of all of them.

    ||mean + gamma direction - update||^2 = diameter^2 is a quadratic in gamma; its larger root is not negative,
    because the mean itself is within the diameter.
    """
    return float(_largest_root(known, mean, direction, distances(known, known[0])))


@kernel
def _largest_root(known: Array, mean: Array, direction: Array, apart: Array) -> float:
    square, diameter, gamma = 0.0, 0.0, np.inf
    for p in range(mean.size):
        square += direction[p] * direction[p]
    if square == 0.0:
        return 0.0
    for i in range(known.shape[0]):
        for j in range(i):
            diameter = max(diameter, apart[i, j])
    for i in range(known.shape[0]):
        half, length = 0.0, 0.0
        for p in range(mean.size):
            gap = mean[p] - known[i, p]
            half += gap * direction[p]
            length += gap * gap
        slack = max(diameter * diameter - length, 0.0)
        root = math.sqrt(half * half + square * slack)
        # by the form that subtracts nothing where half > 0
        gamma = min(gamma, slack / (half + root) if half > 0.0 else (root - half) / square)
    return gamma
