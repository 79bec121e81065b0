"""The message of a deployed client: its update clipped, as integers, with a discrete Gaussian share. The noise uses no
seed and no floating point; the sum of all messages goes through secure aggregation and is the release.

The noise is sized for `guarantee.honest` shares: those that are in every sum and that neither the server nor its
colluders know. The guarantee is derived on the node, from its own registry (`secagg.guarantee`); it is never taken
from a message. The clip is checked in integers after encoding, which cuts towards zero: the bound that the event states
holds exactly.

With two servers that do not collude, clients add no noise and each server adds all of it (`server_noise`): against one
server that lies, with any number of clients, the noise of the other remains.

`calibrated` gives the noise for a target: as many releases as were planned are admitted by `ledger`, in every ring.
"""

import math
from fractions import Fraction

import numpy as np

from foltr.clipping import clipped_to
from foltr.errors import SpecError
from foltr.privacy import ledger
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.events import EVERYBODY, SERVERS, Event, unproved
from foltr.privacy.noise import discrete_gaussian, noise_in_ring, share_variance
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.ring import Ring, encode
from foltr.types import Array

_SHRINK = 1 - 2.0**-20
_FINER = 1e-4  # relative accuracy of a multiplier that a coarse ring makes larger


def release(update: Array, *, clip: float, multiplier: float, guarantee: Guarantee, ring: Ring) -> tuple[Array, Event]:
    """The vector of the ring that a client masks, and the event of the sum.

    `multiplier`: standard deviation of the noise of all honest shares together, over the clip.
    """
    event = event_of(clip=clip, multiplier=multiplier, guarantee=guarantee, ring=ring, parameters=len(update))
    bound = _steps(clip, ring)
    if not multiplier:
        return _bounded(update, clip, bound, ring), event
    noisy = noise_in_ring(
        _bounded(update, clip, bound, ring),
        variance=_variance(multiplier, bound), noise_contributors=guarantee.honest,
    )  # fmt: skip
    return noisy, event


def event_of(*, clip: float, multiplier: float, guarantee: Guarantee, ring: Ring, parameters: int) -> Event:
    """The event of a release, for the ledger to admit before anything is drawn."""
    if guarantee.honest < 1:
        raise SpecError(f"{guarantee.honest} honest shares of noise in a sum; at least one is needed")
    bound = _steps(clip, ring)
    if not multiplier:
        return _without_noise(bound, parameters)
    total = share_variance(_variance(multiplier, bound), guarantee.honest) * guarantee.honest
    return _proved(Event(
        "discrete-gaussian", "l2", bound, "l2", math.sqrt(total), against=EVERYBODY, parameters=parameters,
        noise_contributors=guarantee.honest, present=guarantee.honest, colluders=guarantee.colluders,
    ))  # fmt: skip


def release_to_servers(update: Array, *, clip: float, multiplier: float, ring: Ring) -> tuple[Array, Event]:
    """The clipped vector that a client splits between two servers, and the event of the sum that they release."""
    bound = _steps(clip, ring)
    if not multiplier:
        return _bounded(update, clip, bound, ring), _without_noise(bound, len(update))
    total = math.sqrt(share_variance(_variance(multiplier, bound), 1) * SERVERS)
    event = _proved(Event("discrete-gaussian", "l2", bound, "l2", total, against=EVERYBODY, parameters=len(update),
                          noise_contributors=SERVERS, present=1, noise_by="servers"))  # fmt: skip
    return _bounded(update, clip, bound, ring), event


def server_noise(length: int, *, clip: float, multiplier: float, ring: Ring) -> Array:
    """The noise, in steps of the ring, that each of two servers adds to its share of the sum."""
    return discrete_gaussian(share_variance(_variance(multiplier, _steps(clip, ring)), 1), length)


def calibrated(
    epsilon: float, delta: float, releases: int, *, clip: float, guarantee: Guarantee, ring: Ring, parameters: int
) -> float:
    """The multiplier with which the ledger admits so many releases within epsilon at delta.

    That of continuous noise, unless the ring is so coarse that its steps cost something.
    """

    def admitted(multiplier: float) -> bool:
        event = event_of(clip=clip, multiplier=multiplier, guarantee=guarantee, ring=ring, parameters=parameters)
        return ledger.admits(ledger.begin(1, delta=delta, budget=epsilon), event, np.zeros(1, np.int64), releases)

    low = high = noise_multiplier(epsilon, delta, releases)
    while not admitted(high):
        low, high = high, 2 * high
    while high - low > _FINER * low:
        low, high = (low, mid) if admitted(mid := (low + high) / 2) else (mid, high)
    return high


def _without_noise(bound: int, parameters: int) -> Event:
    """The event of a sum without noise: it hides single updates from the server, and its epsilon is infinite."""
    return Event("none", "l2", bound, "l2", 0.0, against=EVERYBODY, parameters=parameters, present=0)


def _steps(clip: float, ring: Ring) -> int:
    """The clip in steps of the ring."""
    bound = math.floor(clip * 2**ring.fraction)
    if bound < 1:
        raise SpecError(f"clip {clip:g} is nothing with fraction={ring.fraction}; use more binary digits")
    return bound


def _variance(multiplier: float, bound: int) -> Fraction:
    if not 0 < multiplier < math.inf:
        raise SpecError(f"noise multiplier {multiplier:g}; use a finite number above 0")
    return (Fraction(multiplier) * bound) ** 2


def _proved(event: Event) -> Event:
    if problem := unproved(event):
        raise SpecError(problem)
    return event


def _bounded(update: Array, clip: float, bound: int, ring: Ring) -> Array:
    """Encoded, with an L2 norm of at most `bound` steps."""
    clipped, scale = clipped_to(update, clip=clip)[0], 1.0
    while True:
        encoded = encode(clipped * scale, ring)
        if _square(encoded, ring) <= bound**2:
            return encoded
        scale *= _SHRINK


def _square(encoded: Array, ring: Ring) -> int:
    """Squared length in steps; Python's integers do not overflow."""
    return sum(step * step for step in encoded.view(f"<i{ring.bits // 8}").tolist())
