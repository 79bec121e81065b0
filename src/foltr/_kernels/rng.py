"""The compiled form of `foltr.rng`: the same numbers at the same addresses, for kernels."""

import math
from typing import Any

import numpy as np

from foltr._kernels.compile import callee, inlined
from foltr.rng import FIRST_FACTOR, PURPOSES, SECOND_FACTOR
from foltr.types import Array

# Not Python integers: numba takes those for literal types, and would compile `address` for each of them.
_NUMBERS: list[Any] = [np.int64(number) for number in PURPOSES.values()]
QUERIES, RANKING, CLICKS, NOISE, PRIVATISE, COHORT, PERTURBATION, START, DATA, CHOICE, USERS, PARTITION, ATTACK = (
    _NUMBERS
)

Stream = tuple[np.uint64, np.uint64]  # start and stride, as `address` has them

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-53


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Every bit of the result depends on every bit of the word."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return word ^ (word >> np.uint64(31))


@callee
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


@callee
def fill_normal(start: np.uint64, stride: np.uint64, first: int, out: Array) -> None:
    """Standard normal numbers in pairs (Box and Muller); number i uses the uniforms of its pair."""
    for i in range(0, out.size, 2):
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(start, stride, first + i)))
        angle = 2.0 * math.pi * uniform_at(start, stride, first + i + 1)
        out[i] = radius * math.cos(angle)
        if i + 1 < out.size:
            out[i + 1] = radius * math.sin(angle)
