"""Fixed-point integers modulo 2^32 or 2^64, in which masks are uniform and sums exact.

Source: Bonawitz et al. 2017. A value v is sent as the whole part of v * 2^fraction, rounded towards zero: no
coordinate grows, so a clipped norm stays within its bound. The sum of all clients must fit: each may use the
`clients`-th part of the range, and beyond that a value saturates. A client that refused to send a large value would
tell the server something about it, so no refusal depends on data; a value that is no number is sent as zero.

The noise must fit as well. n clients, each with a share for h of them, add up to n clip and a noise of standard
deviation z clip sqrt(n / h). `require_range` wants room for six standard deviations, once, when terms are agreed.

Differs from the paper: the range of the ring includes the noise.
"""

import math
from typing import Literal

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.types import Array

_DEVIATIONS = 6  # of the noise; beyond once in 5 x 10^8


class Ring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fixed-point encoding."""

    clients: int  # whose sum must fit
    bits: Literal[32, 64] = 32
    fraction: int = 16  # binary digits behind the point

    def __post_init__(self) -> None:
        if not 0 <= self.fraction < self.bits:
            raise SpecError(f"fraction={self.fraction}; use 0 to {self.bits - 1} binary digits of {self.bits}")
        if not 1 <= self.clients < 2 ** (self.bits - 1):
            raise SpecError(f"clients={self.clients}; use 1 to {2 ** (self.bits - 1) - 1}")


def largest(ring: Ring) -> int:
    """The largest size of a client's integer such that the sum of all still has its sign."""
    return (2 ** (ring.bits - 1) - 1) // ring.clients


def require_range(ring: Ring, *, clip: float, multiplier: float, honest: int) -> None:
    """Refuses a ring in which a sum of so many clipped updates and their noise could change its sign."""
    needed = ring.clients * clip + _DEVIATIONS * multiplier * clip * math.sqrt(ring.clients / honest)
    most = (2 ** (ring.bits - 1) - 1) / 2**ring.fraction
    if not needed <= most:
        advice = "lower fraction or use 64 bits (recommended)" if ring.bits == 32 else "lower fraction"
        raise SpecError(
            f"a sum of {ring.clients} clients with clip {clip:g} and noise multiplier {multiplier:g} reaches "
            f"{needed:g}; {ring.bits} bits with fraction={ring.fraction} hold {most:g}: {advice}"
        )


def encode(values: Array, ring: Ring) -> Array:
    """Values [P] as unsigned integers [P] of the ring; what does not fit saturates, what is no number is zero."""
    numbers = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    with np.errstate(over="ignore"):
        whole = np.trunc(np.ldexp(numbers, ring.fraction))  # a shift of the exponent: exact
    inside = np.abs(whole) < 2.0**63
    bound = largest(ring)
    steps = np.clip(np.where(inside, whole, 0).astype(np.int64), -bound, bound)  # integers: doubles would round
    return np.where(inside, steps, np.sign(whole).astype(np.int64) * bound).astype(dtype(ring.bits))


def decode(total: Array, ring: Ring) -> Array:
    """The sum [P] as numbers."""
    signed = total.astype(dtype(ring.bits)).view(f"<i{ring.bits // 8}")
    return np.ldexp(signed.astype(np.float64), -ring.fraction)


def dtype(bits: int) -> "np.dtype[np.unsignedinteger]":
    """Little-endian, as it is sent."""
    return np.dtype(f"<u{bits // 8}")
