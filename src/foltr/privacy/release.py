"""The message of a deployed client: its update clipped, as integers, with a discrete Gaussian share. The noise uses no
seed and no floating point; the sum of all messages goes through secure aggregation and is the release.

The clip is checked in integers after encoding, which cuts towards zero: the bound that the event states holds exactly.
"""

import math
from fractions import Fraction

import numpy as np

from foltr.errors import SpecError
from foltr.privacy.events import EVERYBODY, Event
from foltr.privacy.noise import noise_in_ring, share_variance
from foltr.secagg.ring import Ring, encode
from foltr.types import Array

_SHRINK = 1 - 2.0**-20


def release(
    update: Array, *, clip: float, multiplier: float, noise_contributors: int, taking_part: int, ring: Ring
) -> tuple[Array, Event]:
    """The vector of the ring that a client masks, and the event of the sum.

    `noise_contributors`: the minimum number of contributors, to which the noise is calibrated; `multiplier`: its
    standard deviation over the clip.
    """
    if not 1 <= noise_contributors <= taking_part:
        raise SpecError(
            f"noise_contributors = {noise_contributors} of {taking_part} who take part; use 1 to {taking_part}"
        )
    bound = math.floor(clip * 2**ring.fraction)
    if bound < 1:
        raise SpecError(f"clip {clip:g} is nothing with fraction={ring.fraction}; use more binary digits")
    variance = (Fraction(multiplier) * bound) ** 2
    noisy = noise_in_ring(_bounded(update, clip, bound, ring), variance=variance, noise_contributors=noise_contributors)
    total = share_variance(variance, noise_contributors) * noise_contributors
    event = Event("discrete-gaussian", "l2", bound, "l2", math.sqrt(total), against=EVERYBODY,
                  noise_contributors=noise_contributors, present=taking_part, parameters=len(update))  # fmt: skip
    return noisy, event


def _bounded(update: Array, clip: float, bound: int, ring: Ring) -> Array:
    """Encoded, with an L2 norm of at most `bound` steps."""
    norm = float(np.linalg.norm(update))
    if not math.isfinite(norm):
        update, norm = np.zeros_like(update), 0.0  # local training diverged: no update, but the noise is needed
    scale = min(1.0, clip / norm) if norm else 1.0
    while True:
        encoded = encode(update * scale, ring)
        if _square(encoded, ring) <= bound**2:
            return encoded
        scale *= _SHRINK


def _square(encoded: Array, ring: Ring) -> int:
    """Squared length in steps; Python's integers do not overflow."""
    return sum(step * step for step in encoded.view(f"<i{ring.bits // 8}").tolist())
