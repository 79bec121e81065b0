"""Randomness with an address: one stream per (seed, round, client, purpose).

A stream is a start and a stride; its i-th number is a 64-bit mix of start + i * stride, so any number can be had
without the ones before it, in any order, on any thread. This is the generator of Steele, Lea and Flood, "Fast
splittable pseudorandom number generators" (2014), with the address hashed into start and stride.
Nothing here is fit for keys or masks: those come from the operating system.

Differs from the paper: streams are addressed, not split from a parent.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr.kernel import inlined, kernel
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
QUERIES, RANKING, CLICKS, NOISE, PRIVATISE, COHORT, PERTURBATION, START, DATA, CHOICE, USERS, PARTITION, ATTACK = (
    PURPOSES.values()
)

FIRST_FACTOR, SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-53


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Every bit of the result depends on every bit of the word."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return word ^ (word >> np.uint64(31))


@kernel
def address(seed: int, round: int, client: int, purpose: int) -> tuple[np.uint64, np.uint64]:
    """Start and stride of a stream; the stride is odd, so that no number repeats within 2^64."""
    word = mix(np.uint64(seed) + _GOLDEN)
    word = mix(word ^ (np.uint64(round) * np.uint64(0xD1B54A32D192ED03) + np.uint64(1)))
    word = mix(word ^ (np.uint64(client) * np.uint64(0xABC98388FB8FAC03) + np.uint64(2)))
    word = mix(word ^ (np.uint64(purpose) * np.uint64(0x8CB92BA72F3D8DD7) + np.uint64(3)))
    return word, mix(word + _GOLDEN) | np.uint64(1)


@inlined
def uniform_at(start: np.uint64, stride: np.uint64, index: int) -> float:
    """The index-th number of a stream, in [0, 1)."""
    return float(mix(np.uint64(start) + np.uint64(index) * np.uint64(stride)) >> np.uint64(11)) * _TO_UNIT


@kernel
def fill_uniform(start: np.uint64, stride: np.uint64, first: int, out: Array) -> None:
    for i in range(out.size):
        out[i] = uniform_at(start, stride, first + i)


@kernel
def fill_normal(start: np.uint64, stride: np.uint64, first: int, out: Array) -> None:
    """Standard normal numbers in pairs (Box and Muller); number i uses the uniforms of its pair."""
    for i in range(0, out.size, 2):
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(start, stride, first + i)))
        angle = 2.0 * math.pi * uniform_at(start, stride, first + i + 1)
        out[i] = radius * math.cos(angle)
        if i + 1 < out.size:
            out[i + 1] = radius * math.sin(angle)


class Stream(NamedTuple):
    """A stream as Python code uses it; `skip` moves on, nothing changes in place."""

    start: np.uint64
    stride: np.uint64
    position: int = 0

    def skip(self, numbers: int) -> "Stream":
        return self._replace(position=self.position + numbers)

    def uniform(self, size: int) -> Array:
        out = np.empty(size)
        fill_uniform(self.start, self.stride, self.position, out)
        return out

    def normal(self, size: int) -> Array:
        out = np.empty(size)
        fill_normal(self.start, self.stride, self.position, out)
        return out

    def integers(self, below: int, size: int) -> Array:
        return (self.uniform(size) * below).astype(np.int64)

    def permutation(self, size: int) -> Array:
        return np.argsort(self.uniform(size), kind="stable")


def stream(seed: int, *, round: int = 0, client: int = 0, purpose: str) -> Stream:
    """The stream that belongs to one use; a wrong purpose lists the right ones."""
    if purpose not in PURPOSES:
        raise KeyError(f"no purpose {purpose!r}; there are {', '.join(PURPOSES)}")
    start, stride = address(seed, round, client, PURPOSES[purpose])
    return Stream(np.uint64(start), np.uint64(stride))  # numba hands back plain integers
