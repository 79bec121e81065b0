"""A clip that follows a quantile of the updates' norms, privately: Andrew et al. 2021, algorithm 1.

Beside its update every client sends one bit, whether its norm was within the clip, as 1/2 or -1/2, with a share of
noise. Both together are one Gaussian release of the multiplier that was asked for, so the update itself gets a little
more noise: 1 / update^2 + 1 / (2 bits)^2 = 1 / multiplier^2.

Differs from the paper: nothing.
"""

import math

import numpy as np

from foltr.errors import SpecError
from foltr.rng import stream
from foltr.types import Array

RATE = 0.2  # how far the clip's logarithm moves in a round, at most
_BITS = 1 / 20  # deviation of the noise on the sum of bits, over the clients: the paper's choice


def split_multiplier(multiplier: float, clients: int) -> tuple[float, float]:
    """Noise multiplier of the update, and the deviation on the sum of bits."""
    bits = max(clients * _BITS, multiplier)  # never so little that the update would need infinite noise
    return (multiplier**-2 - (2 * bits) ** -2) ** -0.5, bits


def next_clip(norms: Array, clip: float, *, quantile: float, bits: float, seed: int, round: int) -> float:
    """The clip of the next round from the noisy share of norms within this one."""
    if not 0 < quantile < 1:
        raise SpecError(f"quantile {quantile:g} of the norms: use a number between 0 and 1, such as 0.5")
    noise = bits * float(stream(seed, round=round, client=-1, purpose="noise").normal(1)[0])
    within = (float(np.sum(norms <= clip) - len(norms) / 2) + noise) / len(norms) + 0.5
    return clip * math.exp(-RATE * (within - quantile))
