"""Fetching the features of the next list from memory while this one is worked on."""

from typing import NamedTuple

from foltr._kernels.aligned import LINE
from foltr._kernels.compile import callee
from foltr._kernels.simd import prefetch
from foltr.types import Array

_LINE = LINE // 4  # features in a line of the processor's cache
_PORTION = 16 * _LINE  # as many as a processor waits for at a time


class Ahead(NamedTuple):
    """Features of the next list."""

    flat: Array
    begin: int
    end: int


@callee
def ahead(features: Array, first: int, last: int) -> Ahead:
    """Documents first .. last."""
    return Ahead(features.reshape(-1), first * features.shape[1], last * features.shape[1])


@callee
def fetch(coming: Ahead, portion: int) -> None:
    """Prefetches a portion. Scoring needs no prefetch of its own: it reads in order, which processors predict."""
    begin = coming.begin + portion * _PORTION
    for line in range(begin, min(begin + _PORTION, coming.end), _LINE):
        prefetch(coming.flat, line)
