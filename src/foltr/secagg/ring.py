"""Fixed-point integers modulo 2^32 or 2^64, in which masks are uniform and sums exact.

Source: Bonawitz et al. 2017. A value v is sent as the whole part of v * 2^fraction, rounded towards zero: no
coordinate grows, so a clipped norm stays within its bound. The sum of all clients must fit: each may use the
`clients`-th part of the range.

Differs from the paper: nothing.
"""

from typing import Literal

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.types import Array


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


def encode(values: Array, ring: Ring) -> Array:
    """Values [P] as unsigned integers [P] of the ring."""
    if not np.isfinite(values).all():
        raise SpecError("a value to add up is not finite; clip or drop it before encoding")
    whole = np.trunc(np.ldexp(np.asarray(values, np.float64), ring.fraction))  # a shift of the exponent: exact
    fits = np.abs(whole) < 2.0**63
    steps = np.where(fits, whole, 0).astype(np.int64)
    if not fits.all() or (np.abs(steps) > largest(ring)).any():  # integers: doubles would round the bound
        bound = largest(ring) / 2**ring.fraction
        raise SpecError(
            f"a value of {np.abs(values).max():g} is too large: {ring.clients} clients in {ring.bits} bits with "
            f"fraction={ring.fraction} allow {bound:g}; clip, lower fraction or use 64 bits"
        )
    return steps.astype(dtype(ring.bits))


def decode(total: Array, ring: Ring) -> Array:
    """The sum [P] as numbers."""
    signed = total.astype(dtype(ring.bits)).view(f"<i{ring.bits // 8}")
    return np.ldexp(signed.astype(np.float64), -ring.fraction)


def dtype(bits: int) -> "np.dtype[np.unsignedinteger]":
    """Little-endian, as it is sent."""
    return np.dtype(f"<u{bits // 8}")
