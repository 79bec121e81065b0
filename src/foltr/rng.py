"""Addressed random streams: one per (seed, round, client, purpose). NumPy only.

A stream is a start and a stride; its i-th number is a 64-bit mix of start + i * stride, so any number can be computed
without the ones before it, in any order, on any thread. This is the generator of Steele, Lea and Flood, "Fast
splittable pseudorandom number generators" (2014), with the address hashed into start and stride. Kernels read the same
numbers through `_kernels.rng`.
Not for keys or masks: those come from the operating system.

Differs from the paper: streams are addressed, not split from a parent.
"""

from typing import NamedTuple

import numpy as np

from foltr.types import Array

PURPOSES = {
    "queries": 1,
    "ranking": 2,
    "clicks": 3,
    "noise": 4,
    "privatise": 5,
    "cohort": 6,
    "perturbation": 7,
    "start": 8,
    "data": 9,
    "choice": 10,
    "users": 11,
    "partition": 12,
    "attack": 13,
}

FIRST_FACTOR, SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN = 0x9E3779B97F4A7C15
_FACTORS = (0xD1B54A32D192ED03, 0xABC98388FB8FAC03, 0x8CB92BA72F3D8DD7)  # of round, client and purpose
_MASK = 2**64 - 1
_TO_UNIT = 2.0**-53
_BLOCK = 1 << 15  # numbers at a time


def mix(word: int) -> int:
    """Every bit of the result depends on every bit of the word."""
    word = ((word ^ (word >> 30)) * FIRST_FACTOR) & _MASK
    word = ((word ^ (word >> 27)) * SECOND_FACTOR) & _MASK
    return word ^ (word >> 31)


def address(seed: int, round: int, client: int, purpose: int) -> tuple[int, int]:
    """Start and stride of a stream; the stride is odd, so that no number repeats within 2^64."""
    word = mix((seed + _GOLDEN) & _MASK)
    for i, (part, factor) in enumerate(zip((round, client, purpose), _FACTORS, strict=True), start=1):
        word = mix(word ^ ((part * factor + i) & _MASK))
    return word, mix((word + _GOLDEN) & _MASK) | 1


class Stream(NamedTuple):
    """A stream as Python code uses it; `skip` moves on, nothing changes in place."""

    start: int
    stride: int
    position: int = 0

    def skip(self, numbers: int) -> "Stream":
        return self._replace(position=self.position + numbers)

    def uniform_at(self, indices: Array) -> Array:
        """The numbers in [0, 1) at these places, counted from the position."""
        words = np.asarray(indices).astype(np.uint64) + np.uint64(self.position & _MASK)
        words = words * np.uint64(self.stride) + np.uint64(self.start)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
        words = words ^ (words >> np.uint64(31))
        return (words >> np.uint64(11)).astype(np.float64) * _TO_UNIT

    def uniform(self, size: int) -> Array:
        if size <= _BLOCK:
            return self.uniform_at(np.arange(size))
        out = np.empty(size)
        for first in range(0, size, _BLOCK):  # in parts that stay near the processor: no copy of everything on the way
            last = min(first + _BLOCK, size)
            out[first:last] = self.uniform_at(np.arange(first, last))
        return out

    def normal(self, size: int) -> Array:
        """Standard normal numbers in pairs (Box and Muller); number i uses the uniforms of its pair."""
        pairs = self.uniform(size + size % 2).reshape(-1, 2)
        radius, angle = np.sqrt(-2.0 * np.log(1.0 - pairs[:, 0])), 2.0 * np.pi * pairs[:, 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:size]

    def integers(self, below: int, size: int) -> Array:
        return (self.uniform(size) * below).astype(np.int64)

    def permutation(self, size: int) -> Array:
        return np.argsort(self.uniform(size), kind="stable")


def stream(seed: int, *, round: int = 0, client: int = 0, purpose: str) -> Stream:
    """The stream that belongs to one use; a wrong purpose lists the right ones."""
    if purpose not in PURPOSES:
        raise KeyError(f"no purpose {purpose!r}; there are {', '.join(PURPOSES)}")
    return Stream(*address(seed, round, client, PURPOSES[purpose]))
